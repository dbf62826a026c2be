//! The frame and the message that are arriving.

use alloc::boxed::Box;

use linerate_simd::utf8::Validator;

use super::kind;
use crate::{
    close::ControlPayload,
    engine::framing::{Arriving, Frame, PartialMessage, Receiving},
    frame::Header,
    opcode::{MessageKind, Opcode},
    portable::{ImportError, Reader, Writer, check, invalid},
    role::{MaskKey, Role},
};

/// The numbers of the variants of [`Arriving`].
const NOTHING: u8 = 0;
const HEADER: u8 = 1;
const PAYLOAD: u8 = 2;

impl Receiving {
    /// Returns how many bytes of the frame that is arriving are still to come, if it belongs to a
    /// compressed message.
    #[cfg(feature = "deflate")]
    pub(super) fn compressed_bytes_left(&self) -> Option<u64> {
        match (&self.frame, self.message) {
            (Arriving::Payload(frame), Some(message))
                if !frame.opcode.is_control() && message.compressed =>
            {
                Some(frame.left)
            }
            _ => None,
        }
    }

    pub(super) fn export(&self, state: &mut Writer) {
        state.flag(self.message.is_some());
        if let Some(message) = &self.message {
            message.export(state);
            if message.kind == MessageKind::Text {
                state.u8(self.utf8.state());
            }
        }
        match &self.frame {
            Arriving::Nothing => state.u8(NOTHING),
            Arriving::Header { bytes, len } => {
                state.u8(HEADER);
                state.bytes(&bytes[..(*len).into()]);
            }
            Arriving::Payload(frame) => {
                state.u8(PAYLOAD);
                frame.export(state);
                if frame.opcode.is_control() {
                    let begun = self.control.as_deref();
                    state.raw(begun.map_or(&[], ControlPayload::as_slice));
                }
            }
        }
    }

    pub(super) fn import(
        &mut self,
        state: &mut Reader<'_>,
        role: Role,
        compresses: bool,
    ) -> Result<(), ImportError> {
        if state.flag("message arriving")? {
            let message = PartialMessage::import(state, compresses)?;
            self.message = Some(message);
            if message.kind == MessageKind::Text {
                let number = state.u8("UTF-8 state")?;
                self.utf8 = Validator::from_state(number).ok_or(invalid("UTF-8 state", number))?;
            }
        }
        match state.u8("frame arriving")? {
            NOTHING => {}
            HEADER => self.import_header(state, role)?,
            PAYLOAD => self.import_frame(state, role)?,
            other => return Err(invalid("frame arriving", other)),
        }
        let in_data = matches!(&self.frame, Arriving::Payload(frame) if !frame.opcode.is_control());
        let has_begun = self.message.is_none_or(|message| message.begun);
        check(has_begun || in_data, "message that has not begun", 1_u8)
    }

    fn import_header(&mut self, state: &mut Reader<'_>, role: Role) -> Result<(), ImportError> {
        let bytes = state.bytes("header", Header::BYTES_MAX - 1)?;
        match self.read_header(bytes, role) {
            Ok((None, _)) if !bytes.is_empty() => Ok(()),
            _ => Err(invalid("header", bytes.len() as u64)),
        }
    }

    fn import_frame(&mut self, state: &mut Reader<'_>, role: Role) -> Result<(), ImportError> {
        let frame = Frame::import(state)?;
        check(
            frame.mask.is_some() == role.expects_masked(),
            "masking of the frame",
            frame.mask.is_some(),
        )?;
        check(frame.left > 0, "frame bytes left", frame.left)?;
        if frame.opcode.is_control() {
            let bytes = frame.left.saturating_add(frame.phase.into());
            let is_possible = frame.fin && bytes <= ControlPayload::BYTES_MAX as u64;
            check(is_possible, "length of the control frame", bytes)?;
            let begun = state.raw("control payload", frame.phase.into())?;
            let mut control = ControlPayload::new();
            control.set(begun);
            self.control = Some(Box::new(control));
        } else {
            let Some(message) = &self.message else {
                return Err(invalid("opcode of the frame", frame.opcode as u8));
            };
            let is_first = frame.opcode != Opcode::Continuation;
            let is_possible = match frame.opcode {
                Opcode::Continuation => message.fragments > 1,
                opcode => message.fragments == 1 && opcode == message.kind.opcode(),
            };
            check(is_possible, "opcode of the frame", frame.opcode as u8)?;
            let is_begun = message.begun || is_first;
            check(is_begun, "message that has not begun", 1_u8)?;
            check(frame.left <= message.bytes, "frame bytes left", frame.left)?;
        }
        self.frame = Arriving::Payload(frame);
        Ok(())
    }
}

impl PartialMessage {
    fn export(&self, state: &mut Writer) {
        state.u8(self.kind.opcode() as u8);
        state.u64(self.bytes);
        state.u32(self.fragments);
        state.flag(self.begun);
        state.flag(self.compressed);
    }

    fn import(state: &mut Reader<'_>, compresses: bool) -> Result<Self, ImportError> {
        let number = state.u8("kind of the message")?;
        let message = Self {
            kind: kind(number).ok_or(invalid("kind of the message", number))?,
            bytes: state.u64("message bytes")?,
            fragments: state.u32("fragments")?,
            begun: state.flag("begun")?,
            compressed: state.flag("compressed")?,
        };
        check(message.fragments > 0, "fragments", message.fragments)?;
        check(compresses || !message.compressed, "compressed", 1_u8)?;
        Ok(message)
    }
}

impl Frame {
    fn export(&self, state: &mut Writer) {
        state.u64(self.left);
        state.u8(self.phase);
        state.flag(self.mask.is_some());
        if let Some(MaskKey(key)) = self.mask {
            state.raw(&key);
        }
        state.u8(self.opcode as u8);
        state.flag(self.fin);
    }

    fn import(state: &mut Reader<'_>) -> Result<Self, ImportError> {
        let (left, phase) = (
            state.u64("frame bytes left")?,
            state.u8("masking position")?,
        );
        let is_masked = state.flag("masking of the frame")?;
        let mask = is_masked.then(|| state.array("masking key")).transpose()?;
        let number = state.u8("opcode of the frame")?;
        Ok(Self {
            left,
            phase,
            mask: mask.map(MaskKey),
            opcode: Opcode::from_bits(number).ok_or(invalid("opcode of the frame", number))?,
            fin: state.flag("FIN")?,
        })
    }
}
