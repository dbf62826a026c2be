//! Input that was read and not parsed yet.

use std::{
    io,
    ops::Range,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::{
    clock,
    pool::{self, ReadSize},
    transport::Transport,
};

/// Input that was read and not parsed yet, in memory of the pool.
#[derive(Default)]
pub(super) struct Unparsed {
    bytes: Vec<u8>,
    at: u32,
    end: u32,
}

impl Unparsed {
    pub(super) const EMPTY: Self = Self {
        bytes: Vec::new(),
        at: 0,
        end: 0,
    };

    #[inline]
    pub(super) fn new(input: &[u8]) -> Self {
        let mut bytes = Vec::new();
        if !input.is_empty() {
            bytes = pool::take(input.len());
            bytes.extend_from_slice(input);
        }
        Self {
            bytes,
            at: 0,
            end: input.len() as u32,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.end
    }

    pub(super) fn len(&self) -> usize {
        (self.end - self.at) as usize
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.at as usize..self.end as usize]
    }

    /// Removes bytes that were parsed.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes as u32;
    }

    /// Returns the buffer and the range of the input in it, and removes everything.
    pub(super) fn take(&mut self) -> (Vec<u8>, Range<usize>) {
        let Self { bytes, at, end } = std::mem::take(self);
        (bytes, at as usize..end as usize)
    }

    /// Removes everything and returns the memory to the pool.
    pub(super) fn clear(&mut self) {
        pool::give_input(std::mem::take(self).bytes);
    }

    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Reads once from `io` into a buffer of the thread, and returns the bytes that were read.
    pub(super) fn poll_read(
        io: Pin<&mut Transport>,
        cx: &mut Context<'_>,
        size: ReadSize,
    ) -> Poll<io::Result<Self>> {
        pool::with_read_buffer(size, |buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(io.poll_read(cx, &mut read))?;
            let bytes = read.filled().len();
            if bytes * 8 < buffer.len() {
                return Poll::Ready(Ok(Self::new(&buffer[..bytes])));
            }
            Poll::Ready(Ok(Self {
                bytes: std::mem::take(buffer),
                at: 0,
                end: bytes as u32,
            }))
        })
    }
}

/// State of the engine's clock. Reading the time costs as much as a short message, so it is done
/// once for each read from the socket; the engine keeps the latest time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum EngineTime {
    Current,
    Stale,
}

impl EngineTime {
    /// Returns the time to pass to the engine.
    pub(super) fn tell(&mut self) -> Duration {
        match std::mem::replace(self, Self::Current) {
            Self::Current => Duration::ZERO,
            Self::Stale => clock::now(),
        }
    }
}
