//! Recovers input that the engine has taken but not yet reported, for another reader to continue.

use alloc::vec::Vec;

use linerate_simd::mask;

use super::framing::{Arriving, Frame, Receiving};
use crate::{close::ControlPayload, frame::Header, opcode::Opcode, role::MaskKey};

impl Receiving {
    /// Returns bytes that are equivalent to the input that was taken but not reported in any event.
    pub(super) fn unread(&self) -> Vec<u8> {
        let mut wire = Vec::new();
        match &self.frame {
            Arriving::Nothing => {}
            Arriving::Header { bytes, len } => wire.extend_from_slice(&bytes[..(*len).into()]),
            Arriving::Payload(frame) if frame.opcode.is_control() => {
                let begun = self.control.as_deref();
                let begun = begun.map_or(&[][..], ControlPayload::as_slice);
                append_control(frame, begun, &mut wire);
            }
            Arriving::Payload(frame) => {
                let begun = self.message.is_some_and(|message| message.begun);
                append_rest(frame, begun, &mut wire);
            }
        }
        wire
    }
}

/// Appends the part of a control frame that has arrived.
fn append_control(frame: &Frame, begun: &[u8], wire: &mut Vec<u8>) {
    let bytes = frame.left + begun.len() as u64;
    append_header(Header::new(frame.opcode, bytes, frame.mask), wire);
    match frame.mask {
        Some(MaskKey(key)) => mask::append(key, 0, begun, wire),
        None => wire.extend_from_slice(begun),
    }
}

/// Appends a header for the remaining payload of a data frame: a continuation if a part of the
/// message has already been reported.
fn append_rest(frame: &Frame, begun: bool, wire: &mut Vec<u8>) {
    let key = frame.mask.map(|MaskKey(mut key)| {
        key.rotate_left(usize::from(frame.phase % 4));
        MaskKey(key)
    });
    let opcode = if begun {
        Opcode::Continuation
    } else {
        frame.opcode
    };
    let header = Header {
        fin: frame.fin,
        ..Header::new(opcode, frame.left, key)
    };
    append_header(header, wire);
}

fn append_header(header: Header, wire: &mut Vec<u8>) {
    let mut bytes = [0; Header::BYTES_MAX];
    let len = header.encode(&mut bytes);
    wire.extend_from_slice(&bytes[..len]);
}
