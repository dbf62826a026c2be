//! Numeric codes for byte strings, up to a limit.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::excerpt;

mod recent;

use recent::{Fingerprint, RecentCodes};

/// The code for requests without a value.
pub(crate) const NONE: u32 = 0;
/// The code shared by all values that did not fit.
pub(crate) const OTHER: u32 = 1;
/// The code of the first value.
pub(crate) const FIRST: u32 = 2;

/// The name under which values without a code are summed. Methods, hosts and names of programs
/// never contain brackets.
pub(super) const OTHER_NAME: &str = "(other)";

/// Assigns codes to values, in the order of their first occurrence.
///
/// The bytes of all values are concatenated in one buffer, and the hash table holds only indices,
/// so a value costs its bytes, 4 more, and 5 to 10 in the table. Any client can send values, so the
/// hash is seeded at random to prevent prepared collisions.
#[derive(Debug)]
pub(crate) struct Dictionary {
    hasher: RandomState,
    /// The indices of values.
    index: HashTable<u32>,
    /// Where each value ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
    recent: RecentCodes,
    values_max: usize,
    bytes_max: usize,
}

impl Dictionary {
    /// Creates a dictionary of up to `values_max` values of `bytes_max` bytes in total.
    ///
    /// Both are limited to what 32-bit codes can address.
    pub(crate) fn new(values_max: usize, bytes_max: usize) -> Self {
        Self {
            hasher: RandomState::default(),
            index: HashTable::new(),
            ends: Vec::new(),
            bytes: Vec::new(),
            recent: RecentCodes::new(),
            values_max: values_max.min((u32::MAX - FIRST) as usize),
            bytes_max: bytes_max.min(u32::MAX as usize),
        }
    }

    /// Returns the code of a value: [`NONE`] for the empty value, [`OTHER`] for a new value that
    /// does not fit.
    #[inline(always)]
    pub(crate) fn code(&mut self, value: &[u8]) -> u32 {
        if value.is_empty() {
            return NONE;
        }
        match Fingerprint::of_all(value).and_then(|fingerprint| self.recent.find(&fingerprint)) {
            Some(code) => code,
            None => self.code_of_other(value),
        }
    }

    /// Like [`code`](Self::code), for a value that is long or did not occur recently.
    #[inline(never)]
    fn code_of_other(&mut self, value: &[u8]) -> u32 {
        let fingerprint = Fingerprint::of(value);
        if let Some(code) = self.recent.find(&fingerprint)
            && self.value(code) == value
        {
            return code;
        }
        let hash = self.hasher.hash_one(value);
        let found = self.index.find(hash, |&at| self.at(at as usize) == value);
        let code = match found {
            Some(&at) => at + FIRST,
            None => self.insert(hash, value),
        };
        if code != OTHER {
            self.recent.remember(fingerprint, code);
        }
        code
    }

    /// Returns the code of a value, or `None` if it has no code.
    pub(crate) fn find(&self, value: &[u8]) -> Option<u32> {
        if value.is_empty() {
            return Some(NONE);
        }
        let hash = self.hasher.hash_one(value);
        let found = self.index.find(hash, |&at| self.at(at as usize) == value);
        found.map(|&at| at + FIRST)
    }

    /// Returns how many values have a code of their own.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns the most values that can have a code of their own.
    pub(crate) fn values_max(&self) -> usize {
        self.values_max
    }

    /// Returns the value of a code; empty for [`NONE`] and [`OTHER`].
    #[inline]
    pub(crate) fn value(&self, code: u32) -> &[u8] {
        match code.checked_sub(FIRST) {
            Some(at) if (at as usize) < self.ends.len() => self.at(at as usize),
            _ => b"",
        }
    }

    /// Returns the value of a code for display; see [`excerpt::text`].
    pub(crate) fn text(&self, code: u32) -> String {
        excerpt::text(self.value(code))
    }

    /// Returns all values in the order of their codes, from [`FIRST`].
    pub(crate) fn values(&self) -> impl Iterator<Item = &[u8]> {
        self.values_from(0)
    }

    /// Returns the values after the first `skipped` ones.
    pub(crate) fn values_from(&self, skipped: usize) -> impl Iterator<Item = &[u8]> {
        (skipped..self.ends.len()).map(|at| self.at(at))
    }

    /// Removes all values but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.index.clear();
        self.ends.clear();
        self.bytes.clear();
        self.recent.clear();
    }

    /// Returns how many bytes of heap the dictionary holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
            + self.ends.capacity() * size_of::<u32>()
            + self.index.allocation_size()
            + RecentCodes::MEMORY_BYTES
    }

    #[inline]
    fn at(&self, at: usize) -> &[u8] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    fn insert(&mut self, hash: u64, value: &[u8]) -> u32 {
        if self.ends.len() == self.values_max || value.len() > self.bytes_max - self.bytes.len() {
            return OTHER;
        }
        reserve(&mut self.bytes, value.len(), self.bytes_max);
        reserve(&mut self.ends, 1, self.values_max);
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len() as u32);
        let at = (self.ends.len() - 1) as u32;
        // Taken out because rehashing borrows the other fields.
        let mut index = std::mem::take(&mut self.index);
        index.insert_unique(hash, at, |&at| self.hasher.hash_one(self.at(at as usize)));
        self.index = index;
        at + FIRST
    }
}

/// Reserves space for `more` items: doubles the list, but never beyond `len_max`.
pub(super) fn reserve<T>(list: &mut Vec<T>, more: usize, len_max: usize) {
    let needed = list.len() + more;
    if needed > list.capacity() {
        let capacity = (list.capacity() * 2).max(1 << 10).max(needed);
        let capacity = capacity.min(len_max.max(needed));
        list.reserve_exact(capacity - list.len());
    }
}

#[cfg(test)]
mod tests {
    use super::{Dictionary, FIRST, NONE, OTHER};

    fn codes(dictionary: &mut Dictionary, values: &[&str]) -> Vec<u32> {
        let values = values.iter();
        values
            .map(|value| dictionary.code(value.as_bytes()))
            .collect()
    }

    #[test]
    fn values_are_numbered_in_the_order_of_their_first_occurrence() {
        let mut dictionary = Dictionary::new(9, 99);
        let found = codes(&mut dictionary, &["b", "a", "b", "", "c", "a", "a"]);
        assert_eq!(found, [2, 3, 2, NONE, 4, 3, 3]);
        assert_eq!(dictionary.values().collect::<Vec<_>>(), [b"b", b"a", b"c"]);
        assert_eq!(dictionary.value(3), b"a");
        for code in [NONE, OTHER, 5, u32::MAX] {
            assert_eq!(dictionary.value(code), b"");
        }
        assert_eq!(dictionary.find(b"c"), Some(4));
        assert_eq!(dictionary.find(b""), Some(NONE));
        assert_eq!(dictionary.find(b"d"), None);
    }

    #[test]
    fn values_up_to_the_limit_have_a_code() {
        let mut dictionary = Dictionary::new(3, 99);
        let found = codes(&mut dictionary, &["a", "b", "c", "d", "a", "d", "c"]);
        assert_eq!(found, [2, 3, 4, OTHER, 2, OTHER, 4]);
        assert_eq!(dictionary.len(), 3);
    }

    #[test]
    fn bytes_up_to_the_limit_are_kept_and_one_more_is_not() {
        let mut dictionary = Dictionary::new(9, 6);
        let found = codes(&mut dictionary, &["abc", "defg", "def", "x", "abc"]);
        assert_eq!(found, [2, OTHER, 3, OTHER, 2]);
        assert!(dictionary.bytes.capacity() <= 6);
    }

    #[test]
    fn many_values_keep_their_codes_as_the_table_grows() {
        let mut dictionary = Dictionary::new(100_000, 1 << 20);
        for _ in 0..3 {
            for value in 0..50_000u32 {
                let code = dictionary.code(format!("{:x}", value * 7).as_bytes());
                assert_eq!(code, value + FIRST);
            }
        }
        dictionary.clear();
        assert_eq!((dictionary.len(), dictionary.code(b"x")), (0, FIRST));
    }
}
