//! The data that a handler keeps for each of its connections.

use crate::memory::table::Table;

/// The data of the connections of one route.
///
/// Zero-sized values are all alike and therefore only counted. Each other value has a place of its
/// own.
#[derive(Debug)]
pub(crate) enum UserData<D> {
    Counted(Vec<D>),
    Placed(Table<D>),
}

impl<D> UserData<D> {
    pub(crate) const fn new() -> Self {
        if size_of::<D>() == 0 {
            Self::Counted(Vec::new())
        } else {
            Self::Placed(Table::new())
        }
    }

    /// Adds a value; returns its place.
    pub(crate) fn insert(&mut self, value: D) -> u32 {
        match self {
            Self::Counted(values) => {
                values.push(value);
                0
            }
            Self::Placed(table) => table.insert(value) as u32,
        }
    }

    /// Removes and returns the value at `place`, if there is one.
    pub(crate) fn remove(&mut self, place: u32) -> Option<D> {
        match self {
            Self::Counted(values) => (place == 0).then(|| values.pop()).flatten(),
            Self::Placed(table) => table.remove(place as usize),
        }
    }

    /// Returns the value at `place`, which must exist.
    #[inline]
    pub(crate) fn at(&mut self, place: u32) -> &mut D {
        match self {
            Self::Counted(values) => &mut values[place as usize],
            Self::Placed(table) => &mut table[place as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_a_size_are_counted() {
        let mut data = UserData::new();
        assert_eq!(data.insert(()), data.insert(()));
        assert_eq!(data.remove(u32::MAX), None);
        assert_eq!((data.remove(0), data.remove(0)), (Some(()), Some(())));
        assert_eq!(data.remove(0), None);
        assert!(matches!(data, UserData::Counted(values) if values.capacity() == usize::MAX));
    }

    #[test]
    fn other_values_have_a_place_each() {
        let mut data = UserData::new();
        let (one, two) = (data.insert(1), data.insert(2));
        *data.at(one) += 10;
        assert_eq!((data.remove(two), data.remove(one)), (Some(2), Some(11)));
    }
}
