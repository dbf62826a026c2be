//! Splits the bytes of a connection into replies.
//!
//! One buffer is reused for all reads, so it stays in the processor's cache. Each payload is copied
//! out once, into an allocation of exactly its size. Handing out slices of the buffer would save
//! that copy, but a short publication kept in a ring would then keep a whole buffer alive, and the
//! memory limits of rings would be meaningless.

use super::resp::{self, Parsed, Reply, RespError};

/// The size of the buffer in bytes while messages are small.
const BUFFER_BYTES: usize = 128 << 10;

/// A buffer larger than this number of bytes is freed when it is empty.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// An item of the input.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Item<'a> {
    /// A publication that is larger than allowed. It is skipped.
    Oversized {
        subscription: Option<&'a [u8]>,
        bytes: usize,
    },
    Reply(Reply<'a>),
}

/// A buffer of bytes that contains replies, and how much of it must be skipped.
#[derive(Debug)]
pub(super) struct Input {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    bytes_min: usize,
    skip_bytes: usize,
    skip_elements: usize,
    element_bytes_max: usize,
}

impl Input {
    /// Creates an empty buffer for elements of up to `element_bytes_max` bytes.
    pub(super) fn new(element_bytes_max: usize) -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            bytes_min: 1,
            skip_bytes: 0,
            skip_elements: 0,
            element_bytes_max,
        }
    }

    /// Returns the space to read into, which is never empty. After reading, call
    /// [`filled`](Self::filled).
    pub(super) fn space(&mut self) -> &mut [u8] {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > BUFFER_KEPT_MAX {
                self.buffer = vec![0; BUFFER_BYTES];
            }
        } else if self.end == self.buffer.len() || self.start > self.buffer.len() / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // Grow according to the bytes that have arrived, not to a length that was announced.
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Marks the first `bytes` bytes of the space as filled.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// Returns the next item of the input, or `None` if more bytes must be read first.
    pub(super) fn next(&mut self) -> Result<Option<Item<'_>>, RespError> {
        if !self.skip()? || self.end - self.start < self.bytes_min {
            return Ok(None);
        }
        let rest = &self.buffer[self.start..self.end];
        match resp::parse(rest, self.element_bytes_max)? {
            Parsed::Complete { reply, consumed } => {
                self.start += consumed;
                self.bytes_min = 1;
                Ok(Some(Item::Reply(reply)))
            }
            Parsed::Incomplete { bytes_min } => {
                self.bytes_min = bytes_min;
                Ok(None)
            }
            Parsed::Oversized {
                subscription,
                consumed,
                bytes,
                elements,
            } => {
                self.start += consumed;
                self.bytes_min = 1;
                self.skip_bytes = bytes.saturating_add(2);
                self.skip_elements = elements;
                Ok(Some(Item::Oversized {
                    subscription,
                    bytes,
                }))
            }
        }
    }

    /// Drops the bytes to skip that have arrived. Returns true if none are left to skip.
    fn skip(&mut self) -> Result<bool, RespError> {
        loop {
            let skipped = self.skip_bytes.min(self.end - self.start);
            self.start += skipped;
            self.skip_bytes -= skipped;
            if self.skip_bytes > 0 {
                return Ok(false);
            }
            if self.skip_elements == 0 {
                return Ok(true);
            }
            match resp::skip_element(&self.buffer[self.start..self.end])? {
                Some(bytes) => self.skip_bytes = bytes,
                None => return Ok(false),
            }
            self.skip_elements -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
