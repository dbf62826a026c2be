//! An upload: messages that are acknowledged, not echoed.
//!
//! Writing and reading alternate on one thread. Otherwise a server that stops reading until its
//! acknowledgements are read would bring both sides to a halt.

use std::collections::VecDeque;
use std::time::Instant;

use linerate_proto::Opcode;

use super::link::Link;
use super::message::{Expected, Message, mask_key};
use super::meter::{Latencies, Meter};
use super::opening::open;
use super::watch::Watch;
use super::{Budget, LoadError, Probe, Target, Wire};
use crate::cell::{Deflate, Upload};
use crate::record::Figures;

/// Number of different messages, which are sent in turn.
const DISTINCT: u64 = 4;

/// Longest write, so that acknowledgements are read, and timed, in between.
const WRITE_BYTES_MAX: usize = 1 << 20;

/// Number of bytes to read at a time. Acknowledgements are short.
const READ_BYTES: usize = 4 << 10;

/// The answer to a message on a raw wire: ACK in ASCII.
const RAW_ACKNOWLEDGEMENT: Expected<'static> = Expected {
    frame: &[0x06],
    header_bytes: 0,
};

/// Uploads `total_bytes`, after an upload for the duration of the warm-up. The duration of the
/// measurement is not bounded.
///
/// # Errors
///
/// Returns an error if the server fails, or if an acknowledgement is wrong.
pub(super) fn measure(
    load: &Upload,
    target: &Target,
    budget: &Budget,
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    let messages = load
        .total_bytes
        .div_ceil(u64::from(load.payload_bytes))
        .max(1);
    probe.reset_peak().map_err(LoadError::Gone)?;
    let mut session = UploadSession::open(load, target, budget)?;
    let start = Instant::now();
    session
        .send_while(|sent| sent == 0 || (sent < messages && start.elapsed() < budget.warm_up))?;

    let before = session.sent;
    session.latencies.clear();
    let meter = Meter::start(probe)?;
    session.send_while(|sent| sent - before < messages)?;
    let figures = meter.read(probe)?;
    Ok(Figures {
        messages: messages as f64,
        payload_bytes: messages as f64 * f64::from(load.payload_bytes),
        latency: session.latencies.percentiles(),
        ..figures
    })
}

/// An upload in progress.
struct UploadSession {
    link: Link,
    watch: Watch,
    budget: Budget,
    window: usize,
    /// The different messages, which are sent in turn.
    messages: Vec<Message>,
    wire: Wire,
    /// The acknowledgement of each message, on a wire with frames.
    acknowledgement: Message,
    /// Number of messages that the kernel has accepted completely.
    sent: u64,
    /// Number of bytes of the next message that the kernel has accepted.
    at: usize,
    /// When the first bytes of each unacknowledged message were sent.
    begun: VecDeque<Instant>,
    latencies: Latencies,
}

impl UploadSession {
    fn open(load: &Upload, target: &Target, budget: &Budget) -> Result<Self, LoadError> {
        let opened = open(target, Deflate::Off, budget.silence_max)?;
        let mut link = Link::new(opened, target.wire, Opcode::Text)?;
        let messages: Vec<Message> = (0..DISTINCT)
            .map(|number| message(number, load.payload_bytes))
            .collect();
        if target.wire == Wire::Raw {
            link.send(&(messages[0].frame().len() as u64).to_le_bytes())?;
        }
        let number = load.payload_bytes.to_string();
        Ok(Self {
            watch: Watch::new([&link])?,
            link,
            budget: *budget,
            window: load.window.max(1) as usize,
            messages,
            wire: target.wire,
            acknowledgement: Message::new(Opcode::Text, number.as_bytes(), None),
            sent: 0,
            at: 0,
            begun: VecDeque::new(),
            latencies: Latencies::new(),
        })
    }

    /// Sends messages as long as `more`, which receives the number of messages sent, returns true.
    /// Then waits until all of them are acknowledged.
    fn send_while(&mut self, more: impl Fn(u64) -> bool) -> Result<(), LoadError> {
        let mut buffer = [0; READ_BYTES];
        loop {
            let has_sent = self.send_some(&more)?;
            let has_received = self.receive(&mut buffer)?;
            if self.begun.is_empty() && !more(self.sent) {
                return Ok(());
            }
            if has_sent || has_received {
                continue;
            }
            let silence = self.budget.silence_max;
            if self.watch.wait(silence)?.next().is_none() {
                return Err(LoadError::Silent(silence));
            }
        }
    }

    /// Writes at most once. Returns whether the socket accepted anything.
    fn send_some(&mut self, more: impl Fn(u64) -> bool) -> Result<bool, LoadError> {
        if self.at == 0 {
            let may_begin = self.link.flush()?;
            if !may_begin || self.begun.len() >= self.window || !more(self.sent) {
                return Ok(false);
            }
        }
        let frame = self.messages[(self.sent % DISTINCT) as usize].frame();
        let end = frame.len().min(self.at + WRITE_BYTES_MAX);
        let now = Instant::now();
        let bytes = self.link.write(&frame[self.at..end])?;
        if bytes > 0 && self.at == 0 {
            self.begun.push_back(now);
        }
        self.at += bytes;
        if self.at == frame.len() {
            self.at = 0;
            self.sent += 1;
        }
        Ok(bytes > 0)
    }

    /// Reads everything that has arrived. Returns whether anything had arrived.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool, LoadError> {
        let expected = match self.wire {
            Wire::Raw => RAW_ACKNOWLEDGEMENT,
            Wire::WebSocket => self.acknowledgement.expected(),
        };
        let (before, sent) = (self.link.answers.messages(), self.sent);
        let any = self
            .link
            .receive(buffer, |message| (message < sent).then_some(expected))?;
        let now = Instant::now();
        for _ in before..self.link.answers.messages() {
            if let Some(begun) = self.begun.pop_front() {
                self.latencies.record(now - begun);
            }
        }
        Ok(any)
    }
}

/// Builds message `number`. It contains bytes of all values, and no two messages have the same byte
/// in the same place.
fn message(number: u64, payload_bytes: u32) -> Message {
    let values: Vec<u8> = (0..=u8::MAX)
        .map(|value| value.wrapping_add(number as u8).wrapping_mul(167))
        .collect();
    let mut payload = values.repeat(payload_bytes as usize / values.len() + 1);
    payload.truncate(payload_bytes as usize);
    Message::new(Opcode::Binary, &payload, Some(mask_key(number)))
}

#[cfg(test)]
mod tests;
