//! Writes frames byte by byte, legal or not (RFC 6455 §5.2). Shares no code with the codec under
//! test.

use linerate_proto::Role;

use crate::KEY;

/// How the length of a payload is encoded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LengthForm {
    /// In the 7 bits of the second byte. Only the low 7 bits of the length are written.
    Bits7,
    /// In 16 bits after the field 126. Only the low 16 bits of the length are written.
    Bits16,
    /// In 64 bits after the field 127.
    Bits64,
}

/// A frame to be written, valid or not.
#[derive(Clone, Debug)]
pub struct Frame {
    first: u8,
    mask: Option<[u8; 4]>,
    length_form: Option<LengthForm>,
    claimed_bytes: u64,
    payload: Vec<u8>,
}

impl Frame {
    /// Creates an unmasked frame with FIN and the shortest length. `opcode` has four bits.
    pub fn new(opcode: u8, payload: &[u8]) -> Self {
        Self {
            first: 0x80 | opcode,
            mask: None,
            length_form: None,
            claimed_bytes: payload.len() as u64,
            payload: payload.to_vec(),
        }
    }

    /// Masks the frame if it goes to a server.
    #[must_use]
    pub fn to_role(self, receiver: Role) -> Self {
        self.with_mask((receiver == Role::Server).then_some(KEY))
    }

    /// Sets or clears FIN.
    #[must_use]
    pub fn with_fin(mut self, fin: bool) -> Self {
        self.first = self.first & 0x7F | u8::from(fin) << 7;
        self
    }

    /// Sets RSV1, RSV2 and RSV3 to the bits 4, 2 and 1 of `rsv`.
    #[must_use]
    pub fn with_rsv(mut self, rsv: u8) -> Self {
        self.first = self.first & 0x8F | (rsv & 7) << 4;
        self
    }

    /// Masks the frame with this key, or not at all.
    #[must_use]
    pub fn with_mask(mut self, mask: Option<[u8; 4]>) -> Self {
        self.mask = mask;
        self
    }

    /// Writes the length in this form, even if it is not the shortest.
    #[must_use]
    pub fn with_length_form(mut self, form: LengthForm) -> Self {
        self.length_form = Some(form);
        self
    }

    /// Claims this length, regardless of the length of the payload.
    #[must_use]
    pub fn with_claimed_bytes(mut self, bytes: u64) -> Self {
        self.claimed_bytes = bytes;
        self
    }

    /// Returns the bytes of the header and of the payload, masked if there is a key.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = self.claimed_bytes;
        let form = self.length_form.unwrap_or(match length {
            0..126 => LengthForm::Bits7,
            126..0x1_0000 => LengthForm::Bits16,
            _ => LengthForm::Bits64,
        });
        let mask_bit = if self.mask.is_some() { 0x80 } else { 0 };
        let mut wire = vec![self.first];
        match form {
            LengthForm::Bits7 => wire.push(mask_bit | length as u8 & 0x7F),
            LengthForm::Bits16 => {
                wire.push(mask_bit | 126);
                wire.extend((length as u16).to_be_bytes());
            }
            LengthForm::Bits64 => {
                wire.push(mask_bit | 127);
                wire.extend(length.to_be_bytes());
            }
        }
        let key = self.mask.unwrap_or_default();
        if self.mask.is_some() {
            wire.extend(key);
        }
        wire.extend((self.payload.iter().zip(key.iter().cycle())).map(|(byte, key)| byte ^ key));
        wire
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_the_examples_of_the_rfc() {
        let hello = Frame::new(0x1, b"Hello");
        assert_eq!(hello.to_bytes(), b"\x81\x05Hello");
        assert_eq!(
            hello.to_role(Role::Server).to_bytes(),
            b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
        );
        let fragment = Frame::new(0x1, b"Hel").with_fin(false);
        assert_eq!(fragment.to_bytes(), b"\x01\x03Hel");
    }

    #[test]
    fn writes_what_no_honest_peer_sends() {
        let frame = Frame::new(0xF, b"x").with_rsv(7);
        let frame = frame.with_length_form(LengthForm::Bits16);
        assert_eq!(frame.to_bytes(), b"\xff\x7e\x00\x01x");
        let frame = Frame::new(0x2, b"").with_claimed_bytes(u64::MAX);
        assert_eq!(
            frame.to_bytes(),
            b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"
        );
    }
}
