//! A map by channel for a client, which nearly always has few channels.

use std::{borrow::Borrow, fmt, vec};

use linerate_hub::ChannelName;

/// A map by channel, in the order of the names.
///
/// It has no spare capacity until it has several entries: with tens of thousands of clients of one
/// channel each, the empty places of hash tables would be most of their memory.
pub(crate) struct ChannelMap<V>(Vec<(ChannelName, V)>);

impl<V> ChannelMap<V> {
    pub(crate) fn get(&self, channel: &(impl Borrow<str> + ?Sized)) -> Option<&V> {
        let place = self.find(channel.borrow()).ok()?;
        Some(&self.0[place].1)
    }

    pub(crate) fn get_mut(&mut self, channel: &(impl Borrow<str> + ?Sized)) -> Option<&mut V> {
        let place = self.find(channel.borrow()).ok()?;
        Some(&mut self.0[place].1)
    }

    pub(crate) fn contains_key(&self, channel: &(impl Borrow<str> + ?Sized)) -> bool {
        self.find(channel.borrow()).is_ok()
    }

    /// Inserts a value and returns the one that it replaces, if there was one.
    pub(crate) fn insert(&mut self, channel: ChannelName, value: V) -> Option<V> {
        match self.find(channel.as_str()) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, value)),
            Err(place) => {
                if self.0.is_empty() {
                    self.0.reserve_exact(1);
                }
                self.0.insert(place, (channel, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, channel: &(impl Borrow<str> + ?Sized)) -> Option<V> {
        let place = self.find(channel.borrow()).ok()?;
        let (_, value) = self.0.remove(place);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        Some(value)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ChannelName, &V)> {
        self.0.iter().map(|(channel, value)| (channel, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (&ChannelName, &mut V)> {
        self.0.iter_mut().map(|(channel, value)| (&*channel, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &ChannelName> {
        self.0.iter().map(|(channel, _)| channel)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the place of a channel, or as an error where to insert it.
    fn find(&self, channel: &str) -> Result<usize, usize> {
        self.0
            .binary_search_by(|(other, _)| other.as_str().cmp(channel))
    }
}

impl<V> Default for ChannelMap<V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<V> IntoIterator for ChannelMap<V> {
    type Item = (ChannelName, V);
    type IntoIter = vec::IntoIter<(ChannelName, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: fmt::Debug> fmt::Debug for ChannelMap<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_hub::ChannelName;
    use proptest::prelude::*;

    use super::ChannelMap;

    fn name(number: u8) -> ChannelName {
        ChannelName::new(&format!("channel:{number}")).unwrap()
    }

    proptest! {
        #[test]
        fn it_is_a_map(operations in prop::collection::vec((0..20_u8, any::<bool>()), 0..100)) {
            let (mut map, mut model) = (ChannelMap::default(), BTreeMap::new());
            for (value, (number, is_insert)) in operations.into_iter().enumerate() {
                let channel = name(number);
                match is_insert {
                    true => prop_assert_eq!(
                        map.insert(channel.clone(), value),
                        model.insert(channel.clone(), value)
                    ),
                    false => prop_assert_eq!(map.remove(&channel), model.remove(&channel)),
                }
                prop_assert_eq!(map.get(&channel), model.get(&channel));
                prop_assert_eq!(map.contains_key(&channel), model.contains_key(&channel));
                prop_assert_eq!(map.get_mut(&channel), model.get_mut(&channel));
                prop_assert_eq!(map.len(), model.len());
            }
            prop_assert!(map.iter().eq(model.iter()));
            prop_assert!(map.into_iter().eq(model));
        }
    }

    #[test]
    fn one_channel_takes_one_place() {
        let mut map = ChannelMap::default();
        map.insert(name(1), 0_u64);
        assert_eq!(map.0.capacity(), 1);
        map.remove(&name(1));
        assert_eq!(map.0.capacity(), 0);
    }
}
