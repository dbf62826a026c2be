//! Passes frames from one connection to another without inspecting their payloads (RFC 6455 §5).
//!
//! A relay reads only headers. It does not validate, inflate or reassemble payloads. If it is a
//! server on one side and a client on the other, headers keep their length, and it masks each
//! payload again in place, in one pass with `k1 ^ k2`: the old and the new masking key. If a frame
//! is masked on neither side, its payload is not touched. Extensions are up to the two ends:
//! reserved bits are passed unchanged, so both handshakes must have negotiated the same extensions.

use linerate_simd::mask;

use crate::{
    error::ProtocolError,
    frame::Header,
    opcode::Opcode,
    role::{Endpoint, MaskKey, Role},
};

/// Which endpoint answers Pings.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Pings {
    /// The relay answers; it forwards neither Pings nor Pongs. Each of its two connections is kept
    /// alive, or found dead, separately.
    Answer,
    /// The other end answers; the relay forwards Pings and Pongs, so that they test the whole path.
    #[default]
    Forward,
}

/// One direction of a relay, without I/O: turns frames from the source into frames for the sink.
///
/// ```
/// use linerate_proto::{Client, MaskKey, Role, relay::{Pings, Relay, Step}};
///
/// # fn main() -> Result<(), linerate_proto::ProtocolError> {
/// // We are the server of the source, and the client of the sink.
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
    /// The frame whose payload is next; `None` if a header is next.
    frame: Option<ForwardedFrame>,
    is_closed: bool,
}

/// The payload of the frame that is being forwarded.
#[derive(Clone, Copy, Debug)]
struct ForwardedFrame {
    left: u64,
    /// The XOR of the source's and the sink's masking keys.
    key: [u8; 4],
    phase: usize,
}

/// What to do with the first bytes of the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a relay must take each step")]
pub enum Step {
    /// They are a Ping that the relay must answer, or a Pong: do not forward them.
    Answer {
        /// The number of bytes.
        bytes: usize,
        /// The range of a Ping's payload, which is unmasked, in these bytes; `None` for a Pong.
        ping: Option<PayloadRange>,
    },
    /// They are a Close frame, ready for the sink. Send them; no frame follows.
    Close {
        /// The number of bytes.
        bytes: usize,
        /// A header to send instead of the first bytes, if its length differs.
        header: Option<NewHeader>,
        /// The close code; `None` if the frame has none.
        code: Option<u16>,
    },
    /// They are ready for the sink: send them.
    Forward {
        /// The number of bytes.
        bytes: usize,
    },
    /// They are a header; send another header instead.
    Header {
        /// The number of bytes.
        bytes: usize,
        /// The header to send.
        header: NewHeader,
    },
}

/// The range of a payload in the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a range has a start and an end")]
pub struct PayloadRange {
    /// The offset of its first byte.
    pub start: usize,
    /// The offset after its last byte.
    pub end: usize,
}

/// An encoded header for the sink.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NewHeader {
    bytes: [u8; Header::BYTES_MAX],
    len: u8,
    /// How many bytes of the input it replaces.
    replaced: u8,
}

impl NewHeader {
    /// Returns the encoded bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len.into()]
    }

    /// Returns how many bytes of the input this header replaces.
    pub const fn replaced(&self) -> usize {
        self.replaced as usize
    }
}

impl<E: Endpoint> Relay<E> {
    /// Creates a relay that starts at a frame boundary.
    ///
    /// `source` is our role on the connection to the source, `sink` our endpoint on the connection
    /// to the sink.
    pub const fn new(source: Role, sink: E, pings: Pings) -> Self {
        Self {
            source,
            sink,
            pings,
            frame: None,
            is_closed: false,
        }
    }

    /// Returns what to do with the first bytes of `input`; call this again with the bytes after
    /// them. Bytes to forward have been changed in place.
    ///
    /// Returns `None` if it needs more input: pass the remaining bytes, at most
    /// [`HELD_BYTES_MAX`](Self::HELD_BYTES_MAX), again together with what follows. After a Close
    /// frame no input is used.
    ///
    /// # Errors
    /// Fails if a header violates the rules for frame lengths or masking. The two ends must check
    /// all rules about the content and the order of frames.
    pub fn next(&mut self, input: &mut [u8]) -> Result<Option<Step>, ProtocolError> {
        self.step(input, false)
    }

    /// Like [`next`](Self::next), but stops at the end of a frame, so that the caller can insert
    /// a frame there.
    ///
    /// # Errors
    /// Same as for [`next`](Self::next).
    pub fn next_frame(&mut self, input: &mut [u8]) -> Result<Option<Step>, ProtocolError> {
        self.step(input, true)
    }

    /// The most bytes of input that can remain unused until more arrives: the longest masked
    /// control frame, less one byte.
    pub const HELD_BYTES_MAX: usize = 6 + 125 - 1;

    /// Returns whether the output to the sink ends at a frame boundary, once everything forwarded
    /// so far is sent.
    pub const fn is_between_frames(&self) -> bool {
        self.frame.is_none()
    }

    /// Returns whether a Close frame has been forwarded.
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
            // Forward what is ready before reporting the next header, or an error in it.
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
        // The second byte is enough to tell; do not wait for the rest of the header.
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

    /// Begins a frame whose header keeps its length; only the masking key changes.
    fn rewrite(&mut self, header: Header, wire: &mut [u8]) {
        let key = self.sink.next_mask_key();
        if let (Some(MaskKey(key)), Some(place)) = (key, wire.last_chunk_mut()) {
            *place = key;
        }
        self.begin(header, key);
    }

    /// Begins a frame whose header changes its length.
    fn replace(&mut self, header: Header, bytes: usize) -> Step {
        let key = self.sink.next_mask_key();
        self.begin(header, key);
        Step::Header {
            bytes,
            header: new_header(header, bytes, key),
        }
    }

    fn begin(&mut self, header: Header, key: Option<MaskKey>) {
        let frame = ForwardedFrame::new(header, key);
        self.frame = (frame.left > 0).then_some(frame);
    }

    /// Takes a control frame; `None` if it is not complete yet.
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

impl ForwardedFrame {
    fn new(header: Header, key: Option<MaskKey>) -> Self {
        let MaskKey(from) = header.mask.unwrap_or_default();
        let MaskKey(to) = key.unwrap_or_default();
        Self {
            left: header.payload_bytes,
            key: (u32::from_ne_bytes(from) ^ u32::from_ne_bytes(to)).to_ne_bytes(),
            phase: 0,
        }
    }

    /// Masks the part of `input` that belongs to the payload; returns its length in bytes.
    fn pass(&mut self, input: &mut [u8]) -> usize {
        let bytes = self.left.min(input.len() as u64) as usize;
        if self.key != [0; 4] {
            mask::apply(self.key, self.phase, &mut input[..bytes]);
        }
        self.left -= bytes as u64;
        // The key has four bytes, so only the offset modulo 4 matters.
        self.phase = self.phase.wrapping_add(bytes) % 4;
        bytes
    }
}

/// Encodes the header that replaces one of `replaced` bytes.
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
