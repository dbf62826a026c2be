//! A map by client, in the order in which the hub numbers its clients.

use crate::{ClientId, hub::room};

/// What the owner of a [`Hub`](crate::Hub) keeps for each client.
///
/// The values are stored by the numbers that the hub gives its clients and uses again, so that the
/// map has few empty places, unlike a hash table.
#[derive(Debug)]
pub struct ClientMap<V> {
    /// Each value with the generation of its client.
    slots: Vec<Option<(u32, V)>>,
    len: usize,
}

impl<V> ClientMap<V> {
    /// Inserts a value and returns the one that it replaces, if there was one.
    pub fn insert(&mut self, client: ClientId, value: V) -> Option<V> {
        let index = client.0.index as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || None);
        }
        let before = self.slots[index].replace((client.0.generation, value));
        self.len += usize::from(before.is_none());
        before.map(|(_, value)| value)
    }

    /// Removes and returns the value of a client. Releases memory when most clients are gone, up to
    /// the last one that remains.
    pub fn remove(&mut self, client: &ClientId) -> Option<V> {
        let slot = self.slots.get_mut(client.0.index as usize)?;
        let (_, value) = slot.take_if(|(generation, _)| *generation == client.0.generation)?;
        self.len -= 1;
        while let Some(None) = self.slots.last() {
            self.slots.pop();
        }
        if let Some(capacity) = room::reduced(self.slots.capacity(), self.slots.len()) {
            self.slots.shrink_to(capacity);
        }
        Some(value)
    }

    /// Returns the value of a client.
    pub fn get(&self, client: &ClientId) -> Option<&V> {
        let (generation, value) = self.slots.get(client.0.index as usize)?.as_ref()?;
        (*generation == client.0.generation).then_some(value)
    }

    /// Returns the value of a client.
    pub fn get_mut(&mut self, client: &ClientId) -> Option<&mut V> {
        let (generation, value) = self.slots.get_mut(client.0.index as usize)?.as_mut()?;
        (*generation == client.0.generation).then_some(value)
    }

    /// Returns the number of clients.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the map is empty.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the clients with their values.
    pub fn iter(&self) -> impl Iterator<Item = (ClientId, &V)> {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, index)| {
            let (generation, value) = slot.as_ref()?;
            Some((ClientId::new(index, *generation), value))
        })
    }

    /// Returns the values.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.slots.iter().flatten().map(|(_, value)| value)
    }
}

impl<V> Default for ClientMap<V> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            len: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ClientMap;
    use crate::ClientId;

    #[test]
    fn a_client_that_has_gone_has_no_value_even_if_another_has_its_place() {
        let mut map = ClientMap::default();
        let [old, new] = [1, 2].map(|generation| ClientId::new(3, generation));
        assert_eq!(map.insert(old, 'a'), None);
        assert_eq!(map.insert(old, 'b'), Some('a'));
        assert_eq!((map.get(&old), map.get(&new)), (Some(&'b'), None));
        assert_eq!(map.remove(&new), None);
        assert_eq!(map.remove(&old), Some('b'));
        assert_eq!((map.remove(&old), map.len()), (None, 0));
        map.insert(new, 'c');
        assert_eq!(map.get_mut(&old), None);
        assert_eq!(map.len(), 1);
        assert_eq!(map.iter().collect::<Vec<_>>(), [(new, &'c')]);
        assert_eq!(map.values().collect::<Vec<_>>(), [&'c']);
    }

    #[test]
    fn memory_is_released_when_most_clients_have_gone() {
        let mut map = ClientMap::default();
        let clients: Vec<_> = (0..1_000)
            .map(|index| ClientId::new(index, index))
            .collect();
        for client in &clients {
            map.insert(*client, *client);
        }
        for client in &clients[10..] {
            assert_eq!(map.remove(client), Some(*client));
        }
        assert!(map.slots.capacity() < 300, "{}", map.slots.capacity());
        assert!(clients[..10].iter().all(|it| map.get(it) == Some(it)));
        assert!(!map.is_empty());
    }
}
