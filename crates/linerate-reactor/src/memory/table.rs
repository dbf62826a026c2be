//! A table whose values keep their indices, in chunks that never move.
//!
//! Doubling a vector would copy all connections at once and leave as much memory unused again. A
//! chunk instead has its full size from the start and is freed when its last value is removed.

use std::ops::{Index, IndexMut};

/// The number of values in a chunk.
const CHUNK: usize = 128;

/// A table of values, each with an index of its own.
#[derive(Debug)]
pub(crate) struct Table<T> {
    chunks: Vec<Chunk<T>>,
    /// The chunks with free slots; the last one is filled next.
    roomy: Vec<u32>,
    len: usize,
}

#[derive(Debug)]
struct Chunk<T> {
    /// Grows up to the number of values in a chunk, without reallocating.
    slots: Vec<Slot<T>>,
    /// The slot that is filled next; the length of `slots` if it is a new one.
    vacant: u32,
    occupied: u32,
}

#[derive(Debug)]
enum Slot<T> {
    Occupied(T),
    /// The slot that is filled after this one.
    Vacant(u32),
}

impl<T> Table<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            roomy: Vec::new(),
            len: 0,
        }
    }

    /// Returns the index that the next value gets.
    pub(crate) fn next_index(&self) -> usize {
        match self.roomy.last() {
            Some(number) => {
                let number = *number as usize;
                number * CHUNK + self.chunks[number].vacant as usize
            }
            None => self.chunks.len() * CHUNK,
        }
    }

    /// Adds a value; returns its index.
    pub(crate) fn insert(&mut self, value: T) -> usize {
        let number = match self.roomy.last() {
            Some(number) => *number as usize,
            None => {
                self.chunks.push(Chunk::new());
                let number = self.chunks.len() - 1;
                self.roomy.push(number as u32);
                number
            }
        };
        let chunk = &mut self.chunks[number];
        let slot = chunk.insert(value);
        if chunk.is_full() {
            self.roomy.pop();
        }
        self.len += 1;
        number * CHUNK + slot
    }

    /// Removes and returns the value at `index`, if there is one.
    pub(crate) fn remove(&mut self, index: usize) -> Option<T> {
        let number = index / CHUNK;
        let chunk = self.chunks.get_mut(number)?;
        let was_full = chunk.is_full();
        let value = chunk.remove(index % CHUNK)?;
        // The chunk that is filled next may stay empty, so that alternating inserts and removals do
        // not allocate.
        if was_full {
            let next = self.roomy.last().copied();
            self.roomy.push(number as u32);
            next.into_iter().for_each(|next| self.free_if_empty(next));
        } else if self.roomy.last() != Some(&(number as u32)) {
            self.free_if_empty(number as u32);
        }
        self.len -= 1;
        Some(value)
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        match self.chunks.get(index / CHUNK)?.slots.get(index % CHUNK)? {
            Slot::Occupied(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let chunk = self.chunks.get_mut(index / CHUNK)?;
        match chunk.slots.get_mut(index % CHUNK)? {
            Slot::Occupied(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    /// Returns the indices that hold a value.
    pub(crate) fn indices(&self) -> impl Iterator<Item = usize> {
        let all = 0..self.chunks.len() * CHUNK;
        all.filter(|index| self.get(*index).is_some())
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn free_if_empty(&mut self, number: u32) {
        let chunk = &mut self.chunks[number as usize];
        if chunk.occupied == 0 {
            *chunk = Chunk::new();
        }
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.get(index).expect("the index holds a value")
    }
}

impl<T> IndexMut<usize> for Table<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        self.get_mut(index).expect("the index holds a value")
    }
}

impl<T> Chunk<T> {
    const fn new() -> Self {
        Self {
            slots: Vec::new(),
            vacant: 0,
            occupied: 0,
        }
    }

    fn insert(&mut self, value: T) -> usize {
        let at = self.vacant as usize;
        match self.slots.get_mut(at) {
            Some(slot) => match std::mem::replace(slot, Slot::Occupied(value)) {
                Slot::Vacant(next) => self.vacant = next,
                Slot::Occupied(_) => unreachable!("an occupied slot is not filled again"),
            },
            None => {
                if self.slots.capacity() == 0 {
                    self.slots.reserve_exact(CHUNK);
                }
                self.slots.push(Slot::Occupied(value));
                self.vacant += 1;
            }
        }
        self.occupied += 1;
        at
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        let slot = self.slots.get_mut(at)?;
        if let Slot::Vacant(_) = slot {
            return None;
        }
        let removed = std::mem::replace(slot, Slot::Vacant(self.vacant));
        self.vacant = at as u32;
        self.occupied -= 1;
        match removed {
            Slot::Occupied(value) => Some(value),
            Slot::Vacant(_) => None,
        }
    }

    const fn is_full(&self) -> bool {
        self.occupied as usize == CHUNK
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_testkit::Rng;

    use super::*;

    #[test]
    fn equals_a_map_from_indices() {
        let mut rng = Rng::new(7);
        let mut table = Table::new();
        let mut map = BTreeMap::new();
        for round in 0..40_000_u32 {
            // The table grows and shrinks over several chunks.
            let is_growing = round / 5_000 % 2 == 0;
            if rng.below(10) < if is_growing { 6 } else { 4 } {
                let index = table.next_index();
                assert_eq!(table.insert(round), index);
                assert_eq!(map.insert(index, round), None);
            } else {
                let index = rng.below(table.chunks.len() * CHUNK + 2);
                assert_eq!(table.remove(index), map.remove(&index));
                assert_eq!(table.remove(index), None);
            }
            assert_eq!(table.len, map.len());
        }
        assert!(table.indices().eq(map.keys().copied()));
        assert!(map.iter().all(|(index, value)| table[*index] == *value));
        map.keys().for_each(|index| _ = table.remove(*index));
        assert!(table.is_empty());
    }

    #[test]
    fn values_never_move() {
        let mut table = Table::new();
        let first = table.insert(1_u64);
        let address = &raw const table[first];
        (0..10_000).for_each(|number| _ = table.insert(number));
        assert_eq!(&raw const table[first], address);
    }

    #[test]
    fn memory_follows_the_number_of_values() {
        let mut table = Table::new();
        let capacity = |table: &Table<u64>| -> usize {
            let chunks = table.chunks.iter();
            chunks.map(|chunk| chunk.slots.capacity()).sum()
        };
        let indices: Vec<_> = (0..10_000).map(|number| table.insert(number)).collect();
        assert!(capacity(&table) < 10_000 + CHUNK);
        indices.iter().for_each(|index| _ = table.remove(*index));
        assert!(capacity(&table) <= CHUNK);
        assert_eq!(table.insert(1), table.indices().next().unwrap());
    }
}
