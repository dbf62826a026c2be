//! A place in a deflate stream, at the end of a byte.

use alloc::vec::Vec;

use super::{Trail, bits::Bits};
use crate::portable::{ImportError, Reader, Writer, check, invalid};

/// More bits than the header of a block and an incomplete symbol have: 74 bits, up to 316 lengths
/// of at most 14 bits, and 48 bits.
const BITS_MAX: usize = 5_000;

/// A block without symbols, in 10 bits: its header, and the end of the block in the fixed code.
const EMPTY: (u64, usize) = (0b10, 10);

/// A block without symbols in an odd number of bits, for which it has codes of its own.
const ODD: [(u64, usize); 25] = {
    let mut parts = [(0, 3); 25];
    // Not the last block, with its own codes; of the first alphabet up to symbol 256, of the second
    // symbol 0; and 18 lengths of codes for lengths, in the order of RFC 1951 §3.2.7.
    parts[0] = (0b100, 3);
    parts[1] = (0, 5);
    parts[2] = (0, 5);
    parts[3] = (14, 4);
    // 0 has the code 0, 1 has the code 10, and 18 (11 to 138 times 0) has the code 11.
    parts[4 + 2] = (2, 3);
    parts[4 + 3] = (1, 3);
    parts[4 + 17] = (2, 3);
    // 138 times 0, 118 times 0, and 1 for symbol 256; 0 for distances. Symbol 256 follows.
    parts[22] = (0b1111111 << 2 | 0b11, 9);
    parts[23] = (0b1101011 << 2 | 0b11, 9);
    parts[24] = (0b01, 4);
    parts
};

/// A place in a deflate stream, from which another inflater can continue.
#[derive(Debug, Eq, PartialEq)]
pub(in crate::deflate) enum Place {
    /// In a block of symbols or its header: the header, and the bits that do not yet make up a
    /// symbol. Between blocks, there are no bits.
    Bits(Bits),
    /// In a block of stored bytes, of which `left` are still to come.
    Stored { is_last: bool, left: u16 },
}

impl Place {
    pub(in crate::deflate) fn export(&self, state: &mut Writer) {
        match self {
            Self::Bits(bits) => {
                state.u8(0);
                state.u16(bits.len() as u16);
                state.raw(bits.as_bytes());
            }
            Self::Stored { is_last, left } => {
                state.u8(1 + u8::from(*is_last));
                state.u16(*left);
            }
        }
    }

    /// Returns the place, and a trail that is there.
    pub(in crate::deflate) fn import(state: &mut Reader<'_>) -> Result<(Self, Trail), ImportError> {
        let kind = state.u8("kind of the deflate block")?;
        let count = state.u16("deflate bits")?;
        let place = match kind {
            0 => {
                check(usize::from(count) <= BITS_MAX, "deflate bits", count)?;
                let bytes = state.raw("deflate bits", usize::from(count).div_ceil(8))?;
                let bits = Bits::from_bytes(bytes, count.into());
                Self::Bits(bits.ok_or(invalid("deflate bits", count))?)
            }
            1 | 2 => Self::Stored {
                is_last: kind == 2,
                left: count,
            },
            other => return Err(invalid("kind of the deflate block", other)),
        };
        let trail = Trail::at(&place).ok_or(invalid("deflate bits", count))?;
        Ok((place, trail))
    }

    /// Returns a stream that yields no output and brings an inflater to this place.
    pub(in crate::deflate) fn prefix(&self) -> Vec<u8> {
        let mut prefix = Bits::default();
        match self {
            Self::Bits(bits) => {
                // The bits must end at the end of a byte.
                if !bits.len().is_multiple_of(2) {
                    ODD.iter()
                        .for_each(|&(part, count)| prefix.push(part, count));
                }
                // The number of bits is even now, and each block adds 2 modulo 8.
                let missing = (prefix.len() + bits.len()).wrapping_neg() % 8;
                for _ in 0..missing / 2 {
                    prefix.push(EMPTY.0, EMPTY.1);
                }
                prefix.append(bits.as_bytes(), 0..bits.len());
            }
            Self::Stored { is_last, left } => {
                prefix.push((*is_last).into(), 8);
                prefix.push((*left).into(), 16);
                prefix.push((!*left).into(), 16);
            }
        }
        prefix.as_bytes().into()
    }
}
