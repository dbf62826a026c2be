//! Parses arriving frames: checks headers and takes payloads in pieces (RFC 6455 §5.2–§5.6).

use alloc::boxed::Box;
use core::mem;

use linerate_simd::mask;

use super::{Arriving, Data, Frame, Receiving, Unfinished};
use crate::{
    close::ControlPayload,
    config::Limits,
    error::ProtocolError,
    frame::Header,
    opcode::{MessageKind, Opcode},
    role::{MaskKey, Role},
};

/// The meaning of the next bytes, determined before anything is borrowed for the caller.
pub(super) enum Step {
    Control(ControlFrame),
    /// A piece of a message and its length; its payload ends at `at` in the input.
    Data(Piece, usize),
    /// No event yet: more input is needed.
    Feed,
    /// A piece of a compressed message; its payload is the output of the decompressor.
    #[cfg(feature = "deflate")]
    Inflated(Piece),
}

/// A complete control frame.
pub(super) struct ControlFrame {
    pub(super) opcode: Opcode,
    /// The length of the last part of the payload; this part ends at `at` in the input.
    pub(super) bytes: usize,
    /// True if the payload arrived in several pieces, which [`Receiving`] has joined.
    pub(super) pieces: bool,
}

/// A piece of a message without its payload.
pub(super) struct Piece {
    pub(super) kind: MessageKind,
    pub(super) begins: bool,
    pub(super) ends: bool,
    pub(super) frame_bytes_left: u64,
    pub(super) mask: Option<MaskKey>,
    pub(super) phase: usize,
    pub(super) offset: u64,
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

impl Piece {
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
        let bytes = header.payload_bytes;
        if bytes > limits.frame_bytes_max {
            let bytes_max = limits.frame_bytes_max;
            return Err(ProtocolError::FrameTooBig { bytes, bytes_max });
        }
        let kind = match header.opcode {
            Opcode::Text => MessageKind::Text,
            _ => MessageKind::Binary,
        };
        let message = self.message.get_or_insert_with(|| {
            self.utf8.reset();
            Unfinished {
                kind,
                bytes: 0,
                fragments: 0,
                begun: false,
                compressed: header.rsv != 0,
            }
        });
        let bytes = message.bytes.saturating_add(bytes);
        let bytes_max = limits.message_bytes_on_wire_max(message.compressed);
        if bytes > bytes_max {
            return Err(ProtocolError::MessageTooBig { bytes, bytes_max });
        }
        if message.fragments == limits.fragments_max {
            return Err(ProtocolError::TooManyFragments {
                fragments_max: limits.fragments_max,
            });
        }
        message.bytes = bytes;
        message.fragments += 1;
        Ok(())
    }

    /// Takes a control payload or a piece of one; returns the frame once it is complete.
    pub(super) fn take_control(&mut self, frame: &Frame, payload: &mut [u8], phase: usize) -> Step {
        if let Some(MaskKey(key)) = frame.mask {
            mask::apply(key, phase, payload);
        }
        let whole = frame.left == 0;
        let pieces = phase > 0 || !whole;
        if pieces {
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
            pieces,
        })
    }

    /// Returns the payload of the control frame that was just completed.
    pub(super) fn control_payload<'a>(&'a self, pieces: bool, from_input: &'a [u8]) -> &'a [u8] {
        match &self.control {
            Some(control) if pieces => control.as_slice(),
            _ => from_input,
        }
    }

    /// Takes the next piece of the message that [`begin_frame`](Self::begin_frame) started, and its
    /// length. Returns `None` if none of the frame's payload is available. Clears the frame and the
    /// message if this piece ends them.
    #[inline]
    pub(super) fn take_piece(&mut self, available: usize) -> Option<(Piece, usize)> {
        let Arriving::Payload(frame) = &mut self.frame else {
            return None;
        };
        let message = self.message.as_mut()?;
        if available == 0 && frame.left > 0 {
            return None;
        }
        let (bytes, phase) = frame.take(available);
        let piece = Piece {
            kind: message.kind,
            begins: !message.begun,
            ends: frame.fin && frame.left == 0,
            frame_bytes_left: frame.left,
            mask: frame.mask,
            phase,
            offset: message.bytes - frame.left - bytes as u64,
        };
        message.begun = true;
        if piece.frame_bytes_left == 0 {
            self.frame = Arriving::Nothing;
        }
        if piece.ends {
            self.message = None;
        }
        Some((piece, bytes))
    }

    /// Takes all available bytes as one piece of the message if they are inside a data frame and
    /// do not reach its end, so that neither the frame nor the message ends.
    #[inline]
    pub(super) fn take_inner_piece(&mut self, available: usize) -> Option<Piece> {
        let Arriving::Payload(frame) = &mut self.frame else {
            return None;
        };
        let message = self.message.as_mut()?;
        if frame.opcode.is_control() || message.compressed || frame.left <= available as u64 {
            return None;
        }
        let (bytes, phase) = frame.take(available);
        Some(Piece {
            kind: message.kind,
            begins: !mem::replace(&mut message.begun, true),
            ends: false,
            frame_bytes_left: frame.left,
            mask: frame.mask,
            phase,
            offset: message.bytes - frame.left - bytes as u64,
        })
    }

    /// Validates the next piece of a text message; on failure returns the offset in the piece.
    pub(super) fn validate_piece(&mut self, bytes: &[u8], ends: bool) -> Result<(), usize> {
        self.utf8.push(bytes).map_err(|error| error.valid_up_to())?;
        if ends && !self.utf8.is_complete() {
            Err(bytes.len())
        } else {
            Ok(())
        }
    }
}
