//! Frames from one connection to another, without looking at what they carry (RFC 6455 §5).
//!
//! A relay looks at headers only. Payloads are neither validated nor inflated nor put together: where
//! they stay as long as they are, which is wherever a relay is a server to the one side and a client to
//! the other, they are changed in place, in one pass with `k1 ^ k2`, the key that they came with and the
//! key that they go with; where neither side masks they are not touched at all. Extensions are up to the
//! two ends: reserved bits pass as they are, so both handshakes must have agreed on the same.

use linerate_simd::mask;

use crate::{
    error::ProtocolError,
    frame::{Header, MaskKey, Opcode},
    role::{Endpoint, Role},
};

/// Who answers Pings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Pings {
    /// The relay does; neither Pings nor Pongs pass. So each of its connections is kept alive, or found
    /// dead, for itself.
    Answer,
    /// The other end does; Pings and Pongs pass, so that they say something about the whole way.
    #[default]
    Forward,
}

/// One direction of a relay, without its I/O: makes frames for the sink of frames from the source.
///
/// ```
/// use linerate_proto::{Client, MaskKey, Role, relay::{Pings, Relay, Step}};
///
/// # fn main() -> Result<(), linerate_proto::ProtocolError> {
/// // To the source we are the server, to the sink the client.
/// let keys = || MaskKey([1, 2, 3, 4]);
/// let mut relay = Relay::new(Role::Server, Client::new(keys), Pings::Forward);
/// let mut input = *b"\x81\x84\x09\x09\x09\x09Zyhd\x81"; // "Spam" and the beginning of a header
///
/// let step = relay.next(&mut input)?;
/// assert_eq!(step, Some(Step::Forward { bytes: 10 }));
/// assert_eq!(input[..10], *b"\x81\x84\x01\x02\x03\x04Rrbi");
/// assert_eq!(relay.next(&mut input[10..])?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Relay<E> {
    source: Role,
    sink: E,
    pings: Pings,
    /// The frame whose payload is next, unless a header is.
    frame: Option<Passing>,
    is_closed: bool,
}

/// The payload of a frame that passes.
#[derive(Clone, Copy, Debug)]
struct Passing {
    left: u64,
    /// What to mask with to come from the key of the source to that of the sink.
    key: [u8; 4],
    phase: usize,
}

/// What to do with the first bytes of the input.
///
/// Complete: there is nothing else that could be done with them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// They are a Ping for the relay to answer, or a Pong that nobody waits for: drop them.
    Answer {
        /// How many.
        bytes: usize,
        /// Where the payload of a Ping is among them, unmasked by now; `None` for a Pong.
        ping: Option<PayloadRange>,
    },
    /// They are a Close frame, made ready for the sink. Send them; nothing follows.
    Close {
        /// How many.
        bytes: usize,
        /// A header to send in place of their first bytes, if it has another length.
        header: Option<NewHeader>,
        /// The code; `None` if there is none.
        code: Option<u16>,
    },
    /// They are ready for the sink: send them.
    Forward {
        /// How many.
        bytes: usize,
    },
    /// They are a header; send another in its place.
    Header {
        /// How many.
        bytes: usize,
        /// What to send.
        header: NewHeader,
    },
}

/// Where a payload is in the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PayloadRange {
    /// Its first byte.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// A header for the sink, encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewHeader {
    bytes: [u8; Header::BYTES_MAX],
    len: u8,
    /// How many bytes of the input it takes the place of.
    replaced: u8,
}

impl NewHeader {
    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }

    /// Returns how many bytes of the input it takes the place of.
    pub const fn replaced(&self) -> usize {
        self.replaced as usize
    }
}

impl<E: Endpoint> Relay<E> {
    /// Starts between two frames; `source` is the role in which we face the source, `sink` that in
    /// which we face the sink.
    pub const fn new(source: Role, sink: E, pings: Pings) -> Self {
        Self {
            source,
            sink,
            pings,
            frame: None,
            is_closed: false,
        }
    }

    /// Says what to do with the first bytes of `input`; call again with what follows them. What it
    /// forwards it has changed in place.
    ///
    /// `None` asks for more input: what is left, at most [`HELD_BYTES_MAX`](Self::HELD_BYTES_MAX), has
    /// to come again in front of it. After a Close frame all input is left.
    ///
    /// # Errors
    /// A header breaks the rules that say where frames end and how they are masked. All rules about what
    /// frames carry, and in which order, are for the ends to judge.
    pub fn next(&mut self, input: &mut [u8]) -> Result<Option<Step>, ProtocolError> {
        self.step(input, false)
    }

    /// Does as [`next`](Self::next), but goes no further than to the end of a frame, for somebody who
    /// has a frame of his own to send.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_frame(&mut self, input: &mut [u8]) -> Result<Option<Step>, ProtocolError> {
        self.step(input, true)
    }

    /// The most bytes of input that are not taken until more comes: a control frame's, less one.
    pub const HELD_BYTES_MAX: usize = 6 + 125 - 1;

    /// Returns whether the sink has whole frames once it has been sent what was forwarded.
    pub const fn is_between_frames(&self) -> bool {
        self.frame.is_none()
    }

    /// Returns whether a Close frame has passed.
    pub const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether headers keep their length, so that there is never a [`Step::Header`].
    pub fn is_in_place(&self) -> bool {
        self.source.expects_masked() != self.sink.role().expects_masked()
    }

    /// Returns the endpoint that faces the sink.
    pub const fn sink_mut(&mut self) -> &mut E {
        &mut self.sink
    }

    fn step(&mut self, input: &mut [u8], one: bool) -> Result<Option<Step>, ProtocolError> {
        let mut done = 0;
        while !self.is_closed && done < input.len() {
            if let Some(frame) = &mut self.frame {
                done += frame.pass(&mut input[done..]);
                if frame.left > 0 {
                    break;
                }
                self.frame = None;
                if one {
                    break;
                }
                continue;
            }
            // What is ready goes before what comes of the next header.
            let decoded = match self.decode(&input[done..]) {
                Err(_) | Ok(None) if done > 0 => break,
                decoded => decoded?,
            };
            let Some((header, bytes)) = decoded else {
                break;
            };
            let is_held = header.opcode == Opcode::Close
                || header.opcode.is_control() && self.pings == Pings::Answer;
            if is_held || !self.is_in_place() {
                if done > 0 {
                    break;
                }
                return Ok(if is_held {
                    self.control(header, bytes, input)
                } else {
                    Some(self.replace(header, bytes))
                });
            }
            self.rewrite(header, &mut input[done..done + bytes]);
            done += bytes;
            if one && self.frame.is_none() {
                break;
            }
        }
        Ok((done > 0).then_some(Step::Forward { bytes: done }))
    }

    fn decode(&self, input: &[u8]) -> Result<Option<(Header, usize)>, ProtocolError> {
        // Told by the second byte, before the rest of the header is there.
        if let [_, second, ..] = input
            && (second & 0x80 != 0) != self.source.expects_masked()
        {
            return Err(match self.source {
                Role::Client => ProtocolError::MaskedFrame,
                Role::Server => ProtocolError::UnmaskedFrame,
            });
        }
        Header::decode(input)
    }

    /// Begins a frame whose header keeps its length: only its key changes.
    fn rewrite(&mut self, header: Header, wire: &mut [u8]) {
        let key = self.sink.next_mask_key();
        if let (Some(MaskKey(key)), Some(place)) = (key, wire.last_chunk_mut()) {
            *place = key;
        }
        self.begin(header, key);
    }

    /// Begins a frame whose header gets another length.
    fn replace(&mut self, header: Header, bytes: usize) -> Step {
        let key = self.sink.next_mask_key();
        self.begin(header, key);
        Step::Header {
            bytes,
            header: new_header(header, bytes, key),
        }
    }

    fn begin(&mut self, header: Header, key: Option<MaskKey>) {
        let frame = Passing::new(header, key);
        self.frame = (frame.left > 0).then_some(frame);
    }

    /// Takes a control frame that must be whole.
    fn control(&mut self, header: Header, bytes: usize, input: &mut [u8]) -> Option<Step> {
        let end = bytes + header.payload_bytes as usize;
        let (head, payload) = input.get_mut(..end)?.split_at_mut(bytes);
        if let Some(MaskKey(key)) = header.mask {
            mask::apply(key, 0, payload);
        }
        if header.opcode != Opcode::Close {
            let is_ping = header.opcode == Opcode::Ping;
            let ping = is_ping.then_some(PayloadRange { start: bytes, end });
            return Some(Step::Answer { bytes: end, ping });
        }
        let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
        let key = self.sink.next_mask_key();
        if let Some(MaskKey(key)) = key {
            mask::apply(key, 0, payload);
        }
        self.is_closed = true;
        let replaced = !self.is_in_place();
        if let (false, Some(MaskKey(key)), Some(place)) = (replaced, key, head.last_chunk_mut()) {
            *place = key;
        }
        Some(Step::Close {
            bytes: end,
            header: replaced.then(|| new_header(header, bytes, key)),
            code,
        })
    }
}

impl Passing {
    fn new(header: Header, key: Option<MaskKey>) -> Self {
        let MaskKey(from) = header.mask.unwrap_or_default();
        let MaskKey(to) = key.unwrap_or_default();
        Self {
            left: header.payload_bytes,
            key: (u32::from_ne_bytes(from) ^ u32::from_ne_bytes(to)).to_ne_bytes(),
            phase: 0,
        }
    }

    /// Passes as much of `input` as belongs to the payload; returns how much that is.
    fn pass(&mut self, input: &mut [u8]) -> usize {
        let bytes = self.left.min(input.len() as u64) as usize;
        if self.key != [0; 4] {
            mask::apply(self.key, self.phase, &mut input[..bytes]);
        }
        self.left -= bytes as u64;
        // The key has four bytes.
        self.phase = self.phase.wrapping_add(bytes) % 4;
        bytes
    }
}

/// Encodes the header that takes the place of one of `replaced` bytes.
fn new_header(header: Header, replaced: usize, key: Option<MaskKey>) -> NewHeader {
    let mut bytes = [0; Header::BYTES_MAX];
    let header = Header {
        mask: key,
        ..header
    };
    let len = header.encode(&mut bytes) as u8;
    NewHeader {
        bytes,
        len,
        replaced: replaced as u8,
    }
}
