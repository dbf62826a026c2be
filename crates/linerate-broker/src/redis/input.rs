//! The bytes of a connection on their way to replies.
//!
//! One buffer is read into again and again and stays in the processor's cache; a payload is copied out once, into
//! exactly as many bytes as it has. Handing out parts of the buffer itself would save that copy, but then a
//! publication of a few bytes that some ring keeps would keep a buffer of many, and no bound on the memory of
//! rings would mean anything.

use super::resp::{self, Parsed, Reply, RespError};

/// The size of the buffer while messages are small.
const BUFFER_BYTES: usize = 128 << 10;

/// Above this size the buffer is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// What stands in the input.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Item<'a> {
    /// Something was published that is longer than allowed; it is skipped.
    Oversized {
        subscription: Option<&'a [u8]>,
        bytes: usize,
    },
    Reply(Reply<'a>),
}

/// A buffer of bytes, the replies in it, and what is to be skipped.
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

    /// Returns where to read to, never empty. What was read must be told to [`filled`](Self::filled).
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
        // By what has arrived, not by what was announced.
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        &mut self.buffer[self.end..]
    }

    /// Takes the first `bytes` bytes of the space into account.
    pub(super) fn filled(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// Returns the next thing in the input; `None` if more must be read first.
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

    /// Drops what is to be skipped, as far as it is there; `true` if nothing is left to skip.
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
