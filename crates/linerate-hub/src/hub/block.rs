//! Cache of encoded blocks, which subscribers at the same place share.

use std::{collections::VecDeque, time::Instant};

/// Encoded publications of a class.
#[derive(Clone, Debug)]
pub(crate) struct Block<B> {
    /// The number of the first publication.
    pub(crate) from: u64,
    /// The number of the publication that follows.
    pub(crate) to: u64,
    /// `None` if the publications cannot be encoded.
    pub(crate) encoded: Option<Encoded<B>>,
    /// When the oldest of its publications arrived.
    pub(crate) published: Instant,
    /// True if the first publication may be a delta from the one before it, which only those who
    /// received that can use.
    pub(crate) has_previous: bool,
    /// True if the last publication of the range is in the block.
    pub(crate) has_last: bool,
    /// The number of publications in the block, and how many more newer ones have replaced.
    pub(crate) messages: u32,
    pub(crate) conflated: u64,
}

/// The output of an encoding and its size in bytes.
#[derive(Clone, Debug)]
pub(crate) struct Encoded<B> {
    pub(crate) block: B,
    pub(crate) bytes: usize,
}

/// Blocks in the order of their first publications.
#[derive(Debug)]
pub(crate) struct Blocks<B> {
    list: VecDeque<Block<B>>,
    bytes: usize,
}

impl<B> Blocks<B> {
    /// Adds a block, and drops the oldest other blocks while they exceed `bytes_max`.
    pub(crate) fn insert(&mut self, block: Block<B>, bytes_max: usize) {
        let mut place = self.list.partition_point(|other| other.from <= block.from);
        self.bytes += block.len();
        self.list.insert(place, block);
        while self.bytes > bytes_max && self.list.len() > 1 {
            let victim = usize::from(place == 0);
            if let Some(dropped) = self.list.remove(victim) {
                self.bytes -= dropped.len();
            }
            place = place.saturating_sub(1);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.bytes = 0;
    }

    /// Drops the blocks whose first publication the ring no longer holds.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while let Some(block) = self.list.pop_front_if(|block| block.from < number) {
            self.bytes -= block.len();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the newest block that begins at `from`, with or without regard to the publication
    /// before it.
    pub(crate) fn find(&self, from: u64, has_previous: bool) -> Option<&Block<B>> {
        let is_it = |block: &&Block<B>| block.from == from && block.has_previous == has_previous;
        self.list.back().filter(is_it).or_else(|| {
            let place = self.list.partition_point(|block| block.from <= from);
            let before = self.list.range(..place).rev();
            before.take_while(|block| block.from == from).find(is_it)
        })
    }

    /// Returns where the first block after `from` begins.
    pub(crate) fn next_after(&self, from: u64) -> Option<u64> {
        let place = self.list.partition_point(|block| block.from <= from);
        self.list.get(place).map(|block| block.from)
    }
}

impl<B> Default for Blocks<B> {
    fn default() -> Self {
        Self {
            list: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl<B> Block<B> {
    fn len(&self) -> usize {
        let bytes = self.encoded.as_ref().map_or(0, |encoded| encoded.bytes);
        bytes + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{Block, Blocks, Encoded};

    /// The size that is counted for a block of ten bytes.
    const BYTES: usize = 10 + size_of::<Block<()>>();

    fn block(from: u64, to: u64) -> Block<()> {
        Block {
            from,
            to,
            encoded: Some(Encoded {
                block: (),
                bytes: 10,
            }),
            published: Instant::now(),
            has_previous: false,
            has_last: true,
            messages: 1,
            conflated: 0,
        }
    }

    fn blocks(list: &[(u64, u64)], bytes_max: usize) -> Blocks<()> {
        let mut blocks = Blocks::default();
        for (from, to) in list {
            blocks.insert(block(*from, *to), bytes_max);
        }
        blocks
    }

    fn places(blocks: &Blocks<()>) -> Vec<(u64, u64)> {
        let places = blocks.list.iter().map(|block| (block.from, block.to));
        places.collect()
    }

    #[test]
    fn blocks_are_kept_up_to_the_limit_in_bytes() {
        let three = [(1, 2), (2, 3), (3, 4)];
        assert_eq!(places(&blocks(&three, 3 * BYTES)), three);
        assert_eq!(places(&blocks(&three, 3 * BYTES - 1)), three[1..]);
        // Dropped blocks no longer count, however often that happens.
        let many: Vec<_> = (0..20).map(|from| (from, from + 1)).collect();
        let kept = blocks(&many, 2 * BYTES);
        assert_eq!(places(&kept), many[18..]);
        assert_eq!(kept.bytes(), 2 * BYTES);
    }

    #[test]
    fn the_newest_block_is_kept_with_any_limit() {
        assert_eq!(places(&blocks(&[(1, 2), (2, 3)], 0)), [(2, 3)]);
        // The same holds for a block for a subscriber that is behind.
        assert_eq!(places(&blocks(&[(5, 6), (1, 2)], 0)), [(1, 2)]);
    }

    #[test]
    fn the_newest_of_blocks_with_the_same_start_is_found() {
        let blocks = blocks(&[(1, 3), (1, 5), (9, 10)], usize::MAX);
        assert_eq!(blocks.find(1, false).unwrap().to, 5);
        assert_eq!(blocks.find(9, false).unwrap().to, 10);
        assert!(blocks.find(2, false).is_none());
        assert_eq!(blocks.next_after(1), Some(9));
        assert_eq!(blocks.next_after(9), None);
    }

    #[test]
    fn blocks_of_evicted_publications_are_removed() {
        let mut blocks = blocks(&[(1, 3), (3, 5), (5, 7)], usize::MAX);
        blocks.forget_before(3);
        assert_eq!(places(&blocks), [(3, 5), (5, 7)]);
        assert_eq!(blocks.bytes(), 2 * BYTES);
        blocks.clear();
        assert_eq!((places(&blocks).len(), blocks.bytes()), (0, 0));
    }
}
