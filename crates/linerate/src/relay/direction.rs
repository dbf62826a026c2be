//! One direction of a relay: reads, converts for the other side, and writes.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use linerate_proto::{
    CloseCode, Endpoint, Header, MaskKey, Opcode, ProtocolError,
    relay::{Pings, Relay, Step},
};
use linerate_simd::mask;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{RelayEnd, RelayError, Transfer};
use crate::{
    link::Side,
    parts::RawStream,
    pool::{self, ReadSize},
};

/// How many bytes of answers to Pings may be queued; beyond that, only newer Pings are answered
/// (RFC 6455 §5.5.3).
const ANSWERS_BYTES_MAX: usize = 4 << 10;

/// Payloads up to this size in bytes are copied after their header.
const COPIED_BYTES_MAX: usize = 4 << 10;

/// How many bytes to collect for one write.
const GATHERED_BYTES_MAX: usize = 32 << 10;

/// One direction of a running relay.
pub(super) struct Direction {
    relay: Relay<Side>,
    /// Our role towards the source.
    source: Side,
    /// Output to write before anything else.
    queue: Vec<u8>,
    queue_at: usize,
    /// What was read: `..at` is written, `at..ready` is ready to be written, and `ready..end` has
    /// not been processed.
    input: Vec<u8>,
    at: usize,
    ready: usize,
    end: usize,
    /// The beginning of a frame that cannot be forwarded until more of it arrives.
    held: Vec<u8>,
    /// Frames for the source.
    answers: Vec<u8>,
    /// Frames from the other direction, to be inserted between two frames.
    inserted: Vec<u8>,
    unflushed: bool,
    /// True if the stream of the source has ended.
    is_at_end: bool,
    is_over: bool,
    bytes_read: u64,
    transfer: Transfer,
}

impl Direction {
    /// Creates a direction that starts with the source's `unread` input and the `unsent` output for
    /// the sink.
    pub(super) fn new(
        source: Side,
        sink: Side,
        pings: Pings,
        unread: Vec<u8>,
        unsent: Vec<u8>,
    ) -> Self {
        Self {
            relay: Relay::new(source.0, sink, pings),
            source,
            queue: unsent,
            queue_at: 0,
            at: 0,
            ready: 0,
            end: unread.len(),
            input: unread,
            held: Vec::new(),
            answers: Vec::new(),
            inserted: Vec::new(),
            unflushed: false,
            is_at_end: false,
            is_over: false,
            bytes_read: 0,
            transfer: Transfer::default(),
        }
    }

    /// Forwards what can be forwarded now; ready when nothing will follow.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut RawStream,
        sink: &mut RawStream,
        end: RelayEnd,
    ) -> Poll<Result<(), RelayError>> {
        let sink_failed = |error| RelayError::Io {
            end: end.other(),
            error,
        };
        while !self.is_over {
            ready!(self.poll_write(cx, sink)).map_err(sink_failed)?;
            if self.take_inserted() {
                continue;
            }
            if self.relay.is_closed() || self.is_at_end {
                ready!(self.poll_end(cx, sink)).map_err(sink_failed)?;
                break;
            }
            let filled = self.fill();
            if filled.map_err(|error| RelayError::Protocol { end, error })? {
                continue;
            }
            // Flush before waiting for more input.
            self.poll_flush(cx, sink).map_err(sink_failed)?;
            let read = self.poll_read(cx, source);
            ready!(read.map_err(|error| RelayError::Io { end, error })?);
        }
        Poll::Ready(Ok(()))
    }

    /// Queues frames for the sink, to be written at the next frame boundary.
    pub(super) fn insert(&mut self, frames: &[u8]) {
        if self.inserted.len() + frames.len() <= ANSWERS_BYTES_MAX {
            self.inserted.extend_from_slice(frames);
        }
    }

    /// Takes the queued frames for the source.
    pub(super) fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answers)
    }

    /// Returns whether a frame may be written to the sink now.
    pub(super) fn is_between_frames(&self) -> bool {
        let is_written = self.queue_at == self.queue.len() && self.at == self.ready;
        is_written && self.relay.is_between_frames() && !self.relay.is_closed() && !self.is_over
    }

    pub(super) fn sink(&mut self) -> &mut Side {
        self.relay.sink_mut()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    pub(super) fn transfer(&self) -> Transfer {
        self.transfer
    }

    /// Writes everything that is ready.
    fn poll_write(&mut self, cx: &mut Context<'_>, sink: &mut RawStream) -> Poll<io::Result<()>> {
        loop {
            let is_queued = self.queue_at < self.queue.len();
            let bytes = if is_queued {
                &self.queue[self.queue_at..]
            } else if self.at < self.ready {
                &self.input[self.at..self.ready]
            } else {
                self.queue.clear();
                self.queue_at = 0;
                return Poll::Ready(Ok(()));
            };
            let written = ready!(Pin::new(&mut *sink).poll_write(cx, bytes))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            match is_queued {
                true => self.queue_at += written,
                false => self.at += written,
            }
            self.unflushed = true;
            self.transfer.bytes += written as u64;
        }
    }

    /// Queues the frames to insert if this is a frame boundary; returns whether it did.
    fn take_inserted(&mut self) -> bool {
        let is_due = !self.inserted.is_empty() && self.is_between_frames();
        if is_due {
            self.queue.append(&mut self.inserted);
        }
        is_due
    }

    /// Makes more of the input ready; returns whether there is anything to write.
    fn fill(&mut self) -> Result<bool, ProtocolError> {
        let mut is_more = true;
        while is_more && self.at == self.ready && self.queue.len() < GATHERED_BYTES_MAX {
            is_more = self.step()?;
            if !self.inserted.is_empty() && self.relay.is_between_frames() {
                break;
            }
        }
        Ok(is_more || !self.queue.is_empty())
    }

    /// Processes one step; returns whether there was one.
    fn step(&mut self) -> Result<bool, ProtocolError> {
        if self.at == self.end {
            self.give_input();
            return Ok(false);
        }
        let input = &mut self.input[self.at..self.end];
        let step = match self.inserted.is_empty() {
            true => self.relay.next(input)?,
            false => self.relay.next_frame(input)?,
        };
        let Some(step) = step else {
            self.held.clear();
            self.held.extend_from_slice(&self.input[self.at..self.end]);
            self.give_input();
            return Ok(false);
        };
        match step {
            Step::Answer { bytes, ping } => {
                if let Some(ping) = ping {
                    let payload = self.at + ping.start..self.at + ping.end;
                    self.answer(payload);
                }
                self.skip(bytes);
            }
            Step::Close {
                bytes,
                header,
                code,
            } => {
                (self.transfer.closed, self.transfer.code) = (true, code);
                if let Some(header) = header {
                    self.queue.extend_from_slice(header.as_slice());
                    self.skip(header.replaced());
                }
                self.ready = self.at + bytes - header.map_or(0, |header| header.replaced());
            }
            Step::Forward { bytes } => self.forward(bytes),
            Step::Header { bytes, header } => {
                self.queue.extend_from_slice(header.as_slice());
                self.skip(bytes);
            }
        }
        Ok(true)
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.ready = self.at;
    }

    /// Makes the next bytes of the input ready. A small payload is copied to the queue after the
    /// header that we generated for it, so that many small frames become one write.
    fn forward(&mut self, bytes: usize) {
        self.ready = self.at + bytes;
        if !self.relay.is_in_place() && bytes <= COPIED_BYTES_MAX {
            self.queue
                .extend_from_slice(&self.input[self.at..self.ready]);
            self.at = self.ready;
        }
    }

    /// Queues a Pong for the source with the payload of its Ping.
    fn answer(&mut self, payload: std::ops::Range<usize>) {
        if self.answers.len() >= ANSWERS_BYTES_MAX {
            self.answers.clear();
        }
        let payload = &self.input[payload];
        append_control(&mut self.source, Opcode::Pong, payload, &mut self.answers);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>, sink: &mut RawStream) -> io::Result<()> {
        if self.unflushed
            && let Poll::Ready(flushed) = Pin::new(sink).poll_flush(cx)
        {
            flushed?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// Reads once, appending to the held bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>, source: &mut RawStream) -> Poll<io::Result<()>> {
        pool::with_read_buffer(ReadSize::Usual, |buffer| {
            let held = self.held.len();
            buffer[..held].copy_from_slice(&self.held);
            let mut read = ReadBuf::new(&mut buffer[held..]);
            ready!(Pin::new(source).poll_read(cx, &mut read))?;
            let bytes = read.filled().len();
            if bytes == 0 {
                self.is_at_end = true;
                return Poll::Ready(Ok(()));
            }
            self.bytes_read += bytes as u64;
            self.held.clear();
            self.input = std::mem::take(buffer);
            (self.at, self.ready, self.end) = (0, 0, held + bytes);
            Poll::Ready(Ok(()))
        })
    }

    /// Flushes the sink after a Close frame; without one, shuts the sink down to signal the end.
    fn poll_end(&mut self, cx: &mut Context<'_>, sink: &mut RawStream) -> Poll<io::Result<()>> {
        if self.relay.is_closed() {
            ready!(Pin::new(sink).poll_flush(cx))?;
        } else {
            ready!(Pin::new(sink).poll_shutdown(cx))?;
        }
        self.give_input();
        self.is_over = true;
        Poll::Ready(Ok(()))
    }

    /// Returns the memory of used input to the pool.
    fn give_input(&mut self) {
        pool::give_input(std::mem::take(&mut self.input));
        (self.at, self.ready, self.end) = (0, 0, 0);
    }
}

/// Appends our own Close frame.
pub(super) fn append_close(endpoint: &mut Side, code: CloseCode, frames: &mut Vec<u8>) {
    let payload = code.as_u16().to_be_bytes();
    append_control(endpoint, Opcode::Close, &payload, frames);
}

fn append_control(endpoint: &mut Side, opcode: Opcode, payload: &[u8], frames: &mut Vec<u8>) {
    let key = endpoint.next_mask_key();
    let mut header = [0; Header::BYTES_MAX];
    let bytes = Header::new(opcode, payload.len() as u64, key).encode(&mut header);
    frames.extend_from_slice(&header[..bytes]);
    match key {
        Some(MaskKey(key)) => mask::append(key, 0, payload, frames),
        None => frames.extend_from_slice(payload),
    }
}
