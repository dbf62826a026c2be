//! What waits to be written: whole frames, in order.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use linerate_proto::{Engine, Header, MaskKey, engine::{MessageKind, State}};
use linerate_simd::mask;
use tokio::io::AsyncWrite;

use super::{Io, Side};
use crate::{Result, message::Message, pool};

/// Payloads from here on are written from where they are; smaller ones are copied behind their
/// prefix, so that many of them are one write.
const COPIED_BYTES_MAX: usize = 32 << 10;

/// Frames in the order in which they are written: `front`, `large`, `behind`.
///
/// INVARIANT: `front` starts at a frame boundary, and so does `behind`. If there is a `large`, the
/// last frame of `front` is its prefix.
#[derive(Default)]
pub(crate) struct Outbox {
    front: Vec<u8>,
    /// Bytes of `front` that have been written.
    sent: usize,
    large: Option<Large>,
    behind: Vec<u8>,
    /// Whether a control frame is queued; the next one waits for it.
    holds_control: bool,
    /// Whether the stream may hold back what was written to it, as TLS does.
    unflushed: bool,
}

/// The payload of a large message, masked if it must be.
struct Large {
    payload: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Returns the bytes that wait.
    pub(crate) fn len(&self) -> usize {
        let large = self.large.as_ref().map_or(0, |large| large.payload.len() - large.sent);
        self.front.len() - self.sent + large + self.behind.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, engine: &mut Engine<Side>, message: Message) -> Result<()> {
        if message.len() <= COPIED_BYTES_MAX || self.large.is_some() {
            return self.push_copy(engine, message.kind(), message.as_bytes());
        }
        let kind = message.kind();
        let prefix = engine.send_prefix(self.tail(Header::BYTES_MAX), kind, message.len() as u64)?;
        let mut payload = message.into_bytes();
        if let Some(MaskKey(key)) = prefix {
            mask::apply(key, 0, &mut payload);
        }
        self.large = Some(Large { payload, sent: 0 });
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

    /// Takes the control frames that are due: at the next frame boundary, ahead of queued data; the
    /// Close frame at the end, because nothing may follow it.
    pub(crate) fn take_control(&mut self, engine: &mut Engine<Side>) {
        if self.is_empty() {
            self.holds_control = false;
        }
        if self.holds_control || !engine.wants_transmit() {
            return;
        }
        self.holds_control = true;
        let is_last = engine.state() != State::Open;
        if self.is_empty() || is_last {
            engine.poll_transmit(self.tail(Header::BYTES_MAX));
            return;
        }
        let mut frames = pool::take(0);
        engine.poll_transmit(&mut frames);
        match self.next_boundary() {
            Some(at) => {
                self.front.splice(at..at, frames.iter().copied());
            }
            None => {
                self.behind.splice(0..0, frames.iter().copied());
            }
        }
        pool::give(frames);
    }

    /// Writes once; returns the number of bytes.
    pub(crate) fn poll_write(
        &mut self,
        io: Pin<&mut Box<dyn Io>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let large = self.large.as_ref().map_or(&[][..], |large| &large.payload[large.sent..]);
        let front = &self.front[self.sent..];
        let written = if front.is_empty() && self.behind.is_empty() {
            ready!(io.poll_write(cx, large))?
        } else if large.is_empty() && self.behind.is_empty() {
            ready!(io.poll_write(cx, front))?
        } else {
            let slices = [front, large, &self.behind].map(IoSlice::new);
            ready!(io.poll_write_vectored(cx, &slices))?
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
        io: Pin<&mut Box<dyn Io>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        if self.unflushed {
            ready!(io.poll_flush(cx))?;
            self.unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns where the next frame is appended, with memory for `bytes`.
    fn tail(&mut self, bytes: usize) -> &mut Vec<u8> {
        let tail = if self.large.is_some() { &mut self.behind } else { &mut self.front };
        if tail.capacity() == 0 {
            *tail = pool::take(bytes);
        }
        tail
    }

    /// Accounts for `written` bytes and gives memory back once everything is written.
    fn advance(&mut self, mut written: usize) {
        let front = written.min(self.front.len() - self.sent);
        self.sent += front;
        written -= front;
        if self.sent < self.front.len() {
            return;
        }
        if let Some(large) = &mut self.large {
            let bytes = written.min(large.payload.len() - large.sent);
            large.sent += bytes;
            written -= bytes;
            if large.sent < large.payload.len() {
                return;
            }
            let large = self.large.take().unwrap_or(Large { payload: Vec::new(), sent: 0 });
            pool::give(large.payload);
        }
        let behind = std::mem::take(&mut self.behind);
        pool::give(std::mem::replace(&mut self.front, behind));
        self.sent = written;
        if self.sent == self.front.len() {
            pool::give(std::mem::take(&mut self.front));
            self.sent = 0;
        }
    }

    /// Returns the first frame boundary in `front` that is not written yet, `None` if it is behind
    /// the large payload.
    fn next_boundary(&self) -> Option<usize> {
        let mut at = 0;
        while at < self.sent {
            let (header, bytes) = Header::decode(&self.front[at..]).ok()??;
            at = at.saturating_add(bytes).saturating_add(header.payload_bytes as usize);
        }
        (at < self.front.len() || at == self.front.len() && self.large.is_none()).then_some(at)
    }
}
