//! Parses arriving frames: checks headers and takes payloads in chunks (RFC 6455 §5.2–§5.6).

use alloc::boxed::Box;
use core::mem;

use linerate_simd::{mask, utf8::Validator};

use super::Data;
use crate::{
    close::ControlPayload,
    config::Limits,
    error::ProtocolError,
    frame::Header,
    opcode::{MessageKind, Opcode},
    role::{MaskKey, Role},
};

/// The state of the frame and the message that are arriving.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    /// Always [`Arriving::Nothing`] once all input is ignored.
    pub(super) frame: Arriving,
    pub(super) message: Option<PartialMessage>,
    pub(super) utf8: Validator,
    /// The first bytes of a control payload that is not complete yet.
    pub(super) control: Option<Box<ControlPayload>>,
    /// The reserved bits to which an extension gives a meaning, as in [`Header::rsv`].
    pub(super) rsv_known: u8,
}

/// The part of a frame that is arriving.
#[derive(Debug, Default)]
pub(super) enum Arriving {
    /// No frame has begun: the next byte is the first of one.
    #[default]
    Nothing,
    /// A header whose first `len` bytes have arrived.
    Header {
        bytes: [u8; Header::BYTES_MAX],
        len: u8,
    },
    /// The payload.
    Payload(Frame),
}

/// A frame whose payload is arriving.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Bytes of the payload that have not arrived yet.
    pub(super) left: u64,
    /// Bytes of the payload that have arrived, modulo 256: the offset for the masking key.
    pub(super) phase: u8,
    pub(super) mask: Option<MaskKey>,
    pub(super) opcode: Opcode,
    pub(super) fin: bool,
}

/// A message whose frames are arriving.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialMessage {
    pub(super) kind: MessageKind,
    /// The sum of the payload lengths of the frames so far.
    pub(super) bytes: u64,
    pub(super) fragments: u32,
    /// True if any event of this message was returned to the caller.
    pub(super) begun: bool,
    /// True if the message is compressed (RFC 7692 §6).
    pub(super) compressed: bool,
}

/// The meaning of the next bytes, determined before anything is borrowed for the caller.
pub(super) enum Step {
    Control(ControlFrame),
    /// A chunk of a message and its length; its payload ends at `at` in the input.
    Data(ChunkHeader, usize),
    /// No event yet: more input is needed.
    Feed,
    /// A chunk of a compressed message; its payload is the output of the decompressor.
    #[cfg(feature = "deflate")]
    Inflated(ChunkHeader),
}

/// A complete control frame.
pub(super) struct ControlFrame {
    pub(super) opcode: Opcode,
    /// The length of the last part of the payload; this part ends at `at` in the input.
    pub(super) bytes: usize,
    /// True if the payload arrived in several parts, which [`Receiving`] has joined.
    pub(super) is_joined: bool,
}

/// A complete, unfragmented message at the start of the input.
pub(super) struct WholeMessage {
    pub(super) kind: MessageKind,
    pub(super) mask: Option<MaskKey>,
    pub(super) prefix_bytes: usize,
    pub(super) bytes: usize,
}

/// A chunk of a message without its payload.
pub(super) struct ChunkHeader {
    pub(super) kind: MessageKind,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) frame_bytes_left: u64,
    pub(super) mask: Option<MaskKey>,
    pub(super) phase: usize,
    pub(super) offset: u64,
}

/// Returns the message at the start of `input` if it is complete and has the shortest form of a
/// masked header. Most messages that a server receives do, and decoding any header takes longer.
#[inline(always)]
fn short_masked_message(kind: MessageKind, input: &[u8], limits: &Limits) -> Option<WholeMessage> {
    /// The length of the header: two bytes and the masking key.
    const PREFIX_BYTES: usize = 6;
    let ([_, second, key @ ..], rest) = input.split_first_chunk::<PREFIX_BYTES>()?;
    // 126 and 127 announce a longer header, and the highest bit a masking key.
    let bytes = second.wrapping_sub(0x80);
    let fits = bytes <= 125 && usize::from(bytes) <= rest.len();
    (fits && limits.allow_message_of_one_frame(bytes.into())).then_some(WholeMessage {
        kind,
        mask: Some(MaskKey(*key)),
        prefix_bytes: PREFIX_BYTES,
        bytes: bytes.into(),
    })
}

impl Frame {
    /// Takes as many of the `available` bytes as belong to the payload; returns their number and
    /// their offset in the payload.
    #[inline]
    pub(super) fn take(&mut self, available: usize) -> (usize, usize) {
        let bytes = self.left.min(available as u64) as usize;
        let phase = self.phase;
        self.left -= bytes as u64;
        // Wrapping is correct: 256 is a multiple of the key's length, and no control frame is that
        // long.
        self.phase = phase.wrapping_add(bytes as u8);
        (bytes, phase.into())
    }
}

impl WholeMessage {
    /// Returns the message as a chunk that begins and ends it.
    #[inline]
    pub(super) fn header(&self) -> ChunkHeader {
        ChunkHeader {
            kind: self.kind,
            begins: true,
            ends: true,
            frame_bytes_left: 0,
            mask: self.mask,
            phase: 0,
            offset: 0,
        }
    }
}

impl ChunkHeader {
    #[inline]
    pub(super) fn data(self, payload: &mut [u8]) -> Data<'_> {
        let Self {
            kind,
            begins,
            ends,
            frame_bytes_left,
            mask,
            phase,
            offset,
        } = self;
        Data {
            kind,
            begins,
            ends,
            frame_bytes_left,
            inflated: false,
            payload,
            mask,
            phase,
            offset,
        }
    }
}

impl Receiving {
    /// Returns the message at the start of `input` if it is complete, in one frame and valid.
    #[inline(always)]
    pub(super) fn whole_message(
        &self,
        input: &[u8],
        role: Role,
        limits: &Limits,
    ) -> Option<WholeMessage> {
        if !matches!(self.frame, Arriving::Nothing) || self.message.is_some() {
            return None;
        }
        let kind = match input.first() {
            Some(0x81) => MessageKind::Text,
            Some(0x82) => MessageKind::Binary,
            _ => return None,
        };
        if role == Role::Server
            && let Some(whole) = short_masked_message(kind, input, limits)
        {
            return Some(whole);
        }
        let (header, prefix_bytes) = Header::decode(input).ok()??;
        if header.mask.is_some() != role.expects_masked()
            || header.payload_bytes > (input.len() - prefix_bytes) as u64
            || !limits.allow_message_of_one_frame(header.payload_bytes)
        {
            return None;
        }
        Some(WholeMessage {
            kind,
            mask: header.mask,
            prefix_bytes,
            bytes: header.payload_bytes as usize,
        })
    }

    /// Returns how many bytes of the payload that is arriving are still to come, if it belongs to a
    /// message that is not compressed.
    pub(super) fn payload_bytes_left(&self) -> u64 {
        match (&self.frame, self.message) {
            (Arriving::Payload(frame), Some(message))
                if !frame.opcode.is_control() && !message.compressed =>
            {
                frame.left
            }
            _ => 0,
        }
    }

    /// Reads a header from the bytes of it that were kept, if any, and from `input`; also returns
    /// how many bytes of `input` it used.
    #[inline]
    pub(super) fn read_header(
        &mut self,
        input: &[u8],
        role: Role,
    ) -> Result<(Option<Header>, usize), ProtocolError> {
        if let Arriving::Nothing = self.frame
            && let [first, second, ..] = input
        {
            self.check_first_bytes(*first, *second, role)?;
            if let Some((header, bytes)) = Header::decode(input)? {
                return Ok((Some(header), bytes));
            }
        }
        self.read_split_header(input, role)
    }

    /// Reads a header that is split over several inputs.
    #[cold]
    fn read_split_header(
        &mut self,
        input: &[u8],
        role: Role,
    ) -> Result<(Option<Header>, usize), ProtocolError> {
        let (mut bytes, mut len) = match self.frame {
            Arriving::Header { bytes, len } => (bytes, usize::from(len)),
            _ => ([0; Header::BYTES_MAX], 0),
        };
        for (taken, byte) in input.iter().enumerate() {
            bytes[len] = *byte;
            len += 1;
            if let [first, second] = bytes[..len] {
                self.check_first_bytes(first, second, role)?;
            }
            if let Some((header, _)) = Header::decode(&bytes[..len])? {
                return Ok((Some(header), taken + 1));
            }
        }
        let len = len as u8;
        self.frame = Arriving::Header { bytes, len };
        Ok((None, input.len()))
    }

    /// Checks the first two bytes of a header against the role and the earlier frames.
    #[inline]
    fn check_first_bytes(&self, first: u8, second: u8, role: Role) -> Result<(), ProtocolError> {
        if first & 0x70 != 0 {
            self.check_reserved_bits(first)?;
        }
        let masked = second & 0x80 != 0;
        if masked != role.expects_masked() {
            return Err(match role {
                Role::Client => ProtocolError::MaskedFrame,
                Role::Server => ProtocolError::UnmaskedFrame,
            });
        }
        match Opcode::from_bits(first & 0x0F) {
            Some(Opcode::Continuation) if self.message.is_none() => {
                Err(ProtocolError::UnexpectedContinuation)
            }
            Some(opcode @ (Opcode::Text | Opcode::Binary)) if self.message.is_some() => {
                Err(ProtocolError::ExpectedContinuation { opcode })
            }
            _ => Ok(()),
        }
    }

    /// Checks a first byte that has reserved bits set.
    #[cold]
    fn check_reserved_bits(&self, first: u8) -> Result<(), ProtocolError> {
        let rsv = first >> 4 & 0x7;
        if rsv & !self.rsv_known != 0 {
            return Err(ProtocolError::ReservedBits { rsv });
        }
        // RFC 7692 §6.1: the "Per-Message Compressed" bit is set on the first fragment only, and
        // §6: an endpoint "MUST NOT" set it on control frames.
        match Opcode::from_bits(first & 0x0F) {
            None | Some(Opcode::Text | Opcode::Binary) => Ok(()),
            Some(opcode) => Err(ProtocolError::MisplacedCompression { opcode }),
        }
    }

    /// Starts the frame of `header` if the limits allow it.
    #[inline]
    pub(super) fn begin_frame(
        &mut self,
        header: Header,
        limits: &Limits,
    ) -> Result<(), ProtocolError> {
        if header.opcode.is_control() {
            if let Some(control) = &mut self.control {
                control.set(b"");
            }
        } else {
            self.begin_data_frame(header, limits)?;
        }
        self.frame = Arriving::Payload(Frame {
            left: header.payload_bytes,
            phase: 0,
            mask: header.mask,
            opcode: header.opcode,
            fin: header.fin,
        });
        Ok(())
    }

    #[inline]
    fn begin_data_frame(&mut self, header: Header, limits: &Limits) -> Result<(), ProtocolError> {
        let bytes = self.check_data_frame(&header, limits)?;
        let message = self.message.get_or_insert_with(|| {
            self.utf8.reset();
            PartialMessage {
                kind: match header.opcode {
                    Opcode::Text => MessageKind::Text,
                    _ => MessageKind::Binary,
                },
                bytes: 0,
                fragments: 0,
                begun: false,
                compressed: header.rsv != 0,
            }
        });
        message.bytes = bytes;
        message.fragments += 1;
        Ok(())
    }

    /// Checks a data frame against the limits; returns the length of its message so far.
    #[inline]
    fn check_data_frame(&self, header: &Header, limits: &Limits) -> Result<u64, ProtocolError> {
        let bytes = header.payload_bytes;
        if bytes > limits.frame_bytes_max {
            let bytes_max = limits.frame_bytes_max;
            return Err(ProtocolError::FrameTooBig { bytes, bytes_max });
        }
        let (before, fragments, compressed) = match &self.message {
            Some(message) => (message.bytes, message.fragments, message.compressed),
            None => (0, 0, header.rsv != 0),
        };
        let bytes = before.saturating_add(bytes);
        check_bytes(bytes, compressed, limits)?;
        if fragments == limits.fragments_max {
            return Err(ProtocolError::TooManyFragments {
                fragments_max: limits.fragments_max,
            });
        }
        Ok(bytes)
    }

    /// Returns whether `input` begins with a frame after which no more messages follow: a Close
    /// frame or an invalid header.
    #[cold]
    pub(super) fn is_end_of_messages(&self, input: &[u8], role: Role, limits: &Limits) -> bool {
        let (Arriving::Nothing, [first, second, ..]) = (&self.frame, input) else {
            return false;
        };
        if self.check_first_bytes(*first, *second, role).is_err() {
            return true;
        }
        match Header::decode(input) {
            Ok(None) => false,
            Ok(Some((header, _))) if header.opcode.is_control() => header.opcode == Opcode::Close,
            Ok(Some((header, _))) => self.check_data_frame(&header, limits).is_err(),
            Err(_) => true,
        }
    }

    /// Checks what has been announced of the message that is arriving.
    pub(super) fn check_message(&self, limits: &Limits) -> Result<(), ProtocolError> {
        let Some(message) = &self.message else {
            return Ok(());
        };
        check_bytes(message.bytes, message.compressed, limits)?;
        if message.fragments > limits.fragments_max {
            return Err(ProtocolError::TooManyFragments {
                fragments_max: limits.fragments_max,
            });
        }
        Ok(())
    }

    /// Takes a control payload or a part of one; returns the frame once it is complete.
    pub(super) fn take_control(&mut self, frame: &Frame, payload: &mut [u8], phase: usize) -> Step {
        if let Some(MaskKey(key)) = frame.mask {
            mask::apply(key, phase, payload);
        }
        let whole = frame.left == 0;
        let is_joined = phase > 0 || !whole;
        if is_joined {
            self.control
                .get_or_insert_with(|| Box::new(ControlPayload::new()))
                .extend(payload);
        }
        if !whole {
            return Step::Feed;
        }
        self.frame = Arriving::Nothing;
        Step::Control(ControlFrame {
            opcode: frame.opcode,
            bytes: payload.len(),
            is_joined,
        })
    }

    /// Returns the payload of the control frame that was just completed.
    pub(super) fn control_payload<'a>(&'a self, is_joined: bool, from_input: &'a [u8]) -> &'a [u8] {
        match &self.control {
            Some(control) if is_joined => control.as_slice(),
            _ => from_input,
        }
    }

    /// Takes the next chunk of the message that [`begin_frame`](Self::begin_frame) started, and its
    /// length. Returns `None` if none of the frame's payload is available. Clears the frame and the
    /// message if this chunk ends them.
    #[inline]
    pub(super) fn take_chunk(&mut self, available: usize) -> Option<(ChunkHeader, usize)> {
        let Arriving::Payload(frame) = &mut self.frame else {
            return None;
        };
        let message = self.message.as_mut()?;
        if available == 0 && frame.left > 0 {
            return None;
        }
        let (bytes, phase) = frame.take(available);
        let chunk = ChunkHeader {
            kind: message.kind,
            begins: !message.begun,
            ends: frame.fin && frame.left == 0,
            frame_bytes_left: frame.left,
            mask: frame.mask,
            phase,
            offset: message.bytes - frame.left - bytes as u64,
        };
        message.begun = true;
        if chunk.frame_bytes_left == 0 {
            self.frame = Arriving::Nothing;
        }
        if chunk.ends {
            self.message = None;
        }
        Some((chunk, bytes))
    }

    /// Takes all available bytes as one chunk of the message if they are inside a data frame and
    /// do not reach its end, so that neither the frame nor the message ends.
    #[inline]
    pub(super) fn take_inner_chunk(&mut self, available: usize) -> Option<ChunkHeader> {
        let Arriving::Payload(frame) = &mut self.frame else {
            return None;
        };
        let message = self.message.as_mut()?;
        if frame.opcode.is_control() || message.compressed || frame.left <= available as u64 {
            return None;
        }
        let (bytes, phase) = frame.take(available);
        Some(ChunkHeader {
            kind: message.kind,
            begins: !mem::replace(&mut message.begun, true),
            ends: false,
            frame_bytes_left: frame.left,
            mask: frame.mask,
            phase,
            offset: message.bytes - frame.left - bytes as u64,
        })
    }
}

/// Checks the total payload of the frames of a message.
#[inline]
fn check_bytes(bytes: u64, compressed: bool, limits: &Limits) -> Result<(), ProtocolError> {
    let bytes_max = limits.message_bytes_on_wire_max(compressed);
    if bytes > bytes_max {
        return Err(ProtocolError::MessageTooBig { bytes, bytes_max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_header_is_read_as_any_other() {
        let limits = Limits {
            message_bytes_max: 100,
            ..Limits::default()
        };
        for second in 0..=u8::MAX {
            let mut frame = [7; 140];
            (frame[0], frame[1]) = (0x82, second);
            for available in 0..=frame.len() {
                let input = &frame[..available];
                let short = short_masked_message(MessageKind::Binary, input, &limits);
                let decoded = Header::decode(input).unwrap();
                let expected = decoded.filter(|(header, prefix_bytes)| {
                    header.mask.is_some()
                        && *prefix_bytes == 6
                        && header.payload_bytes <= 100
                        && header.payload_bytes <= (available - prefix_bytes) as u64
                });
                let short = short.map(|it| (it.mask, it.prefix_bytes, it.bytes as u64));
                let expected = expected.map(|(it, bytes)| (it.mask, bytes, it.payload_bytes));
                assert_eq!(short, expected, "{second:#x}, {available} bytes");
            }
        }
    }
}
