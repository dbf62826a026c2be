//! Counters by byte string, exact up to a limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::excerpt::excerpt;

/// Counts how often each key occurs.
///
/// The keys' bytes lie end to end in one buffer and the hash table holds indices only, so a key
/// costs its bytes, 16 more and 5 to 10 of table. Keys come from whoever sends requests; the hash is
/// seeded at random, so that nobody can prepare keys that collide.
#[derive(Debug)]
pub(super) struct KeyTable {
    hasher: RandomState,
    /// Indices into `entries`.
    index: HashTable<u32>,
    entries: Vec<Entry>,
    /// The keys' bytes.
    bytes: Vec<u8>,
    /// The index of the key counted last, since neighbouring lines tend to share it.
    last: usize,
    /// How often a key came that is new and did not fit.
    not_counted: u64,
    keys_max: usize,
    bytes_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where the key begins in the buffer.
    start: u32,
    len: u32,
    count: u64,
}

impl Entry {
    #[inline]
    fn key(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..][..self.len as usize]
    }
}

impl KeyTable {
    /// Creates a table for up to `keys_max` keys of `bytes_max` bytes in total.
    ///
    /// Both are cut to 2^32 - 1, as far as its indices reach.
    pub(super) fn new(keys_max: usize, bytes_max: usize) -> Self {
        Self {
            hasher: RandomState::default(),
            index: HashTable::new(),
            entries: Vec::new(),
            bytes: Vec::new(),
            last: 0,
            not_counted: 0,
            keys_max: keys_max.min(u32::MAX as usize),
            bytes_max: bytes_max.min(u32::MAX as usize),
        }
    }

    /// Counts one occurrence. A new key that doesn't fit any more is only counted as such.
    #[inline]
    pub(super) fn count(&mut self, key: &[u8]) {
        if let Some(last) = self.entries.get_mut(self.last)
            && last.key(&self.bytes) == key
        {
            last.count += 1;
            return;
        }
        let hash = self.hasher.hash_one(key);
        let found = self.index.find(hash, |&at| {
            self.entries[at as usize].key(&self.bytes) == key
        });
        if let Some(&at) = found {
            self.last = at as usize;
            self.entries[self.last].count += 1;
        } else {
            self.insert(hash, key);
        }
    }

    /// Returns how many keys are told apart.
    pub(super) fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns how often a key came that is not told apart from others.
    pub(super) fn not_counted(&self) -> u64 {
        self.not_counted
    }

    /// Returns the `n` most frequent keys, cut after `chars_max` characters, and their counts;
    /// equal counts in the keys' order.
    pub(super) fn top(&self, n: usize, chars_max: usize) -> Vec<(String, u64)> {
        // A heap of the n best whose top is the worst of them.
        let mut best = BinaryHeap::with_capacity(n.min(self.entries.len()));
        for entry in &self.entries {
            let candidate = (Reverse(entry.count), entry.key(&self.bytes));
            if best.len() < n {
                best.push(candidate);
            } else if let Some(mut worst) = best.peek_mut()
                && candidate < *worst
            {
                *worst = candidate;
            }
        }
        best.into_sorted_vec()
            .into_iter()
            .map(|(Reverse(count), key)| (excerpt(key, chars_max), count))
            .collect()
    }

    /// Returns how many bytes of heap the table holds.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.entries.capacity() * size_of::<Entry>()
            + self.index.allocation_size()
    }

    fn insert(&mut self, hash: u64, key: &[u8]) {
        let start = self.bytes.len();
        if self.entries.len() == self.keys_max || key.len() > self.bytes_max - start {
            self.not_counted += 1;
            return;
        }
        self.reserve_bytes(key.len());
        self.bytes.extend_from_slice(key);
        self.last = self.entries.len();
        self.entries.push(Entry {
            start: start as u32,
            len: key.len() as u32,
            count: 1,
        });
        let Self {
            index,
            entries,
            bytes,
            hasher,
            last,
            ..
        } = self;
        index.insert_unique(hash, *last as u32, |&at| {
            hasher.hash_one(entries[at as usize].key(bytes))
        });
    }

    /// Makes room for a key: doubles the buffer, but never beyond the limit.
    fn reserve_bytes(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let capacity = (self.bytes.capacity() * 2).max(4 << 10).max(needed);
            let capacity = capacity.min(self.bytes_max);
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KeyTable;

    fn table(keys_max: usize, bytes_max: usize, keys: &[&str]) -> KeyTable {
        let mut table = KeyTable::new(keys_max, bytes_max);
        for key in keys {
            table.count(key.as_bytes());
        }
        table
    }

    #[test]
    fn most_frequent_keys_come_first_and_equal_ones_in_order() {
        let table = table(9, 99, &["b", "a", "c", "b", "c", "", "d", "c"]);
        let expected = [("c", 3), ("b", 2), ("", 1), ("a", 1), ("d", 1)];
        let expected = expected.map(|(key, count)| (key.to_string(), count));
        for n in 0..=9 {
            assert_eq!(table.top(n, 9), expected[..n.min(5)]);
        }
        assert_eq!(KeyTable::new(9, 9).top(3, 9), []);
    }

    #[test]
    fn keys_up_to_the_limit_are_told_apart_and_one_more_is_not() {
        let full = table(3, 99, &["a", "b", "c", "a", "c"]);
        assert_eq!((full.len(), full.not_counted()), (3, 0));
        let over = table(3, 99, &["a", "b", "c", "d", "d", "a"]);
        assert_eq!((over.len(), over.not_counted()), (3, 2));
        assert_eq!(over.top(1, 9), [("a".to_string(), 2)]);
    }

    #[test]
    fn bytes_up_to_the_limit_are_kept_and_one_more_is_not() {
        let full = table(9, 6, &["abc", "def", "abc"]);
        assert_eq!((full.len(), full.not_counted()), (2, 0));
        let over = table(9, 6, &["abc", "defg", "x", "yz", "abc"]);
        assert_eq!((over.len(), over.not_counted()), (3, 1));
        assert!(over.bytes.capacity() <= 6);
    }

    #[test]
    fn many_keys_keep_their_counts_as_the_table_grows() {
        let mut table = KeyTable::new(100_000, 1 << 20);
        for round in 0..3 {
            for key in 0..50_000 {
                table.count(format!("{:x}", key * 7).as_bytes());
            }
            assert_eq!(table.len(), 50_000, "round {round}");
        }
        assert!(table.entries.iter().all(|entry| entry.count == 3));
    }
}
