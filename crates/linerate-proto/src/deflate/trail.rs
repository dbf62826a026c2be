//! Follows a deflate stream without inflating it, to continue it in another process (RFC 1951).
//!
//! An inflater's place in a stream is determined by the window, the header of the block that is
//! arriving, and the bits after the last complete symbol. A trail finds the last two. From them,
//! [`Place::prefix`] makes a stream that brings a new inflater to the same place.

mod bits;
mod block;
mod code;
mod place;

use alloc::vec::Vec;

use bits::BitReader;
use block::Block;

pub(super) use place::Place;

/// How many bytes are kept before they are followed. Most messages are shorter than that, so only
/// an export follows them.
const BYTES_KEPT: usize = 8 << 10;

/// The memory of a trail in bytes: the kept bytes, and the codes of a block.
pub(super) const TRAIL_BYTES: usize = 2 * BYTES_KEPT + (2 << 10);

/// The place in a deflate stream after the bytes that an inflater has taken.
#[derive(Default)]
pub(super) struct Trail {
    /// Bytes that were not followed yet. Of the first, `used` bits were.
    bytes: Vec<u8>,
    used: usize,
    block: Block,
}

impl Trail {
    /// Starts a new stream.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.used = 0;
        self.block = Block::Between;
    }

    /// Adds bytes that the inflater has taken.
    pub(super) fn add(&mut self, taken: &[u8]) {
        for part in taken.chunks(BYTES_KEPT) {
            self.bytes.extend_from_slice(part);
            if self.bytes.len() > BYTES_KEPT {
                self.follow();
            }
        }
    }

    /// Moves past everything that is complete.
    pub(super) fn follow(&mut self) {
        let mut reader = BitReader::new(&self.bytes, self.used);
        while self.block.advance(&mut reader) {}
        let at = reader.position();
        self.bytes.drain(..at / 8);
        self.used = at % 8;
    }

    /// Returns the place, once everything that is complete was [followed](Self::follow).
    pub(super) fn place(&self) -> Place {
        match &self.block {
            Block::Stored { is_last, left } => Place::Stored {
                is_last: *is_last,
                left: *left,
            },
            block => {
                let mut bits = block.header();
                bits.append(&self.bytes, self.used..8 * self.bytes.len());
                Place::Bits(bits)
            }
        }
    }

    /// Returns a trail that is at `place`; `None` if none can be there.
    pub(super) fn at(place: &Place) -> Option<Self> {
        let mut trail = Self::default();
        match place {
            Place::Stored { left: 0, .. } => return None,
            Place::Stored { is_last, left } => {
                trail.block = Block::Stored {
                    is_last: *is_last,
                    left: *left,
                };
            }
            Place::Bits(bits) => {
                // The bits end at the end of a byte, because that is where the inflater waits.
                (trail.bytes, trail.used) = bits.aligned_to_end();
                trail.follow();
            }
        }
        (trail.place() == *place).then_some(trail)
    }
}
