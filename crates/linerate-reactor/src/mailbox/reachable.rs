//! The connections of a worker that other threads can reach.

use crate::connection::id::Slot;

/// Set in the entry of a connection that takes messages and Close frames.
const OPEN: u32 = 1 << 31;

/// Set in the entry of a connection whose backlog has reached its limit.
const CONGESTED: u32 = 1 << 30;

/// The states of a worker's connections, as far as other threads know them: 4 bytes for each index,
/// which hold the serial number and two flags.
#[derive(Debug, Default)]
pub(super) struct Reachable(Vec<u32>);

/// What another thread can expect of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reach {
    /// The connection has ended or is closing.
    Closed,
    /// The backlog of the connection has reached its limit.
    Congested,
    /// The connection takes messages.
    Open,
}

impl Reachable {
    /// Adds a connection.
    pub(super) fn open(&mut self, slot: Slot) {
        let index = slot.index as usize;
        if index >= self.0.len() {
            // Doubling would leave as much memory unused as the table of connections avoids.
            if index >= self.0.capacity() {
                self.0
                    .reserve_exact(index + 1 - self.0.len() + self.0.len() / 8);
            }
            self.0.resize(index + 1, 0);
        }
        self.0[index] = OPEN | slot.serial;
    }

    /// Removes a connection. Does nothing if its index belongs to another one.
    pub(super) fn close(&mut self, slot: Slot) {
        if let Some(entry) = self.entry(slot) {
            *entry = 0;
        }
    }

    /// Sets whether the backlog of a connection has reached its limit.
    pub(super) fn set_congested(&mut self, slot: Slot, congested: bool) {
        if let Some(entry) = self.entry(slot) {
            *entry = OPEN | slot.serial | if congested { CONGESTED } else { 0 };
        }
    }

    pub(super) fn find(&self, slot: Slot) -> Reach {
        match self.0.get(slot.index as usize) {
            Some(entry) if *entry == OPEN | slot.serial => Reach::Open,
            Some(entry) if *entry == OPEN | CONGESTED | slot.serial => Reach::Congested,
            _ => Reach::Closed,
        }
    }

    fn entry(&mut self, slot: Slot) -> Option<&mut u32> {
        let entry = self.0.get_mut(slot.index as usize)?;
        (*entry & !CONGESTED == OPEN | slot.serial).then_some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn slot(index: u32, serial: u32) -> Slot {
        Slot { index, serial }
    }

    #[test]
    fn an_index_that_is_used_again_is_another_connection() {
        let mut reachable = Reachable::default();
        let (old, new) = (slot(3, 0), slot(3, (1 << 28) - 1));
        assert_eq!(reachable.find(old), Reach::Closed);
        reachable.open(old);
        assert_eq!(reachable.find(old), Reach::Open);
        assert_eq!(reachable.find(slot(2, 0)), Reach::Closed);
        reachable.close(old);
        assert_eq!(reachable.find(old), Reach::Closed);
        reachable.open(new);
        reachable.set_congested(old, true);
        reachable.close(old);
        assert_eq!(reachable.find(old), Reach::Closed);
        assert_eq!(reachable.find(new), Reach::Open);
        reachable.set_congested(new, true);
        assert_eq!(reachable.find(new), Reach::Congested);
        reachable.set_congested(new, false);
        assert_eq!(reachable.find(new), Reach::Open);
        reachable.set_congested(new, true);
        reachable.close(new);
        reachable.set_congested(new, true);
        assert_eq!(reachable.find(new), Reach::Closed);
    }

    #[test]
    fn memory_follows_the_number_of_connections() {
        let mut reachable = Reachable::default();
        (0..100_000).for_each(|index| reachable.open(slot(index, 7)));
        assert!(reachable.0.capacity() <= 112_501);
        assert_eq!(reachable.find(slot(99_999, 7)), Reach::Open);
    }
}
