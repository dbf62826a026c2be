//! Blocks of a deflate stream (RFC 1951 §3.2.3 to §3.2.7).

use alloc::boxed::Box;

use super::{
    bits::{BitReader, Bits},
    code::Code,
};

/// How many codes for lengths and literals, and for distances, a block may have.
const LITERALS_MAX: usize = 286;
const DISTANCES_MAX: usize = 30;

/// The symbol that ends a block.
const END: usize = 256;

/// The order of the lengths of codes for lengths of codes (§3.2.7).
const ORDER: [usize; 19] = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
];

/// The block in which a stream is.
#[derive(Default)]
pub(super) enum Block {
    /// None: a header follows.
    #[default]
    Between,
    /// A block of symbols.
    Coded(Box<Coded>),
    /// A block of stored bytes, of which `left` are still to come.
    Stored { is_last: bool, left: u16 },
}

/// A block of symbols.
pub(super) struct Coded {
    is_last: bool,
    /// The bits before the first symbol.
    header: Bits,
    literals: Code,
    distances: Code,
}

impl Block {
    /// Moves past the header, the symbols or the bytes of the block that are complete. Returns
    /// whether something else may follow, and false if more input is needed, or it is invalid.
    pub(super) fn advance(&mut self, reader: &mut BitReader<'_>) -> bool {
        let is_last = match self {
            Self::Between => {
                let mut header = *reader;
                let Some(block) = Self::begin(&mut header) else {
                    return false;
                };
                (*reader, *self) = (header, block);
                return true;
            }
            Self::Coded(block) => {
                if !block.skip_symbols(reader) {
                    return false;
                }
                block.is_last
            }
            Self::Stored { is_last, left } => {
                let bytes = usize::from(*left).min(reader.left() / 8);
                reader.skip(8 * bytes);
                *left -= bytes as u16;
                if *left > 0 {
                    return false;
                }
                *is_last
            }
        };
        if is_last {
            // RFC 7692 §7.2.3.5: a stream that ends inside a message is followed by another one,
            // which begins with the next byte.
            reader.align();
        }
        *self = Self::Between;
        true
    }

    /// Returns the bits before the first symbol, if the block has any.
    pub(super) fn header(&self) -> Bits {
        match self {
            Self::Coded(block) => block.header.clone(),
            Self::Between | Self::Stored { .. } => Bits::default(),
        }
    }

    /// Reads a header; returns `None` if it is incomplete or invalid.
    fn begin(reader: &mut BitReader<'_>) -> Option<Self> {
        let start = reader.position();
        let is_last = reader.read(1)? == 1;
        let (literals, distances) = match reader.read(2)? {
            0 => {
                reader.align();
                let (left, inverted) = (reader.read(16)?, reader.read(16)?);
                let left = u16::try_from(left).ok()?;
                return (u32::from(!left) == inverted).then_some(Self::Stored { is_last, left });
            }
            1 => fixed_codes()?,
            2 => read_codes(reader)?,
            _ => return None,
        };
        Some(Self::Coded(Box::new(Coded {
            is_last,
            header: reader.since(start),
            literals,
            distances,
        })))
    }
}

impl Coded {
    /// Skips all complete symbols; returns whether the block ended.
    fn skip_symbols(&self, reader: &mut BitReader<'_>) -> bool {
        while let Some((bits, is_end)) = self.symbol(reader.peek())
            && bits <= reader.left()
        {
            reader.skip(bits);
            if is_end {
                return true;
            }
        }
        false
    }

    /// Returns the number of bits of the symbol at the start of `bits`, with the distance that
    /// belongs to it, and whether it ends the block. Returns `None` if it is invalid.
    #[inline]
    fn symbol(&self, bits: u64) -> Option<(usize, bool)> {
        let (symbol, length) = self.literals.decode(bits)?;
        if symbol <= END {
            return Some((length, symbol == END));
        }
        let length = length + extra_bits_of_length(symbol)?;
        let (distance, distance_bits) = self.distances.decode(bits >> length)?;
        let extra = extra_bits_of_distance(distance)?;
        Some((length + distance_bits + extra, false))
    }
}

/// Returns how many bits follow the code of a length (§3.2.5).
const fn extra_bits_of_length(symbol: usize) -> Option<usize> {
    match symbol {
        257..=264 | 285 => Some(0),
        265..=284 => Some((symbol - 261) / 4),
        _ => None,
    }
}

/// Returns how many bits follow the code of a distance (§3.2.5).
const fn extra_bits_of_distance(symbol: usize) -> Option<usize> {
    match symbol {
        0..=3 => Some(0),
        4..DISTANCES_MAX => Some(symbol / 2 - 1),
        _ => None,
    }
}

/// Returns the codes of §3.2.6.
fn fixed_codes() -> Option<(Code, Code)> {
    let mut literals = [8; 288];
    literals[144..256].fill(9);
    literals[256..280].fill(7);
    Some((Code::new(&literals)?, Code::new(&[5; 32])?))
}

/// Reads the codes of a block (§3.2.7).
fn read_codes(reader: &mut BitReader<'_>) -> Option<(Code, Code)> {
    let literals = reader.read(5)? as usize + 257;
    let distances = reader.read(5)? as usize + 1;
    let count = reader.read(4)? as usize + 4;
    if literals > LITERALS_MAX || distances > DISTANCES_MAX {
        return None;
    }
    let mut lengths = [0; ORDER.len()];
    for symbol in &ORDER[..count] {
        lengths[*symbol] = reader.read(3)? as u8;
    }
    let code = Code::new(&lengths)?;
    let mut lengths = [0; LITERALS_MAX + DISTANCES_MAX];
    let lengths = &mut lengths[..literals + distances];
    let mut at = 0;
    while at < lengths.len() {
        let (symbol, bits) = code.decode(reader.peek())?;
        reader.read(bits)?;
        let (length, times) = match symbol {
            16 => (*lengths.get(at.checked_sub(1)?)?, reader.read(2)? + 3),
            17 => (0, reader.read(3)? + 3),
            18 => (0, reader.read(7)? + 11),
            length => (length as u8, 1),
        };
        lengths.get_mut(at..at + times as usize)?.fill(length);
        at += times as usize;
    }
    let (literals, distances) = lengths.split_at(literals);
    Some((Code::new(literals)?, Code::new(distances)?))
}
