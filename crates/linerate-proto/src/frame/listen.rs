//! Passes the whole frames in a buffer to a listener, one by one, with borrowed payloads.

use linerate_simd::mask;

use super::Header;
use crate::{
    error::ProtocolError,
    opcode::Opcode,
    role::{MaskKey, Role},
};

/// Receives each frame in turn.
pub trait FrameListener {
    /// Handles one frame; `payload` is unmasked and borrowed from the input.
    ///
    /// `rsv` holds RSV1, RSV2 and RSV3 as bits with the values 4, 2 and 1. The listener must check
    /// these bits and the order of the opcodes itself.
    fn frame(&mut self, fin: bool, rsv: u8, opcode: Opcode, payload: &mut [u8]);
}

impl<F: FnMut(bool, u8, Opcode, &mut [u8])> FrameListener for F {
    #[inline]
    fn frame(&mut self, fin: bool, rsv: u8, opcode: Opcode, payload: &mut [u8]) {
        self(fin, rsv, opcode, payload);
    }
}

/// Passes each whole frame in `input` to `listener` and returns how many bytes these frames have.
///
/// The bytes after them are an unfinished frame, which the caller must keep for the next call.
/// `role` is ours: a server accepts only masked frames, a client only unmasked ones.
///
/// # Errors
/// Fails on the errors of [`Header::decode`], and on frames whose masking violates §5.1. The frames
/// before the invalid one have been passed to `listener`.
#[inline]
pub fn listen(
    role: Role,
    input: &mut [u8],
    listener: &mut impl FrameListener,
) -> Result<usize, ProtocolError> {
    let mut at = 0;
    while let Some((header, prefix_bytes)) = Header::decode(&input[at..])? {
        match (header.mask, role) {
            (None, Role::Server) => return Err(ProtocolError::UnmaskedFrame),
            (Some(_), Role::Client) => return Err(ProtocolError::MaskedFrame),
            _ => {}
        }
        let start = at + prefix_bytes;
        let available = (input.len() - start) as u64;
        if header.payload_bytes > available {
            break;
        }
        let end = start + header.payload_bytes as usize;
        let payload = &mut input[start..end];
        if let Some(MaskKey(key)) = header.mask {
            mask::apply(key, 0, payload);
        }
        listener.frame(header.fin, header.rsv, header.opcode, payload);
        at = end;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn yields_whole_frames_and_leaves_the_remainder() {
        let wire = b"\x81\x82\x01\x01\x01\x01`c\x02\x80\x00\x00\x00\x00\x89\x81\x00";
        let mut seen = Vec::new();
        let mut input = *wire;
        let mut listener = |fin, rsv, opcode, payload: &mut [u8]| {
            seen.push((fin, rsv, opcode, payload.to_vec()));
        };
        assert_eq!(listen(Role::Server, &mut input, &mut listener), Ok(14));
        assert_eq!(
            seen,
            [
                (true, 0, Opcode::Text, b"ab".to_vec()),
                (false, 0, Opcode::Binary, Vec::new())
            ]
        );
    }

    #[test]
    fn masking_must_fit_the_role() {
        let mut nothing = |_, _, _, _: &mut [u8]| {};
        let unmasked = &mut *b"\x81\x00".to_vec();
        assert_eq!(
            listen(Role::Server, unmasked, &mut nothing),
            Err(ProtocolError::UnmaskedFrame)
        );
        assert_eq!(listen(Role::Client, unmasked, &mut nothing), Ok(2));
        let masked = &mut *b"\x81\x80\x00\x00\x00\x00".to_vec();
        assert_eq!(
            listen(Role::Client, masked, &mut nothing),
            Err(ProtocolError::MaskedFrame)
        );
    }
}
