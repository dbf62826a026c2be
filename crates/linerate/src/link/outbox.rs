//! What waits to be written: whole frames, in order.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use linerate_proto::{
    Engine, Header, MaskKey,
    engine::{Events, MessageKind, State},
};
use linerate_simd::mask;
use tokio::io::AsyncWrite;

use super::{Side, Transport};
use crate::{Result, message::Message, pool};

/// Payloads from here on are written from where they are; smaller ones are copied behind their
/// prefix, so that many of them are one write.
const COPIED_BYTES_MAX: usize = 32 << 10;

/// Answers to Pings that may wait, in bytes; beyond that only the newest Ping is answered (§5.5.3).
const CONTROL_BYTES_MAX: u32 = 4 << 10;

/// Written bytes are forgotten once there are so many, which costs a move of what is left.
const FORGOTTEN_BYTES_MIN: usize = 64 << 10;

/// Frames in the order in which they are written: `front`, a large payload, what is behind it.
///
/// INVARIANT: `front` starts at a frame boundary. If there is a large payload, the last frame of
/// `front` is its prefix.
#[derive(Default)]
pub(crate) struct Outbox {
    front: Vec<u8>,
    /// Bytes of `front` that have been written.
    sent: usize,
    /// Kept allocated once there was a large payload; empty most of the time.
    large: Option<Box<Large>>,
    /// Where the last control frame in `front` ends, at a frame boundary.
    control_end: usize,
    /// Bytes of control frames that were queued since the outbox was last empty.
    control_bytes: u32,
    /// Whether the stream may hold back what was written to it, as TLS does.
    unflushed: bool,
}

/// The payload of a large message, masked if it must be, and the frames that were queued behind it.
#[derive(Default)]
struct Large {
    /// Empty if there is none.
    payload: Vec<u8>,
    sent: usize,
    behind: Vec<u8>,
    /// Where the last control frame in `behind` ends, at a frame boundary.
    control_end: usize,
}

impl Outbox {
    /// Returns the bytes that wait.
    pub(crate) fn len(&self) -> usize {
        let large = self.large().map_or(0, |large| {
            large.payload.len() - large.sent + large.behind.len()
        });
        self.front.len() - self.sent + large
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, engine: &mut Engine<Side>, message: Message) -> Result<()> {
        if message.len() <= COPIED_BYTES_MAX || self.large().is_some() {
            return self.push_copy(engine, message.kind(), message.as_bytes());
        }
        let kind = message.kind();
        let prefix =
            engine.send_prefix(self.tail(Header::BYTES_MAX), kind, message.len() as u64)?;
        let mut payload = message.into_bytes();
        if let Some(MaskKey(key)) = prefix {
            mask::apply(key, 0, &mut payload);
        }
        let large = self.large.get_or_insert_default();
        (large.payload, large.sent) = (payload, 0);
        Ok(())
    }

    /// Queues a message by copying it. `payload` of a text message must be UTF-8.
    pub(crate) fn push_copy(
        &mut self,
        engine: &mut Engine<Side>,
        kind: MessageKind,
        payload: &[u8],
    ) -> Result<()> {
        engine.send(self.tail(Header::BYTES_MAX + payload.len()), kind, payload)?;
        Ok(())
    }

    /// Queues a fragment of a message by copying it.
    pub(crate) fn push_fragment(
        &mut self,
        engine: &mut Engine<Side>,
        kind: MessageKind,
        payload: &[u8],
        fin: bool,
    ) -> Result<()> {
        let tail = self.tail(Header::BYTES_MAX + payload.len());
        engine.send_fragment(tail, kind, payload, fin)?;
        Ok(())
    }

    /// Queues a Ping.
    pub(crate) fn push_ping(&mut self, engine: &mut Engine<Side>, payload: &[u8]) -> Result<()> {
        engine.send_ping(self.tail(Header::BYTES_MAX + payload.len()), payload)?;
        Ok(())
    }

    /// Answers a Ping at once, unless so many answers wait that only the newest is to be kept.
    pub(crate) fn answer_ping(&mut self, events: &mut Events<'_, '_, Side>) {
        if self.control_bytes < CONTROL_BYTES_MAX {
            self.put_control(|frames| events.poll_transmit(frames));
        }
    }

    /// Takes the control frames that are due, unless too many wait already.
    pub(crate) fn take_control(&mut self, engine: &mut Engine<Side>) {
        if self.is_empty() {
            self.control_bytes = 0;
        }
        if !engine.wants_transmit() {
            return;
        }
        if engine.state() != State::Open {
            // Nothing may follow a Close frame, so it comes last.
            engine.poll_transmit(self.tail(Header::BYTES_MAX));
        } else if self.control_bytes < CONTROL_BYTES_MAX {
            self.put_control(|frames| engine.poll_transmit(frames));
        }
    }

    /// Queues control frames at the next frame boundary, ahead of queued data and behind earlier
    /// control frames.
    fn put_control(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut frames = pool::take(0);
        write(&mut frames);
        self.control_bytes += frames.len() as u32;
        let boundary = self.next_boundary();
        let (queue, end) = match (boundary, &mut self.large) {
            (None, Some(large)) => (&mut large.behind, &mut large.control_end),
            (boundary, _) => {
                self.control_end = self.control_end.max(boundary.unwrap_or_default());
                (&mut self.front, &mut self.control_end)
            }
        };
        if queue.is_empty() {
            pool::give(std::mem::replace(queue, frames));
            *end = queue.len();
            return;
        }
        queue.splice(*end..*end, frames.iter().copied());
        *end += frames.len();
        pool::give(frames);
    }

    /// Writes once; returns the number of bytes.
    pub(crate) fn poll_write(
        &mut self,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let front = &self.front[self.sent..];
        let written = match self.large() {
            None => ready!(io.poll_write(cx, front))?,
            Some(large) => {
                let slices = [front, &large.payload[large.sent..], &large.behind];
                ready!(io.poll_write_vectored(cx, &slices.map(IoSlice::new)))?
            }
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.unflushed = true;
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    /// Makes the stream hand over what it holds back.
    pub(crate) fn poll_flush(
        &mut self,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(io.poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the large payload that waits.
    fn large(&self) -> Option<&Large> {
        self.large
            .as_deref()
            .filter(|large| !large.payload.is_empty())
    }

    /// Returns where the next frame is appended, with memory for `bytes`.
    fn tail(&mut self, bytes: usize) -> &mut Vec<u8> {
        let tail = match &mut self.large {
            Some(large) if !large.payload.is_empty() => &mut large.behind,
            _ => &mut self.front,
        };
        pool::reserve(tail, bytes);
        tail
    }

    /// Accounts for `written` bytes and gives memory back once everything is written.
    fn advance(&mut self, mut written: usize) {
        let front = written.min(self.front.len() - self.sent);
        self.sent += front;
        written -= front;
        if self.sent < self.front.len() {
            return self.forget_written();
        }
        if let Some(large) = &mut self.large {
            let bytes = written.min(large.payload.len() - large.sent);
            large.sent += bytes;
            written -= bytes;
            if large.sent < large.payload.len() {
                return;
            }
            let Large {
                payload,
                behind,
                control_end,
                ..
            } = std::mem::take(&mut **large);
            pool::give(payload);
            pool::give(std::mem::replace(&mut self.front, behind));
            (self.sent, self.control_end) = (written, control_end);
        }
        if self.sent == self.front.len() {
            pool::give(std::mem::take(&mut self.front));
            (self.sent, self.control_end) = (0, 0);
        }
    }

    /// Forgets the frames that are written, once they are much, so that a queue that is never empty
    /// does not grow.
    fn forget_written(&mut self) {
        if self.sent < FORGOTTEN_BYTES_MIN {
            return;
        }
        let mut at = 0;
        while let Some(next) = self.frame_end(at).filter(|next| *next <= self.sent) {
            at = next;
        }
        self.front.drain(..at);
        self.sent -= at;
        self.control_end = self.control_end.saturating_sub(at);
    }

    /// Returns where the frame that starts at `at` in `front` ends; the payload may be elsewhere.
    fn frame_end(&self, at: usize) -> Option<usize> {
        let (header, bytes) = Header::decode(&self.front[at..]).ok()??;
        let end = at.saturating_add(bytes);
        Some(end.saturating_add(header.payload_bytes as usize))
    }

    /// Returns the first frame boundary in `front` that is not written yet, `None` if it is behind
    /// the large payload.
    fn next_boundary(&self) -> Option<usize> {
        let mut at = 0;
        while at < self.sent {
            at = self.frame_end(at)?;
        }
        (at < self.front.len() || at == self.front.len() && self.large().is_none()).then_some(at)
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use linerate_proto::{Config, Role};

    use super::*;

    fn engine() -> Engine<Side> {
        Engine::new(
            Side(Role::Server),
            Arc::new(Config::default()),
            Duration::ZERO,
        )
    }

    fn ping(outbox: &mut Outbox, engine: &mut Engine<Side>, payload: u8) {
        let mut input = [0x89, 0x81, 0, 0, 0, 0, payload];
        let mut events = engine.handle_input(&mut input, Duration::ZERO);
        assert!(matches!(
            events.next(),
            Some(Ok(linerate_proto::Event::Ping(_)))
        ));
        outbox.answer_ping(&mut events);
    }

    /// Takes everything out, `bytes` at a time.
    fn written(outbox: &mut Outbox, bytes: usize) -> Vec<u8> {
        let mut wire = Vec::new();
        while !outbox.is_empty() {
            let large = outbox.large();
            let payload = large.map_or(&[][..], |large| &large.payload[large.sent..]);
            let behind = large.map_or(&[][..], |large| &large.behind);
            let all = [&outbox.front[outbox.sent..], payload, behind].concat();
            let bytes = bytes.min(all.len());
            wire.extend_from_slice(&all[..bytes]);
            outbox.advance(bytes);
        }
        wire
    }

    #[test]
    fn pongs_overtake_data_and_keep_their_order() {
        let (mut outbox, mut engine) = (Outbox::default(), engine());
        outbox.push(&mut engine, "ab".into()).unwrap();
        outbox.push(&mut engine, "cd".into()).unwrap();
        outbox.advance(1);
        ping(&mut outbox, &mut engine, b'1');
        ping(&mut outbox, &mut engine, b'2');
        assert_eq!(
            written(&mut outbox, 3),
            b"\x02ab\x8a\x011\x8a\x012\x81\x02cd"
        );
    }

    #[test]
    fn pongs_wait_for_the_end_of_a_large_payload() {
        let (mut outbox, mut engine) = (Outbox::default(), engine());
        let payload = vec![b'x'; COPIED_BYTES_MAX + 1];
        outbox.push(&mut engine, payload.clone().into()).unwrap();
        outbox.push(&mut engine, "cd".into()).unwrap();
        outbox.advance(1);
        ping(&mut outbox, &mut engine, b'1');
        ping(&mut outbox, &mut engine, b'2');
        let wire = written(&mut outbox, 1_000);
        assert_eq!(wire[3..3 + payload.len()], payload);
        assert_eq!(wire[3 + payload.len()..], *b"\x8a\x011\x8a\x012\x81\x02cd");
    }

    #[test]
    fn a_queue_that_is_never_empty_does_not_grow() {
        let (mut outbox, mut engine) = (Outbox::default(), engine());
        let mut wire = Vec::new();
        outbox.push(&mut engine, vec![0; 300].into()).unwrap();
        for number in 1..10_000_usize {
            outbox
                .push(&mut engine, vec![number as u8; 300].into())
                .unwrap();
            if number % 100 == 0 {
                ping(&mut outbox, &mut engine, number as u8);
            }
            let bytes = 304.min(outbox.len() - 1);
            wire.extend_from_slice(&outbox.front[outbox.sent..][..bytes]);
            outbox.advance(bytes);
            assert!(outbox.front.capacity() <= 4 * FORGOTTEN_BYTES_MIN);
        }
        wire.extend(written(&mut outbox, 1_000));
        let (mut at, mut expected, mut pongs) = (0, 0_usize, 0);
        while at < wire.len() {
            let (header, bytes) = Header::decode(&wire[at..]).unwrap().unwrap();
            let end = at + bytes + header.payload_bytes as usize;
            if wire[at] == 0x8A {
                pongs += 1;
            } else {
                assert_eq!(wire[end - 1], expected as u8);
                expected += 1;
            }
            at = end;
        }
        assert_eq!((expected, pongs), (10_000, 99));
    }

    #[test]
    fn a_flood_of_pings_costs_a_bounded_queue() {
        let (mut outbox, mut engine) = (Outbox::default(), engine());
        for number in 0..100_000 {
            ping(&mut outbox, &mut engine, number as u8);
        }
        assert!(outbox.len() < CONTROL_BYTES_MAX as usize + 127);
        written(&mut outbox, 1 << 20);
        outbox.take_control(&mut engine);
        assert_eq!(
            written(&mut outbox, 1 << 20),
            [0x8A, 1, (99_999 % 256) as u8]
        );
    }
}
