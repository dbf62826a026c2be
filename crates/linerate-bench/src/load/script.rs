//! The messages that the clients of an echo send, and the answers that they expect, built before
//! the clock starts.
//!
//! A script is a cycle of messages that all connections share. Each connection starts at another
//! place in it. Any two messages of a cycle differ, and if memory allows, a cycle has two windows
//! for each connection. An answer that is stale, swapped, repeated or meant for another connection
//! is therefore noticed, although checking an answer is no more than a memory comparison.

mod payload;

use flate2::{Compress, Compression, FlushCompress};
use linerate_proto::{Header, MaskKey, Opcode};
use linerate_simd::mask;

use super::{LoadError, Wire};
use crate::cell::{Deflate, Echo, Payload};

/// Desired size of a cycle, requests and answers together. It fits into a core's second-level
/// cache, along with what the kernel needs there.
const CYCLE_BYTES: u64 = 512 << 10;

/// Largest size of a cycle that has few large messages.
const CYCLE_BYTES_MAX: u64 = 80 << 20;

/// Least number of messages in a cycle, if their size allows that many.
const MESSAGES_MIN: u64 = 3;

/// The messages as they are sent and as they must come back.
#[derive(Debug)]
pub(crate) struct Script {
    /// The cycle on the wire, masked.
    requests: Vec<u8>,
    /// The end of each message in `requests`.
    request_ends: Vec<usize>,
    /// The cycle as a server answers it in unfragmented frames; empty if it returns the requests.
    answers: Vec<u8>,
    /// Number of bytes of each answer, including its header.
    pub(crate) answer_bytes: usize,
    /// Number of bytes of each answer's header; 0 on a raw wire.
    pub(crate) header_bytes: usize,
    /// Opcode of all messages.
    pub(crate) opcode: Opcode,
    /// How messages are compressed.
    pub(crate) deflate: Deflate,
    window: usize,
}

impl Script {
    /// Builds the messages of `echo`.
    ///
    /// # Errors
    ///
    /// Returns an error if the messages need more memory than a load may use.
    pub(crate) fn new(echo: &Echo, wire: Wire) -> Result<Self, LoadError> {
        let messages = messages(echo)?;
        let opcode = match echo.payload {
            Payload::Binary => Opcode::Binary,
            Payload::Ascii | Payload::Json | Payload::Multibyte => Opcode::Text,
        };
        let mut builder = Builder::new(echo, opcode);
        for number in 0..messages {
            builder.add(number);
        }
        let mut script = Self {
            answer_bytes: builder.answers.len() / messages,
            header_bytes: Header::new(opcode, u64::from(echo.payload_bytes), None).encoded_bytes(),
            requests: builder.requests,
            request_ends: builder.request_ends,
            answers: builder.answers,
            opcode,
            deflate: echo.deflate,
            window: echo.window as usize,
        };
        if wire == Wire::Raw {
            script.answer_bytes = script.requests.len() / messages;
            script.header_bytes = 0;
            script.answers = Vec::new();
        }
        Ok(script)
    }

    /// Returns the cycle as it is sent.
    pub(crate) fn requests(&self) -> &[u8] {
        &self.requests
    }

    /// Returns the cycle as it must come back.
    pub(crate) fn answers(&self) -> &[u8] {
        match self.header_bytes {
            0 => &self.requests,
            _ => &self.answers,
        }
    }

    /// Returns the number of messages in the cycle.
    pub(crate) fn messages(&self) -> usize {
        self.request_ends.len()
    }

    /// Returns the index of the message with which a connection begins.
    ///
    /// With context takeover that is the first message, because later ones refer to the ones before
    /// them.
    pub(crate) fn first(&self, connection: usize) -> usize {
        match self.deflate {
            Deflate::Takeover => 0,
            _ if self.messages() >= 2 * self.window => {
                connection * 2 * self.window % self.messages()
            }
            _ => connection % self.messages(),
        }
    }

    /// Returns where a message of the cycle begins in the requests.
    pub(crate) fn request_start(&self, message: usize) -> usize {
        match message {
            0 => 0,
            _ => self.request_ends[message - 1],
        }
    }

    /// Returns the length on the wire of `count` messages from `first` on, and the index of the
    /// message after them.
    pub(crate) fn request_span(&self, first: usize, count: usize) -> (usize, usize) {
        let cycle = self.messages();
        let end = first + count;
        let bytes = end / cycle * self.requests.len() + self.request_start(end % cycle)
            - self.request_start(first);
        (bytes, end % cycle)
    }
}

/// Returns the number of messages in a cycle of `echo`.
fn messages(echo: &Echo) -> Result<usize, LoadError> {
    let header = Header::BYTES_MAX as u64;
    let bytes = 2 * u64::from(echo.payload_bytes) + (u64::from(echo.frames) + 1) * header;
    if 2 * bytes > CYCLE_BYTES_MAX {
        return Err(LoadError::TooLarge {
            bytes: 2 * bytes,
            bytes_max: CYCLE_BYTES_MAX,
        });
    }
    let window = u64::from(echo.window);
    let wanted = 2 * window * u64::from(echo.connections);
    let fitting = CYCLE_BYTES / bytes;
    let messages = if wanted.max(MESSAGES_MIN) <= fitting {
        wanted.max(MESSAGES_MIN)
    } else if fitting >= 2 * window.max(MESSAGES_MIN) {
        // A window that does not wrap around the end of the cycle can be written at once.
        fitting - fitting % window
    } else {
        // The number is odd so that windows, which are usually powers of two, do not always begin
        // with the same messages.
        fitting.max(MESSAGES_MIN) | 1
    };
    Ok(messages.min(CYCLE_BYTES_MAX / bytes) as usize)
}

/// Builds a script, message by message.
struct Builder {
    payload: Payload,
    payload_bytes: usize,
    frames: usize,
    opcode: Opcode,
    deflate: Deflate,
    compress: Compress,
    requests: Vec<u8>,
    request_ends: Vec<usize>,
    answers: Vec<u8>,
}

impl Builder {
    fn new(echo: &Echo, opcode: Opcode) -> Self {
        Self {
            payload: echo.payload,
            payload_bytes: echo.payload_bytes as usize,
            frames: echo.frames.max(1) as usize,
            opcode,
            deflate: echo.deflate,
            compress: Compress::new(Compression::default(), false),
            requests: Vec::new(),
            request_ends: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn add(&mut self, number: usize) {
        let payload = payload::build(self.payload, number, self.payload_bytes);
        push_header(
            &mut self.answers,
            &Header::new(self.opcode, payload.len() as u64, None),
        );
        self.answers.extend_from_slice(&payload);
        let sent = match self.deflate {
            Deflate::Off => payload,
            Deflate::NoTakeover => {
                self.compress.reset();
                deflate(&mut self.compress, &payload)
            }
            Deflate::Takeover => deflate(&mut self.compress, &payload),
        };
        self.push_request(number, &sent);
        self.request_ends.push(self.requests.len());
    }

    /// Appends a message in as many frames as requested, each with a different masking key.
    fn push_request(&mut self, number: usize, payload: &[u8]) {
        let (share, more) = (payload.len() / self.frames, payload.len() % self.frames);
        let mut rest = payload;
        for frame in 0..self.frames {
            let (part, behind) = rest.split_at(share + usize::from(frame < more));
            rest = behind;
            let seed = (number * self.frames + frame + 1) as u32;
            // Successive keys share no byte pattern.
            let key = seed.wrapping_mul(0x9E37_79B1).to_be_bytes();
            let header = Header {
                fin: frame + 1 == self.frames,
                // RFC 7692 §6.1: RSV1 marks the first frame of a compressed message.
                rsv: if frame == 0 && self.deflate != Deflate::Off {
                    4
                } else {
                    0
                },
                opcode: if frame == 0 {
                    self.opcode
                } else {
                    Opcode::Continuation
                },
                mask: Some(MaskKey(key)),
                payload_bytes: part.len() as u64,
            };
            push_header(&mut self.requests, &header);
            mask::append(key, 0, part, &mut self.requests);
        }
    }
}

/// Compresses one message (RFC 7692 §7.2.1).
fn deflate(compress: &mut Compress, payload: &[u8]) -> Vec<u8> {
    let mut output = Vec::with_capacity(payload.len() + 64);
    let before = compress.total_in();
    loop {
        let taken = (compress.total_in() - before) as usize;
        compress
            .compress_vec(&payload[taken..], &mut output, FlushCompress::Sync)
            .expect("compression of any bytes succeeds");
        // The flush is complete if there is room left in the output.
        if output.len() < output.capacity() {
            break;
        }
        output.reserve(output.len());
    }
    // "Remove 4 octets (that are 0x00 0x00 0xff 0xff) from the tail end."
    output.truncate(output.len() - 4);
    output
}

fn push_header(wire: &mut Vec<u8>, header: &Header) {
    let mut bytes = [0; Header::BYTES_MAX];
    let length = header.encode(&mut bytes);
    wire.extend_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests;
