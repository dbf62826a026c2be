//! Compares what a server sends with what it should send, byte by byte.
//!
//! Nearly all servers send a message in one frame, so the bytes of that frame, including its
//! header, are compared as they arrive. When a header differs, frames are parsed ([`parse`]) up to
//! the end of that message, because a server may fragment as it likes and send Pings.

use linerate_proto::Opcode;

use super::check::parse::{self, Frames, Progress};
use super::check::{common, masked_frame};
use super::message::Expected;
use super::{LoadError, Wire};
use crate::cell::Deflate;

/// Compares the input of one connection.
#[derive(Debug)]
pub(crate) struct Answers {
    wire: Wire,
    opcode: Opcode,
    /// Number of the message that is arriving or comes next.
    message: u64,
    /// Number of bytes of its frame that have arrived, unless frames are being parsed.
    at: usize,
    frames: Frames,
    is_parsing: bool,
}

impl Answers {
    /// Creates a comparison that expects message 0 first. All messages have the given `opcode`,
    /// which is ignored on a raw wire.
    pub(crate) fn new(wire: Wire, opcode: Opcode) -> Self {
        Self {
            wire,
            opcode,
            message: 0,
            at: 0,
            frames: Frames::new(Deflate::Off),
            is_parsing: false,
        }
    }

    /// Returns how many messages have arrived.
    pub(crate) fn messages(&self) -> u64 {
        self.message
    }

    /// Makes `message` the number of the next expected message. Returns false, and changes nothing,
    /// if a message has arrived in part.
    pub(crate) fn skip_to(&mut self, message: u64) -> bool {
        let is_between = self.at == 0 && !self.is_parsing;
        if is_between {
            self.message = message;
        }
        is_between
    }

    /// Compares input. `expected` returns the message with a given number, or `None` if no such
    /// message is due. Pongs that have to be sent are appended to `control`.
    pub(crate) fn handle_input<'e>(
        &mut self,
        input: &[u8],
        control: &mut Vec<u8>,
        expected: impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<(), LoadError> {
        let mut rest = input;
        while !rest.is_empty() {
            let due = expected(self.message);
            let taken = if self.is_parsing {
                self.parse(rest, control, due)?
            } else {
                self.compare(rest, due)?
            };
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Compares up to the end of a message or to a header that differs. Returns the number of bytes
    /// consumed.
    fn compare(&mut self, input: &[u8], due: Option<Expected<'_>>) -> Result<usize, LoadError> {
        let Some(message) = due else {
            if self.wire == Wire::Raw {
                return Err(LoadError::Unasked {
                    message: self.message,
                });
            }
            // The input is a control frame or an error.
            self.is_parsing = true;
            return Ok(0);
        };
        let rest = &message.frame[self.at..];
        let same = common(input, rest);
        self.at += same;
        if self.at == message.frame.len() {
            self.message += 1;
            self.at = 0;
        } else if same < input.len() {
            if self.at >= message.header_bytes {
                return Err(LoadError::Differs {
                    message: self.message,
                    byte: (self.at - message.header_bytes) as u64,
                    expected: rest[same],
                    found: input[same],
                });
            }
            self.frames.begin(&message.frame[..self.at]);
            self.at = 0;
            self.is_parsing = true;
        }
        Ok(same)
    }

    /// Parses part of the input. Returns the number of bytes consumed.
    fn parse(
        &mut self,
        input: &[u8],
        control: &mut Vec<u8>,
        due: Option<Expected<'_>>,
    ) -> Result<usize, LoadError> {
        let due = parse::Expected {
            message: self.message,
            opcode: self.opcode,
            payload: due.map(|message| message.payload()),
        };
        let (progress, taken) = self.frames.take(&due, input)?;
        match progress {
            Progress::Closed(code) => return Err(LoadError::Closed { code }),
            Progress::Message => self.message += 1,
            Progress::Nothing | Progress::Payload(_) => {}
            // §5.5.3: a Pong has the same application data as its Ping.
            Progress::Ping(payload) => control.extend(masked_frame(Opcode::Pong, &payload)),
        }
        self.is_parsing = !self.frames.is_between_messages();
        Ok(taken)
    }
}

#[cfg(test)]
mod tests;
