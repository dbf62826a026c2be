//! Values beyond the limit of a dictionary: the most frequent of them, and an estimate of their
//! number.
//!
//! Uses Space-Saving (Metwally, Agrawal and El Abbadi, ICDT 2005): a value that is not tracked
//! replaces the tracked value with the lowest count. A value that is not tracked occurred at most
//! as often as that count.

use std::hash::BuildHasher;

use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashTable;

use super::distinct::Distinct;
use super::tally::Tally;

/// How many values are tracked. The error is thus at most 1/2,048 of the requests concerned.
const TRACKED_MAX: usize = 2_048;
/// How many bytes of each value are kept.
const TEXT_BYTES_MAX: usize = 256;

/// Counts an unlimited number of distinct values in less than 1 MiB.
#[derive(Debug)]
pub(super) struct Overflow {
    /// The same in all processes, so that estimates are reproducible; see also `index_hasher`.
    hasher: FixedState,
    /// Seeded at random, so that no client can prepare values that collide in the table.
    index_hasher: RandomState,
    /// Maps the hash of a value to its index in `tracked`.
    index: HashTable<u32>,
    /// A heap of indices into `tracked` with the lowest count on top.
    heap: Vec<u32>,
    tracked: Vec<TrackedValue>,
    distinct: Distinct,
    replaced: bool,
}

/// A value that is tracked.
#[derive(Debug)]
pub(super) struct TrackedValue {
    /// The first bytes of the value.
    pub(super) text: Vec<u8>,
    /// What is certain: what was counted since the value was tracked.
    pub(super) tally: Tally,
    /// Identifies the value. A collision within one log is less likely than a failure of the
    /// machine.
    hash: u64,
    /// An upper bound on how often the value occurred.
    count: u64,
    /// The value's place in the heap.
    place: u32,
}

impl Overflow {
    pub(super) fn new() -> Self {
        Self {
            hasher: FixedState::default(),
            index_hasher: RandomState::default(),
            index: HashTable::new(),
            heap: Vec::new(),
            tracked: Vec::new(),
            distinct: Distinct::new(),
            replaced: false,
        }
    }

    /// Counts one request with a value.
    pub(super) fn count(&mut self, value: &[u8], status: u16, bytes_sent: u64) {
        let hash = mix(self.hasher.hash_one(value));
        self.distinct.add(hash);
        let at = match self.find(hash) {
            Some(at) => at,
            None if self.tracked.len() < TRACKED_MAX => self.track(hash, value),
            None => self.replace(hash, value),
        };
        let tracked = &mut self.tracked[at];
        tracked.tally.count(status, bytes_sent);
        tracked.count += 1;
        let place = tracked.place as usize;
        self.sink(place);
    }

    /// Returns an estimate of the number of distinct values.
    pub(super) fn distinct(&self) -> u64 {
        self.distinct.estimate()
    }

    /// Returns the most requests by which the count of any value, tracked or not, may be too low.
    pub(super) fn error_max(&self) -> u64 {
        match self.heap.first() {
            Some(&lowest) if self.replaced => self.tracked[lowest as usize].count,
            _ => 0,
        }
    }

    pub(super) fn tracked(&self) -> &[TrackedValue] {
        &self.tracked
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let texts: usize = self.tracked.iter().map(|it| it.text.capacity()).sum();
        size_of::<Self>()
            + (16 << 10)
            + texts
            + self.tracked.capacity() * size_of::<TrackedValue>()
            + self.heap.capacity() * size_of::<u32>()
            + self.index.allocation_size()
    }

    fn find(&self, hash: u64) -> Option<usize> {
        let found = self.index.find(self.index_hasher.hash_one(hash), |&at| {
            self.tracked[at as usize].hash == hash
        });
        found.map(|&at| at as usize)
    }

    fn track(&mut self, hash: u64, value: &[u8]) -> usize {
        let at = self.tracked.len();
        self.tracked.push(TrackedValue {
            text: head(value).to_vec(),
            tally: Tally::default(),
            hash,
            count: 0,
            place: at as u32,
        });
        self.heap.push(at as u32);
        self.rise(at);
        self.insert(hash, at);
        at
    }

    /// Replaces the value with the lowest count by a new one.
    fn replace(&mut self, hash: u64, value: &[u8]) -> usize {
        let at = self.heap[0];
        let old = self.index_hasher.hash_one(self.tracked[at as usize].hash);
        if let Ok(entry) = self.index.find_entry(old, |&it| it == at) {
            entry.remove();
        }
        let tracked = &mut self.tracked[at as usize];
        tracked.hash = hash;
        tracked.tally = Tally::default();
        tracked.text.clear();
        tracked.text.extend_from_slice(head(value));
        self.replaced = true;
        self.insert(hash, at as usize);
        at as usize
    }

    fn insert(&mut self, hash: u64, at: usize) {
        let Self {
            index,
            index_hasher,
            tracked,
            ..
        } = self;
        let rehash = |&at: &u32| index_hasher.hash_one(tracked[at as usize].hash);
        index.insert_unique(index_hasher.hash_one(hash), at as u32, rehash);
    }

    /// Moves the entry at `place` up the heap until none above it has a higher count.
    fn rise(&mut self, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.count_at(above) <= self.count_at(place) {
                break;
            }
            self.swap(above, place);
            place = above;
        }
    }

    /// Moves the entry at `place` down the heap until none below it has a lower count.
    fn sink(&mut self, mut place: usize) {
        loop {
            let below = [2 * place + 1, 2 * place + 2]
                .into_iter()
                .filter(|&it| it < self.heap.len())
                .min_by_key(|&it| self.count_at(it));
            match below {
                Some(below) if self.count_at(below) < self.count_at(place) => {
                    self.swap(below, place);
                    place = below;
                }
                _ => return,
            }
        }
    }

    fn count_at(&self, place: usize) -> u64 {
        self.tracked[self.heap[place] as usize].count
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for place in [a, b] {
            self.tracked[self.heap[place] as usize].place = place as u32;
        }
    }
}

fn head(value: &[u8]) -> &[u8] {
    &value[..value.len().min(TEXT_BYTES_MAX)]
}

/// Makes every bit depend on every other bit: the finalizer of SplitMix64 (Steele, Lea and Flood,
/// OOPSLA 2014).
pub(super) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Overflow, TRACKED_MAX, mix};

    #[test]
    fn few_values_are_counted_exactly() {
        let mut overflow = Overflow::new();
        for n in 0..TRACKED_MAX * 3 {
            overflow.count(&(n % TRACKED_MAX).to_le_bytes(), 404, 2);
        }
        assert_eq!(overflow.error_max(), 0);
        assert!(overflow.tracked().iter().all(|it| it.tally.requests == 3));
        assert!(overflow.tracked().iter().all(|it| it.tally.bytes == 6));
    }

    #[test]
    fn no_value_exceeds_its_count_plus_the_error() {
        let mut overflow = Overflow::new();
        let mut counts = HashMap::new();
        for n in 0..200_000u64 {
            // Every third request has one of 100 values; the other values occur once or twice.
            let value = if n % 3 == 0 {
                mix(n) % 100
            } else {
                1_000 + mix(n) % 150_000
            };
            *counts.entry(value.to_le_bytes().to_vec()).or_insert(0u64) += 1;
            overflow.count(&value.to_le_bytes(), 200, 1);
        }
        let error_max = overflow.error_max();
        assert!(error_max > 0 && error_max <= 200_000 / TRACKED_MAX as u64);
        let mut certain = HashMap::new();
        for tracked in overflow.tracked() {
            certain.insert(tracked.text.clone(), tracked.tally.requests);
        }
        for (value, count) in counts {
            let counted = certain.get(&value).copied().unwrap_or(0);
            assert!(counted <= count && count <= counted + error_max);
        }
    }

    #[test]
    fn long_values_are_truncated_but_distinguished() {
        let mut overflow = Overflow::new();
        for tail in [b'a', b'b', b'a'] {
            let mut value = vec![b'x'; 60_000];
            value.push(tail);
            overflow.count(&value, 200, 0);
        }
        let requests: Vec<_> = overflow
            .tracked()
            .iter()
            .map(|it| (it.text.len(), it.tally.requests))
            .collect();
        assert_eq!(requests, [(256, 2), (256, 1)]);
        assert_eq!(overflow.distinct(), 2);
    }
}
