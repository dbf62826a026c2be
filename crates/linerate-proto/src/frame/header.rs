//! The frame header: 2 to 14 bytes (RFC 6455 §5.2).

use crate::{error::ProtocolError, opcode::Opcode, role::MaskKey};

/// A decoded frame header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "RFC 6455 §5.2 has these parts")]
pub struct Header {
    /// True if this is the last fragment of its message.
    pub fin: bool,
    /// RSV1, RSV2 and RSV3 as bits with the values 4, 2 and 1.
    pub rsv: u8,
    /// The kind of the frame.
    pub opcode: Opcode,
    /// The masking key; `None` if the frame is not masked.
    pub mask: Option<MaskKey>,
    /// The length of the payload in bytes.
    pub payload_bytes: u64,
}

impl Header {
    /// The maximum length of a header in bytes.
    pub const BYTES_MAX: usize = 14;

    /// Creates the header of an unfragmented frame without reserved bits.
    #[inline]
    pub const fn new(opcode: Opcode, payload_bytes: u64, mask: Option<MaskKey>) -> Self {
        Self {
            fin: true,
            rsv: 0,
            opcode,
            mask,
            payload_bytes,
        }
    }

    /// Returns the length of a header in bytes, 2 to 14, given the second of its bytes.
    #[inline]
    pub const fn bytes(second: u8) -> usize {
        let length = match second & 0x7F {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        2 + length + if second & 0x80 != 0 { 4 } else { 0 }
    }

    /// Decodes the header at the start of `input` and returns it with its length in bytes.
    ///
    /// Returns `Ok(None)` if the header is incomplete. Errors in the first two bytes are reported
    /// as soon as these are available. Rules that depend on the role or on earlier frames are not
    /// checked here.
    ///
    /// # Errors
    /// Fails on a reserved opcode, a fragmented control frame, a control frame of more than 125
    /// bytes, and a length that is not in its shortest form or exceeds 63 bits.
    #[inline]
    pub fn decode(input: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let [first, second, rest @ ..] = input else {
            return Ok(None);
        };
        let Some(opcode) = Opcode::from_bits(first & 0x0F) else {
            return Err(ProtocolError::ReservedOpcode {
                opcode: first & 0x0F,
            });
        };
        let fin = first & 0x80 != 0;
        let length_field = second & 0x7F;
        if opcode.is_control() {
            if !fin {
                return Err(ProtocolError::ControlFragmented { opcode });
            }
            if length_field > 125 {
                return Err(ProtocolError::ControlTooLong { length_field });
            }
        }
        let Some((payload_bytes, mut rest)) = decode_length(length_field, rest)? else {
            return Ok(None);
        };
        let mut mask = None;
        if second & 0x80 != 0 {
            let Some((key, behind)) = rest.split_first_chunk() else {
                return Ok(None);
            };
            mask = Some(MaskKey(*key));
            rest = behind;
        }
        let header = Self {
            fin,
            rsv: first >> 4 & 0x7,
            opcode,
            mask,
            payload_bytes,
        };
        // Not `bytes(second)`: that is arithmetic on the byte just loaded, and decoding the next
        // header would have to wait for it. This difference is a constant in each branch.
        Ok(Some((header, input.len() - rest.len())))
    }

    /// Writes the header to the start of `out` and returns its length in bytes.
    ///
    /// # Panics
    /// Panics if `out` is shorter than [`encoded_bytes`](Self::encoded_bytes).
    #[inline]
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let first = (self.fin as u8) << 7 | (self.rsv & 0x7) << 4 | self.opcode as u8;
        let masked = if self.mask.is_some() { 0x80 } else { 0 };
        let mut bytes = match self.payload_bytes {
            length @ 0..=125 => {
                out[..2].copy_from_slice(&[first, masked | length as u8]);
                2
            }
            length @ 126..=0xFFFF => {
                let [high, low] = (length as u16).to_be_bytes();
                out[..4].copy_from_slice(&[first, masked | 126, high, low]);
                4
            }
            length => {
                out[..2].copy_from_slice(&[first, masked | 127]);
                out[2..10].copy_from_slice(&length.to_be_bytes());
                10
            }
        };
        if let Some(MaskKey(key)) = self.mask {
            out[bytes..bytes + 4].copy_from_slice(&key);
            bytes += 4;
        }
        bytes
    }

    /// Returns how many bytes [`encode`](Self::encode) writes: 2 to 14.
    #[inline]
    pub const fn encoded_bytes(&self) -> usize {
        let length = match self.payload_bytes {
            0..=125 => 0,
            126..=0xFFFF => 2,
            _ => 8,
        };
        2 + length + if self.mask.is_some() { 4 } else { 0 }
    }
}

/// Returns the payload length and the bytes after it; `None` if `rest` is too short.
#[inline]
fn decode_length(length_field: u8, rest: &[u8]) -> Result<Option<(u64, &[u8])>, ProtocolError> {
    let (bytes, bytes_min, rest) = match length_field {
        126 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from(u16::from_be_bytes(*length)), 126, rest),
            None => return Ok(None),
        },
        127 => match rest.split_first_chunk() {
            Some((length, rest)) => (u64::from_be_bytes(*length), 0x1_0000, rest),
            None => return Ok(None),
        },
        short => return Ok(Some((u64::from(short), rest))),
    };
    // §5.2: "the most significant bit MUST be 0" and "the minimal number of bytes MUST be used".
    if bytes >> 63 != 0 {
        return Err(ProtocolError::LengthOverflow { bytes });
    }
    if bytes < bytes_min {
        return Err(ProtocolError::NonMinimalLength { bytes });
    }
    Ok(Some((bytes, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_each_length_form() {
        let cases: [(&[u8], u64, usize); 6] = [
            (b"\x82\x00", 0, 2),
            (b"\x82\x7d", 125, 2),
            (b"\x82\x7e\x00\x7e", 126, 4),
            (b"\x82\x7e\xff\xff", 65_535, 4),
            (b"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 65_536, 10),
            (
                b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff",
                i64::MAX as u64,
                10,
            ),
        ];
        for (wire, payload_bytes, bytes) in cases {
            let header = Header::new(Opcode::Binary, payload_bytes, None);
            assert_eq!(Header::decode(wire), Ok(Some((header, bytes))));
            for end in 0..wire.len() {
                assert_eq!(Header::decode(&wire[..end]), Ok(None), "{end} of {wire:?}");
            }
        }
    }

    #[test]
    fn encode_is_the_inverse_of_decode() {
        for payload_bytes in [0, 1, 125, 126, 127, 65_535, 65_536, i64::MAX as u64] {
            for mask in [None, Some(MaskKey([1, 2, 3, 4]))] {
                for (fin, rsv, opcode) in [
                    (true, 0, Opcode::Text),
                    (false, 7, Opcode::Continuation),
                    (true, 4, Opcode::Binary),
                ] {
                    let header = Header {
                        fin,
                        rsv,
                        opcode,
                        mask,
                        payload_bytes,
                    };
                    let mut wire = [0; Header::BYTES_MAX];
                    let bytes = header.encode(&mut wire);
                    assert_eq!(bytes, header.encoded_bytes());
                    assert_eq!(bytes, Header::bytes(wire[1]));
                    assert_eq!(Header::decode(&wire[..bytes]), Ok(Some((header, bytes))));
                }
            }
        }
    }

    #[test]
    fn rejects_lengths_that_are_not_minimal_or_too_long() {
        let decode = |wire: &[u8]| Header::decode(wire).unwrap_err();
        assert_eq!(
            decode(b"\x82\x7e\x00\x7d"),
            ProtocolError::NonMinimalLength { bytes: 125 }
        );
        assert_eq!(
            decode(b"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff"),
            ProtocolError::NonMinimalLength { bytes: 65_535 }
        );
        assert_eq!(
            decode(b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00"),
            ProtocolError::LengthOverflow { bytes: 1 << 63 }
        );
    }
}
