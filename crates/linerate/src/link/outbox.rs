//! The queue of output: whole frames, in order.

mod replies;
mod segment;
#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    thread::LocalKey,
};

use linerate_proto::{
    Engine, Header, MaskKey, SendError,
    engine::{MessageKind, State},
};
use linerate_simd::mask;
use tokio::io::AsyncWrite;

use super::Side;
use crate::{
    Frames, Result,
    message::{COPIED_BYTES_MAX, Message},
    pool::{self, Recycle, Spare},
    transport::Transport,
};
use segment::{Block, Segment};

/// The largest block of shared frames to copy, in bytes; larger ones are written in place. This is
/// less than for payloads, because a payload is copied only once, but shared frames are copied for
/// each connection.
const SHARED_COPIED_BYTES_MAX: usize = 4 << 10;

/// The maximum number of slices in one write.
const SLICES_MAX: usize = 16;

/// How many bytes of answers to Pings may be queued; beyond that, only the newest Ping is answered
/// (RFC 6455 §5.5.3).
const CONTROL_BYTES_MAX: u32 = 4 << 10;

/// How many written bytes accumulate before they are removed, which requires moving the remaining
/// bytes.
const FORGOTTEN_BYTES_MIN: usize = 64 << 10;

/// The maximum number of segments for which an outbox keeps memory when it is recycled.
const SPARE_SEGMENTS_MAX: usize = 64;

/// Frames in the order in which they are written: first `front`, then the segments.
///
/// INVARIANT: `front` starts at a frame boundary. The payload in a block belongs to the frame whose
/// header is at the end of the bytes before it.
pub(crate) struct Outbox {
    front: Vec<u8>,
    /// How many bytes of `front` have been written.
    sent: usize,
    segments: VecDeque<Segment>,
    /// The end of the last control frame in `front`, which is a frame boundary.
    control_end: usize,
    /// How many bytes of control frames were queued since the outbox was last empty.
    control_bytes: u32,
    /// True if the stream may be buffering what was written to it, as TLS does.
    unflushed: bool,
}

thread_local! {
    static SPARE: Spare<Outbox> = const { Spare::new() };
}

impl Default for Outbox {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Recycle for Outbox {
    const IDLE: &'static Self = &Self::EMPTY;

    fn spare() -> &'static LocalKey<Spare<Self>> {
        &SPARE
    }

    #[inline]
    fn reset(&mut self) -> bool {
        if !self.is_empty() || self.unflushed {
            return false;
        }
        if self.front.capacity() > 0 {
            self.forget_front();
        }
        if self.segments.capacity() > SPARE_SEGMENTS_MAX {
            self.segments = VecDeque::new();
        }
        self.control_bytes = 0;
        true
    }
}

impl Outbox {
    const EMPTY: Self = Self {
        front: Vec::new(),
        sent: 0,
        segments: VecDeque::new(),
        control_end: 0,
        control_bytes: 0,
        unflushed: false,
    };

    /// Creates an outbox for a stream that may be buffering output already.
    pub(crate) fn unflushed() -> Self {
        Self {
            unflushed: true,
            ..Self::default()
        }
    }

    /// Returns the number of queued bytes.
    pub(crate) fn len(&self) -> usize {
        let front = self.front.len() - self.sent;
        if self.segments.is_empty() {
            return front;
        }
        front + self.segments().map(Segment::len).sum::<usize>()
    }

    /// Discards all frames of which nothing has been written. A partly written frame stays, because
    /// otherwise the peer could not parse what follows.
    pub(crate) fn discard_unbegun(&mut self) {
        let boundary = self.next_boundary();
        let is_begun = |first: &mut Segment| boundary.is_none() || first.is_begun();
        let mut segments = std::mem::take(&mut self.segments);
        let first_is_begun = segments.front_mut().is_some_and(is_begun);
        let first = segments.pop_front().filter(|_| first_is_begun);
        match first {
            Some(mut first) => {
                drop(first.split_at_next_boundary());
                pool::give(std::mem::take(&mut first.behind));
                first.control_end = 0;
                if !first.is_written() {
                    self.segments = VecDeque::from([first]);
                }
            }
            None => {
                self.front.truncate(boundary.unwrap_or(self.front.len()));
                self.control_end = self.control_end.min(self.front.len());
            }
        }
        if self.front.len() == self.sent && self.first().is_none() {
            self.forget_front();
        }
    }

    /// Returns the memory of the queue in bytes, without shared frames.
    pub(crate) fn capacity(&self) -> usize {
        if self.segments.capacity() == 0 {
            return self.front.capacity();
        }
        let segments: usize = self.segments().map(Segment::capacity).sum();
        self.front.capacity() + segments + self.segments.capacity() * size_of::<Segment>()
    }

    /// Takes all queued bytes.
    pub(crate) fn take_unsent(&mut self) -> Vec<u8> {
        let unsent = self.slices().flatten().copied().collect();
        *self = Self::default();
        unsent
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front.len() == self.sent && self.first().is_none()
    }

    /// Queues a message.
    pub(crate) fn push(&mut self, engine: &mut Engine<Side>, message: Message) -> Result<()> {
        let is_copied = message.len() <= COPIED_BYTES_MAX;
        #[cfg(feature = "deflate")]
        let is_copied = is_copied || engine.would_deflate(message.as_bytes());
        if is_copied {
            self.push_copy(engine, message.kind(), message.as_bytes())?;
            return Ok(());
        }
        self.push_in_place(engine, message)
    }

    /// Queues a message without compressing it.
    pub(crate) fn push_uncompressed(
        &mut self,
        engine: &mut Engine<Side>,
        message: Message,
    ) -> Result<()> {
        if message.len() > COPIED_BYTES_MAX {
            return self.push_in_place(engine, message);
        }
        let tail = self.tail(Header::BYTES_MAX + message.len());
        engine.send_uncompressed(tail, message.kind(), message.as_bytes())?;
        Ok(())
    }

    /// Queues a message whose payload is written in place, without copying it.
    fn push_in_place(&mut self, engine: &mut Engine<Side>, message: Message) -> Result<()> {
        let kind = message.kind();
        let prefix =
            engine.send_prefix(self.tail(Header::BYTES_MAX), kind, message.len() as u64)?;
        let mut payload = message.into_bytes();
        if let Some(MaskKey(key)) = prefix {
            mask::apply(key, 0, &mut payload);
        }
        self.push_block(Block::Payload(payload));
        Ok(())
    }

    /// Queues shared frames, in the role of a server.
    pub(crate) fn push_frames(
        &mut self,
        engine: &mut Engine<Side>,
        frames: &Frames,
    ) -> Result<(), SendError> {
        if engine.state() != State::Open {
            return Err(SendError::Closed);
        }
        if engine.is_message_in_progress() {
            return Err(SendError::MessageInProgress);
        }
        #[cfg(feature = "deflate")]
        if let Some(messages) = frames.prepared()
            && engine.compression().is_some()
        {
            for message in messages {
                engine.send_prepared(self.tail(Header::BYTES_MAX), message)?;
            }
            return Ok(());
        }
        let bytes = frames.shared();
        if bytes.len() <= SHARED_COPIED_BYTES_MAX {
            self.tail(bytes.len()).extend_from_slice(bytes);
        } else {
            self.push_block(Block::Shared(bytes.clone()));
        }
        Ok(())
    }

    /// Queues a message by copying it. The `payload` of a text message must be valid UTF-8.
    pub(crate) fn push_copy(
        &mut self,
        engine: &mut Engine<Side>,
        kind: MessageKind,
        payload: &[u8],
    ) -> Result<(), SendError> {
        engine.send(self.tail(Header::BYTES_MAX + payload.len()), kind, payload)
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

    /// Queues the control frames that are due, unless too many are queued already; the engine then
    /// keeps only the answer to the newest Ping.
    pub(crate) fn take_control(&mut self, engine: &mut Engine<Side>) {
        if self.is_empty() {
            self.control_bytes = 0;
        }
        if !engine.wants_transmit() {
            return;
        }
        if engine.state() != State::Open {
            // No frame may follow a Close frame, so it comes last.
            engine.poll_transmit(self.tail(Header::BYTES_MAX));
        } else if self.control_bytes < CONTROL_BYTES_MAX {
            self.put_control(engine);
        }
    }

    /// Queues control frames at the next frame boundary, before queued data and after earlier
    /// control frames.
    fn put_control(&mut self, engine: &mut Engine<Side>) {
        let mut frames = pool::take(0);
        engine.poll_transmit(&mut frames);
        self.control_bytes += frames.len() as u32;
        let (queue, end) = self.control_place();
        if queue.is_empty() {
            *end = frames.len();
            return pool::give(std::mem::replace(queue, frames));
        }
        queue.splice(*end..*end, frames.iter().copied());
        *end += frames.len();
        pool::give(frames);
    }

    /// Returns the buffer for control frames, and the position in it.
    fn control_place(&mut self) -> (&mut Vec<u8>, &mut usize) {
        let boundary = self.next_boundary();
        let segments = &mut self.segments;
        if let Some(first) = segments.front_mut()
            && (boundary.is_none() || first.is_begun())
        {
            if let Some(rest) = first.split_at_next_boundary() {
                segments.insert(1, rest);
            }
            // This does not panic: `first` exists, and the insertion does not remove it.
            let first = &mut segments[0];
            return (&mut first.behind, &mut first.control_end);
        }
        self.control_end = self.control_end.max(boundary.unwrap_or_default());
        (&mut self.front, &mut self.control_end)
    }

    /// Writes once; returns the number of bytes written.
    pub(crate) fn poll_write(
        &mut self,
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let written = if self.first().is_none() {
            ready!(io.poll_write(cx, &self.front[self.sent..]))?
        } else {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut count = 0;
            for (slot, bytes) in slices.iter_mut().zip(self.slices()) {
                *slot = IoSlice::new(bytes);
                count += 1;
            }
            ready!(io.poll_write_vectored(cx, &slices[..count]))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.unflushed = true;
        self.advance(written);
        Poll::Ready(Ok(written))
    }

    /// Flushes the stream.
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

    fn segments(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter()
    }

    fn first(&self) -> Option<&Segment> {
        self.segments.front()
    }

    /// Returns the non-empty slices of bytes to write.
    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let segments = self.segments().flat_map(Segment::slices);
        std::iter::once(&self.front[self.sent..])
            .chain(segments)
            .filter(|slice| !slice.is_empty())
    }

    /// Queues a block after everything else.
    fn push_block(&mut self, block: Block) {
        self.segments.push_back(Segment::new(block));
    }

    /// Returns the buffer to which the next frame is appended, with room for `bytes` more bytes.
    fn tail(&mut self, bytes: usize) -> &mut Vec<u8> {
        let tail = self
            .segments
            .back_mut()
            .map_or(&mut self.front, |last| &mut last.behind);
        pool::reserve(tail, bytes);
        tail
    }

    /// Accounts for `written` bytes and returns memory to the pool that is no longer needed.
    fn advance(&mut self, mut written: usize) {
        loop {
            let front = written.min(self.front.len() - self.sent);
            self.sent += front;
            written -= front;
            if self.sent < self.front.len() {
                return self.forget_written();
            }
            let Some(first) = self.segments.front_mut() else {
                return self.forget_front();
            };
            written = first.advance(written);
            if !first.is_written() {
                // The header of a payload is still needed to determine where its frame ends.
                if first.is_shared() {
                    self.forget_front();
                }
                return;
            }
            if let Some(Segment {
                block,
                behind,
                control_end,
                ..
            }) = self.segments.pop_front()
            {
                block.give();
                pool::give(std::mem::replace(&mut self.front, behind));
                (self.sent, self.control_end) = (0, control_end);
            }
        }
    }

    /// Removes `front`, which has been written.
    fn forget_front(&mut self) {
        pool::give(std::mem::take(&mut self.front));
        (self.sent, self.control_end) = (0, 0);
    }

    /// Removes the written frames once they are large enough, so that a queue that is never empty
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

    /// Returns the end of the frame that starts at `at` in `front`; this may be beyond `front`,
    /// because the payload may be in a block.
    fn frame_end(&self, at: usize) -> Option<usize> {
        let (header, bytes) = Header::decode(&self.front[at..]).ok()??;
        let end = at.saturating_add(bytes);
        Some(end.saturating_add(header.payload_bytes as usize))
    }

    /// Returns the first frame boundary in `front` at or after the written bytes, or `None` if it
    /// is after the payload block that follows.
    fn next_boundary(&self) -> Option<usize> {
        let mut at = 0;
        while at < self.sent {
            at = self.frame_end(at)?;
        }
        (at <= self.front.len()).then_some(at)
    }
}
