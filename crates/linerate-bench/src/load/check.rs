//! Checks the answers of an echo, byte by byte.
//!
//! Most servers answer in unfragmented frames. Each read of these, headers included, is compared
//! with the script by a single memory comparison. Where a header differs from the expected one, and
//! in compressed sessions, the frames are parsed ([`parse`]), because a server may fragment as it
//! likes and send Pings.

pub(crate) mod parse;

use linerate_proto::frame::BulkEncoder;
use linerate_proto::{Header, MaskKey, Opcode};

use self::parse::{Frames, Progress};
use super::LoadError;
use super::script::Script;
use crate::cell::Deflate;

/// The state of one connection: which answers are due, and which have arrived.
#[derive(Debug)]
pub(crate) struct Check {
    /// Index in the cycle of the message whose answer is expected, and how many bytes of that
    /// answer have arrived.
    message: usize,
    offset: usize,
    /// Number of messages whose answers have arrived.
    answered: u64,
    /// Bytes of answers that are due, in the form in which the script has them.
    due: u64,
    frames: Frames,
    /// True if frames have to be parsed, at least up to the end of this message.
    parsing: bool,
    /// True if we have sent a Close frame.
    closing: bool,
    /// True if the server has sent a Close frame.
    closed: bool,
    /// Masked Pongs that have to be sent.
    pongs: Vec<u8>,
}

impl Check {
    /// Creates a check that expects the answers to the messages from `first` on.
    pub(crate) fn new(script: &Script, first: usize) -> Self {
        Self {
            message: first,
            offset: 0,
            answered: 0,
            due: 0,
            frames: Frames::new(script.deflate),
            parsing: script.deflate != Deflate::Off,
            closing: false,
            closed: false,
            pongs: Vec::new(),
        }
    }

    /// Expects the answers to `messages` more messages.
    pub(crate) fn expect(&mut self, script: &Script, messages: u64) {
        self.due += messages * script.answer_bytes as u64;
    }

    /// Expects the answer to a Close frame.
    pub(crate) fn expect_close(&mut self) {
        self.closing = true;
    }

    /// Compares input with the answers that are due.
    ///
    /// # Errors
    ///
    /// Returns an error if the input differs or violates the protocol.
    pub(crate) fn take(&mut self, script: &Script, input: &[u8]) -> Result<(), LoadError> {
        let mut rest = input;
        while !rest.is_empty() {
            let taken = if self.parsing {
                self.parse(script, rest)?
            } else {
                self.compare(script, rest)?
            };
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Returns the number of bytes of answers that are due, in the form in which the script has
    /// them.
    pub(crate) fn due(&self) -> u64 {
        self.due
    }

    /// Returns the number of messages whose answers have arrived.
    pub(crate) fn answered(&self) -> u64 {
        self.answered
    }

    /// Returns the number of bytes of answers that have arrived, in the form in which the script
    /// has them.
    pub(crate) fn verified(&self, script: &Script) -> u64 {
        self.answered * script.answer_bytes as u64 + self.offset as u64
    }

    /// Returns whether the server has answered our Close frame.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Returns and removes the Pongs that have to be sent. Send them between two frames.
    pub(crate) fn take_pongs(&mut self) -> Option<Vec<u8>> {
        (!self.pongs.is_empty()).then(|| std::mem::take(&mut self.pongs))
    }

    /// Compares input with what is left of the cycle. Returns the number of bytes consumed.
    fn compare(&mut self, script: &Script, input: &[u8]) -> Result<usize, LoadError> {
        let at = self.message * script.answer_bytes + self.offset;
        let expected = &script.answers()[at..];
        let bytes = input.len().min(expected.len());
        let bytes = bytes.min(usize::try_from(self.due).unwrap_or(usize::MAX));
        if bytes == 0 {
            // Nothing is due, so the input is a control frame or an error.
            if script.header_bytes == 0 {
                return Err(LoadError::Unasked {
                    message: self.answered,
                });
            }
            self.parsing = true;
            return Ok(0);
        }
        if input[..bytes] == expected[..bytes] {
            self.advance(script, bytes);
            return Ok(bytes);
        }
        let same = common(&input[..bytes], &expected[..bytes]);
        self.advance(script, same);
        if self.offset >= script.header_bytes {
            return Err(LoadError::Differs {
                message: self.answered,
                byte: (self.offset - script.header_bytes) as u64,
                expected: expected[same],
                found: input[same],
            });
        }
        // The header has another form. The bytes so far are the same in both forms.
        let start = self.message * script.answer_bytes;
        let head = &script.answers()[start..start + self.offset];
        self.frames.begin(head);
        self.due += self.offset as u64;
        self.offset = 0;
        self.parsing = true;
        Ok(same)
    }

    /// Advances by `bytes` bytes of the answers, at most to the end of the cycle.
    fn advance(&mut self, script: &Script, bytes: usize) {
        self.due -= bytes as u64;
        let end = self.offset + bytes;
        if end < script.answer_bytes {
            self.offset = end;
            return;
        }
        let messages = end / script.answer_bytes;
        self.offset = end % script.answer_bytes;
        self.answered += messages as u64;
        self.message += messages;
        if self.message == script.messages() {
            self.message = 0;
        }
    }

    fn parse(&mut self, script: &Script, input: &[u8]) -> Result<usize, LoadError> {
        let start = self.message * script.answer_bytes;
        let answer = &script.answers()[start + script.header_bytes..start + script.answer_bytes];
        let expected = parse::Expected {
            message: self.answered,
            opcode: script.opcode,
            // No message is due once everything that was requested has been answered.
            payload: (self.due > 0).then_some(answer),
        };
        let (progress, taken) = self.frames.take(&expected, input)?;
        match progress {
            Progress::Closed(code) if !self.closing || self.due > 0 => {
                return Err(LoadError::Closed { code });
            }
            Progress::Closed(_) => self.closed = true,
            Progress::Message => self.advance(script, script.answer_bytes - self.offset),
            Progress::Payload(bytes) => {
                let offset = script.header_bytes + bytes;
                // The last byte is counted when the message ends.
                if offset < script.answer_bytes {
                    self.advance(script, offset - self.offset);
                }
            }
            // §5.5.3: a Pong has the same application data as its Ping.
            Progress::Ping(payload) => self.pongs.extend(masked_frame(Opcode::Pong, &payload)),
            Progress::Nothing => {}
        }
        self.parsing = script.deflate != Deflate::Off || !self.frames.is_between_messages();
        Ok(taken)
    }
}

/// Builds a short frame as a client sends it.
pub(crate) fn masked_frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    const KEY: MaskKey = MaskKey(*b"line");
    let mut buffer = vec![0; Header::BYTES_MAX + payload.len()];
    let mut encoder = BulkEncoder::new(&mut buffer);
    encoder.push(opcode, payload, Some(KEY));
    encoder.written().to_vec()
}

/// Returns how many bytes at the start of both slices are the same.
pub(crate) fn common(one: &[u8], other: &[u8]) -> usize {
    let bytes = one.len().min(other.len());
    // In the usual case, a single memory comparison is enough.
    if one[..bytes] == other[..bytes] {
        return bytes;
    }
    let differs = |(one, other): (&u8, &u8)| one != other;
    one.iter().zip(other).position(differs).unwrap_or(bytes)
}

#[cfg(test)]
mod tests;
