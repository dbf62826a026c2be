//! Bytes that messages may refer back to, with the repetitions in them.

use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;

use super::finder::{BytePosition, Effort, Match, SLOT_BITS, Search, longest, slot, word};

/// The distance over which strings are linked, in bytes, and the number of bytes that are kept when
/// old ones are dropped.
const KEPT_BYTES: usize = 1 << History::WINDOW_BITS;

/// Old bytes are dropped when there are this many in total.
const DROPPING_BYTES_MIN: usize = KEPT_BYTES + KEPT_BYTES / 2;

/// The smallest allocation, in bytes of the stream.
const CAPACITY_MIN: usize = 2 * KEPT_BYTES;

/// The count of bytes at which counting starts over.
const POSITION_MAX: u32 = 1 << 31;

/// The last bytes of a stream, and for each string in them the string before it that may be equal.
///
/// Strings are linked when bytes are appended, and not when they are compressed, so that the same
/// bytes can be compressed several times with different limits. A link is a distance, so links stay
/// valid when old bytes are dropped.
pub(in crate::deflate) struct History {
    bytes: Vec<u8>,
    /// For each byte, the distance to the last string with the same hash; 0 if there is none within
    /// [`KEPT_BYTES`]. The last three bytes begin no string yet.
    links: Vec<u16>,
    /// For each hash, the position of the last string with that hash; 0 if there is none.
    slots: Box<[u32]>,
    /// The position of the first byte, counted from 1 at the start of the stream.
    start: u32,
}

/// A search for what a message repeats.
pub(super) struct HistorySearch<'h> {
    history: &'h History,
    oldest: usize,
    message: Range<usize>,
}

impl History {
    /// Messages refer back at most 2^`WINDOW_BITS` bytes.
    pub(in crate::deflate) const WINDOW_BITS: u8 = 12;

    /// The memory of a history of `bytes` bytes.
    pub(in crate::deflate) const fn memory_bytes(bytes: usize) -> usize {
        bytes * (size_of::<u8>() + size_of::<u16>()) + (size_of::<u32>() << SLOT_BITS)
    }

    pub(in crate::deflate) fn new() -> Self {
        Self {
            bytes: Vec::new(),
            links: Vec::new(),
            slots: vec![0; 1 << SLOT_BITS].into(),
            start: 1,
        }
    }

    /// Returns the number of bytes that there is memory for after `make_room(more)`.
    pub(in crate::deflate) fn capacity_for(&self, more: usize) -> usize {
        let bytes = self.bytes.len() - self.superfluous() + more;
        let wanted = bytes.next_power_of_two().max(CAPACITY_MIN);
        let present = self.bytes.capacity();
        // Blocks of different lengths should not move everything each time.
        if (wanted..=4 * wanted).contains(&present) {
            present
        } else {
            wanted
        }
    }

    /// Makes room for `more` bytes, and drops old bytes if there are many.
    pub(in crate::deflate) fn make_room(&mut self, more: usize) {
        let capacity = self.capacity_for(more);
        let dropped = self.superfluous();
        self.bytes.drain(..dropped);
        self.links.drain(..dropped);
        self.start += dropped as u32;
        if self.start > POSITION_MAX {
            self.slots.fill(0);
            self.start = 1;
        }
        self.bytes.shrink_to(capacity);
        self.links.shrink_to(capacity);
        self.bytes.reserve_exact(capacity - self.bytes.len());
        self.links.reserve_exact(capacity - self.links.len());
    }

    /// Appends bytes; returns where they are until the next call of [`make_room`](Self::make_room).
    pub(in crate::deflate) fn append(&mut self, bytes: &[u8]) -> Range<usize> {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        while let Some(string) = word(&self.bytes, self.links.len()) {
            let position = self.start + self.links.len() as u32;
            let slot = &mut self.slots[slot(string)];
            let distance = position - *slot;
            let is_linked = *slot > 0 && distance as usize <= KEPT_BYTES;
            self.links.push(if is_linked { distance as u16 } else { 0 });
            *slot = position;
        }
        from..self.bytes.len()
    }

    /// Returns the number of bytes.
    pub(in crate::deflate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes to drop, which is 0 unless it pays to move the others.
    fn superfluous(&self) -> usize {
        let bytes = self.bytes.len();
        if bytes < DROPPING_BYTES_MIN {
            0
        } else {
            bytes - KEPT_BYTES
        }
    }

    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// Starts a search for what `message` repeats of the bytes from `oldest` on.
    pub(super) fn search(&self, oldest: usize, message: Range<usize>) -> HistorySearch<'_> {
        HistorySearch {
            history: self,
            oldest,
            message,
        }
    }
}

impl HistorySearch<'_> {
    /// Returns the string before the one at `at` that may be equal, if the one at `from` may refer
    /// to it.
    #[inline]
    fn before(&self, from: usize, at: usize) -> Option<usize> {
        let distance = usize::from(*self.history.links.get(at)?);
        let oldest = self.oldest.max(from.saturating_sub(KEPT_BYTES));
        let before = at.checked_sub(distance).filter(|_| distance > 0)?;
        (before >= oldest).then_some(before)
    }
}

impl Search for HistorySearch<'_> {
    #[inline]
    fn note(&mut self, _: &[u8], at: usize) -> Option<BytePosition> {
        let at = self.message.start + at;
        self.before(at, at).map(BytePosition)
    }

    fn find(
        &self,
        _: &[u8],
        at: usize,
        BytePosition(from): BytePosition,
        longer_than: usize,
        effort: Effort,
    ) -> Option<Match> {
        let at = self.message.start + at;
        let bytes = &self.history.bytes[..self.message.end];
        let chain = (from, |from| self.before(at, from));
        longest(bytes, at, chain, longer_than, effort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks each link against the definition, and returns how many there are.
    fn links(history: &History) -> usize {
        let hash = |at| word(&history.bytes, at).map(slot);
        let mut links = 0;
        for (at, &link) in history.links.iter().enumerate() {
            let before = (at.saturating_sub(KEPT_BYTES)..at).rev();
            let nearest = before.into_iter().find(|&before| hash(before) == hash(at));
            let expected = nearest.map_or(0, |before| at - before);
            // A link may lead to dropped bytes.
            if usize::from(link) <= at {
                assert_eq!(usize::from(link), expected, "{at}");
                links += usize::from(link > 0);
            }
        }
        links
    }

    fn text(round: usize) -> Vec<u8> {
        (0..100 + round * 37 % 900)
            .map(|at| b"abcdefgh"[(at * at + round) * 7 % 61 % 8])
            .collect()
    }

    #[test]
    fn each_string_is_linked_to_the_nearest_that_may_be_equal() {
        let mut history = History::new();
        let mut all = vec![];
        for round in 0..100 {
            history.make_room(text(round).len());
            let range = history.append(&text(round));
            all.extend(text(round));
            assert_eq!(history.bytes(range.clone()), text(round));
            assert_eq!(range.end, history.len());
            let kept = all.len().min(KEPT_BYTES);
            assert!(history.len() >= kept && all.ends_with(&history.bytes));
            assert!(round == 0 || links(&history) > history.len() / 2);
        }
    }

    #[test]
    fn links_are_valid_after_counting_starts_over() {
        let mut history = History::new();
        history.start = POSITION_MAX - 3_000;
        let mut restarts = 0;
        for round in 0..40 {
            let before = history.start;
            history.make_room(text(round).len());
            let has_restarted = history.start < before;
            restarts += usize::from(has_restarted);
            let old = history.links.len();
            history.append(&text(round));
            let is_valid =
                |(at, &link): (usize, &u16)| !has_restarted || at - usize::from(link) >= old;
            assert!(history.links.iter().enumerate().skip(old).all(is_valid));
        }
        assert_eq!(restarts, 1);
    }

    #[test]
    fn memory_follows_the_length_of_blocks_slowly() {
        let mut history = History::new();
        let mut memory_after = |bytes: usize| {
            let expected = history.capacity_for(bytes);
            history.make_room(bytes);
            history.append(&vec![b'a'; bytes]);
            assert_eq!(history.bytes.capacity(), expected);
            assert_eq!(history.links.capacity(), expected);
            expected
        };
        assert_eq!(memory_after(250), CAPACITY_MIN);
        let most = memory_after(50_000);
        assert_eq!(most, 65_536);
        assert_eq!(memory_after(20_000), most);
        for _ in 0..100 {
            memory_after(250);
        }
        assert_eq!(memory_after(250), CAPACITY_MIN);
    }
}
