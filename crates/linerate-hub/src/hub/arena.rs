//! A collection whose elements are referred to by index.

use std::ops::{Index, IndexMut};

use slab::Slab;

use crate::{hub::room, id::Key};

/// Elements, each with an index that is fixed while it exists.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    slots: Slab<(u32, T)>,
    generation: u32,
    /// The highest number of elements since memory was last released.
    peak: usize,
}

impl<T> Arena<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slab::new(),
            generation: 0,
            peak: 0,
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let index = self.slots.insert((generation, value)) as u32;
        self.peak = self.peak.max(self.slots.len());
        Key { index, generation }
    }

    /// Returns the index of the element that `key` refers to, if it still exists.
    pub(crate) fn find(&self, key: Key) -> Option<u32> {
        let slot = self.slots.get(key.index as usize);
        let is_same = slot.is_some_and(|(generation, _)| *generation == key.generation);
        is_same.then_some(key.index)
    }

    /// Returns the key of the element at `index`.
    pub(crate) fn key(&self, index: u32) -> Key {
        let generation = self.slots[index as usize].0;
        Key { index, generation }
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize).map(|(_, value)| value)
    }

    /// Removes an element. Releases memory when most elements are gone, up to the last slot that is
    /// still in use.
    pub(crate) fn remove(&mut self, index: u32) -> T {
        let (_, value) = self.slots.remove(index as usize);
        if self.slots.is_empty() {
            self.slots = Slab::new();
            self.peak = 0;
        } else if room::reduced(self.peak, self.slots.len()).is_some() {
            self.slots.shrink_to_fit();
            self.peak = self.slots.len();
        }
        value
    }

    pub(crate) fn contains(&self, index: u32) -> bool {
        self.slots.contains(index as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let slots = self.slots.iter();
        slots.map(|(index, (_, value))| (index as u32, value))
    }
}

impl<T> Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, index: u32) -> &T {
        &self.slots[index as usize].1
    }
}

impl<T> IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.slots[index as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::Arena;

    #[test]
    fn a_key_is_invalid_once_its_value_is_removed() {
        let mut arena = Arena::new();
        let first = arena.insert('a');
        assert_eq!(arena.remove(first.index), 'a');
        let second = arena.insert('b');
        assert_eq!(second.index, first.index, "the slot is reused");
        assert_eq!(arena.find(first), None);
        assert_eq!(arena.find(second), Some(second.index));
        assert_eq!(arena.key(second.index), second);
        assert!(arena.contains(second.index) && !arena.contains(1));
        assert_eq!(arena.iter().collect::<Vec<_>>(), [(0, &'b')]);
    }

    /// Fills an arena with `peak` elements, removes from its end until `left` remain, and returns
    /// its capacity.
    fn room_after(peak: u32, left: u32) -> usize {
        let mut arena = Arena::new();
        for number in 0..peak {
            arena.insert(number);
        }
        for index in (left..peak).rev() {
            arena.remove(index);
        }
        assert_eq!(arena.len(), left as usize);
        arena.slots.capacity()
    }

    #[test]
    fn memory_is_released_when_most_values_are_removed() {
        assert!(
            room_after(1_000, 234) >= 1_000,
            "too many elements are left for the memory to be released"
        );
        assert!(room_after(1_000, 233) < 1_000);
        assert!(
            room_after(64, 1) >= 64,
            "releasing so little is not worth it"
        );
        assert_eq!(room_after(64, 0), 0);
    }

    #[test]
    fn memory_is_released_in_steps() {
        let mut arena = Arena::new();
        for number in 0..10_000 {
            arena.insert(number);
        }
        let mut shrunk = 0;
        let mut room = arena.slots.capacity();
        for index in (100..10_000).rev() {
            arena.remove(index);
            shrunk += usize::from(arena.slots.capacity() < room);
            room = arena.slots.capacity();
        }
        assert!((2..=4).contains(&shrunk), "{shrunk} times");
    }
}
