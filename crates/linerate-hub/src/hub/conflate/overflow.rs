//! The newest publication of each key that the ring has lost before all subscribers took it.

use std::{collections::BTreeMap, hash::BuildHasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::{
    ChannelOptions, Conflate, Publication,
    hub::{
        conflate,
        ring::{OVERHEAD_BYTES, weight},
    },
};

/// Publications of a class that are no longer in the ring: at most one for each key, or only one in
/// all.
///
/// It may hold as much as the ring. Beyond that, it drops the publications that have been the
/// newest of their keys for the longest time.
#[derive(Debug)]
pub(crate) struct Overflow {
    conflate: Conflate,
    options: ChannelOptions,
    publications: BTreeMap<u64, Publication>,
    /// The numbers of the publications with a key, by the hash of the key.
    keys: HashTable<u64>,
    hasher: RandomState,
    bytes: usize,
    /// The number after the last publication that was dropped because of the limits.
    lost_before: u64,
}

impl Overflow {
    pub(crate) fn new(conflate: Conflate, options: ChannelOptions) -> Self {
        Self {
            conflate,
            options,
            publications: BTreeMap::new(),
            keys: HashTable::new(),
            hasher: RandomState::default(),
            bytes: 0,
            lost_before: 0,
        }
    }

    /// Keeps a publication that the ring has lost, which is newer than all before it.
    pub(crate) fn keep(&mut self, number: u64, publication: &Publication) {
        let replaced = match self.conflate {
            Conflate::Latest => self.publications.last_key_value().map(|(last, _)| *last),
            Conflate::LatestPerKey(_) => self.replace(number, publication),
        };
        if let Some(replaced) = replaced {
            self.forget(replaced);
        }
        self.bytes += weight(publication) + OVERHEAD_BYTES;
        self.publications.insert(number, publication.clone());
        while self.is_over()
            && let Some((oldest, _)) = self.publications.first_key_value()
        {
            let oldest = *oldest;
            self.unlink(oldest);
            self.forget(oldest);
            self.lost_before = oldest + 1;
        }
    }

    /// Removes the publications before `number`, which all members have taken.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while let Some((oldest, _)) = self.publications.first_key_value()
            && *oldest < number
        {
            let oldest = *oldest;
            self.unlink(oldest);
            self.forget(oldest);
        }
        if self.publications.is_empty() {
            self.keys = HashTable::new();
        }
    }

    /// Returns the number before which some publications were dropped that a member may have
    /// needed.
    pub(crate) fn lost_before(&self) -> u64 {
        self.lost_before
    }

    pub(crate) fn len(&self) -> usize {
        self.publications.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the publications held of a range, in order.
    pub(crate) fn iter(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, &Publication)> {
        let range = self.publications.range(from..to.max(from));
        range.map(|(number, publication)| (*number, publication))
    }

    fn is_over(&self) -> bool {
        self.publications.len() > self.options.ring_messages_max.max(1)
            || (self.bytes > self.options.ring_bytes_max && self.publications.len() > 1)
    }

    /// Records `number` as the newest of its publication's key; returns the number it replaces.
    fn replace(&mut self, number: u64, publication: &Publication) -> Option<u64> {
        let key = conflate::key(publication, &self.conflate)?;
        let (publications, conflate, hasher) = (&self.publications, &self.conflate, &self.hasher);
        let key_of = |number: &u64| conflate::key(publications.get(number)?, conflate);
        let is_same = |other: &u64| key_of(other) == Some(key);
        let hash = hasher.hash_one(key);
        if let Some(place) = self.keys.find_mut(hash, is_same) {
            return Some(std::mem::replace(place, number));
        }
        let hash_of = |other: &u64| key_of(other).map_or(0, |key| hasher.hash_one(key));
        self.keys.insert_unique(hash, number, hash_of);
        None
    }

    /// Removes the entry of a publication's key if it refers to this publication.
    fn unlink(&mut self, number: u64) {
        let publication = self.publications.get(&number);
        let key = publication.and_then(|found| conflate::key(found, &self.conflate));
        let Some(key) = key else {
            return;
        };
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.keys.find_entry(hash, |other| *other == number) {
            entry.remove();
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(publication) = self.publications.remove(&number) {
            self.bytes -= weight(&publication) + OVERHEAD_BYTES;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Overflow;
    use crate::{ChannelOptions, Conflate, JsonPointer, Publication, hub::ring::OVERHEAD_BYTES};

    fn overflow(ring_messages_max: usize, ring_bytes_max: usize) -> Overflow {
        let options = ChannelOptions {
            ring_messages_max,
            ring_bytes_max,
        };
        let pointer = JsonPointer::new("/k").unwrap();
        Overflow::new(Conflate::LatestPerKey(pointer), options)
    }

    fn publication(key: &str) -> Publication {
        Publication::new(json!({ "k": key }).to_string().into())
    }

    fn numbers(overflow: &Overflow) -> Vec<u64> {
        overflow
            .iter(0, u64::MAX)
            .map(|(number, _)| number)
            .collect()
    }

    #[test]
    fn overflow_holds_the_newest_of_each_key_in_order() {
        let mut overflow = overflow(10, 100_000);
        for (number, key) in (0..).zip(["a", "b", "a", "c", "b"]) {
            overflow.keep(number, &publication(key));
        }
        assert_eq!(numbers(&overflow), [2, 3, 4]);
        assert_eq!(overflow.lost_before(), 0);
    }

    #[test]
    fn the_newest_publication_stays_with_any_limit() {
        let mut overflow = overflow(0, 1);
        for (number, key) in (0..).zip(["a", "b"]) {
            overflow.keep(number, &publication(key));
        }
        assert_eq!(numbers(&overflow), [1]);
        assert_eq!(overflow.lost_before(), 1);
    }

    #[test]
    fn a_publication_without_a_key_replaces_nothing() {
        let mut overflow = overflow(10, 100_000);
        for (number, payload) in (0..).zip(["1", "no JSON", "{}", "1"]) {
            overflow.keep(number, &Publication::new(payload.into()));
        }
        assert_eq!(numbers(&overflow), [0, 1, 2, 3]);
    }

    #[test]
    fn overflow_holds_messages_up_to_the_limit() {
        let mut overflow = overflow(3, 100_000);
        for (number, key) in (0..).zip(["a", "b", "c"]) {
            overflow.keep(number, &publication(key));
        }
        assert_eq!(
            (numbers(&overflow), overflow.lost_before()),
            (vec![0, 1, 2], 0)
        );
        overflow.keep(3, &publication("a"));
        assert_eq!(
            (numbers(&overflow), overflow.lost_before()),
            (vec![1, 2, 3], 0)
        );
        overflow.keep(4, &publication("d"));
        assert_eq!(
            (numbers(&overflow), overflow.lost_before()),
            (vec![2, 3, 4], 2)
        );
        overflow.keep(5, &publication("b"));
        assert_eq!(overflow.keys.len(), 3);
        assert_eq!(
            (numbers(&overflow), overflow.lost_before()),
            (vec![3, 4, 5], 3)
        );
    }

    #[test]
    fn overflow_holds_bytes_up_to_the_limit() {
        let size = publication("a").payload().len() + OVERHEAD_BYTES;
        let mut overflow = overflow(10, 2 * size);
        overflow.keep(0, &publication("a"));
        overflow.keep(1, &publication("b"));
        assert_eq!(numbers(&overflow), [0, 1]);
        overflow.keep(2, &publication("cc"));
        assert_eq!(numbers(&overflow), [2]);
    }

    #[test]
    fn taken_publications_are_removed_and_not_counted_as_lost() {
        let mut overflow = overflow(10, 100_000);
        for (number, key) in (0..).zip(["a", "b", "c"]) {
            overflow.keep(number, &publication(key));
        }
        overflow.forget_before(2);
        assert_eq!((numbers(&overflow), overflow.lost_before()), (vec![2], 0));
        overflow.keep(3, &publication("a"));
        assert_eq!(numbers(&overflow), [2, 3]);
    }
}
