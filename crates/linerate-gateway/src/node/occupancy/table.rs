//! The places of a node, and how they differ from what the broker has stored.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_hub::ChannelName;

/// How long a place must be vacant before this is stored, because clients that lost their
/// connection usually return soon.
pub(super) const VACANT_MIN: Duration = Duration::from_secs(3);

/// The maximum number of vacant places that wait. Beyond it, the oldest are stored early.
const VACANT_MAX: usize = 65_536;

/// The approximate memory of a place without its texts, in bytes.
const PLACE_BYTES: usize = 256;

/// Something that is occupied while it has clients.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Place {
    /// A channel with subscribers.
    Channel(ChannelName),
    /// A user who is present in a channel.
    Member(ChannelName, Box<str>),
}

/// The places of this node that webhooks are told of.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: HashMap<Place, Entry, RandomState>,
    /// The places that may differ from what is stored, each at most once.
    changed: VecDeque<Place>,
    /// The places that were left, and until when they wait; ordered by time, each at most once.
    vacant: VecDeque<(Instant, Place)>,
    /// The approximate memory of the entries, in bytes.
    bytes: usize,
}

#[derive(Debug, Default)]
struct Entry {
    /// The workers on which the place has clients.
    workers: Vec<u16>,
    /// Since when it has none.
    vacant_since: Option<Instant>,
    is_stored: bool,
    /// True if the broker may have lost it. It is stored again even if all clients have left since,
    /// so that the broker can tell when it becomes vacant.
    must_restore: bool,
    /// True if the place is in [`Table::changed`].
    is_changed: bool,
    /// True if the place is in [`Table::vacant`].
    is_waiting: bool,
}

/// What is to be stored of a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Change {
    pub(super) place: Place,
    pub(super) is_occupied: bool,
}

impl Place {
    /// Returns the channel.
    pub(super) const fn channel(&self) -> &ChannelName {
        match self {
            Self::Channel(channel) | Self::Member(channel, _) => channel,
        }
    }

    /// Returns the name at the broker.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Channel(channel) => channel.to_string(),
            // Channels contain no space.
            Self::Member(channel, user) => format!("{channel} {user}"),
        }
    }

    /// Returns the place with this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name.split_once(' ') {
            None => ChannelName::new(name).ok().map(Self::Channel),
            Some((channel, user)) => {
                let channel = ChannelName::new(channel).ok()?;
                Some(Self::Member(channel, user.into()))
            }
        }
    }

    fn bytes(&self) -> usize {
        let user = match self {
            Self::Channel(_) => 0,
            Self::Member(_, user) => user.len(),
        };
        PLACE_BYTES + self.channel().as_str().len() + user
    }
}

impl Entry {
    /// Returns whether the place counts as occupied.
    fn is_occupied(&self, now: Instant) -> bool {
        !self.workers.is_empty() || self.must_restore || self.is_stored && self.is_recent(now)
    }

    /// Returns whether the last client has left only recently.
    fn is_recent(&self, now: Instant) -> bool {
        let is_recent = |since| now.saturating_duration_since(since) < VACANT_MIN;
        self.vacant_since.is_some_and(is_recent)
    }
}

impl Table {
    /// Records that a place has clients on a worker. Returns whether something is to be stored.
    pub(super) fn came(&mut self, place: &Place, worker: u16) -> bool {
        let entry = match self.entries.get_mut(place) {
            Some(entry) => entry,
            None => {
                self.bytes += place.bytes();
                self.entries.entry(place.clone()).or_default()
            }
        };
        if !entry.workers.contains(&worker) {
            entry.workers.push(worker);
        }
        entry.vacant_since = None;
        let must_store = !entry.is_stored && !entry.is_changed;
        if must_store {
            entry.is_changed = true;
            self.changed.push_back(place.clone());
        }
        must_store
    }

    /// Records that a place has no more clients on a worker. Returns whether something waits.
    pub(super) fn left(&mut self, now: Instant, place: &Place, worker: u16) -> bool {
        let Some(entry) = self.entries.get_mut(place) else {
            return false;
        };
        entry.workers.retain(|known| *known != worker);
        if !entry.workers.is_empty() || entry.vacant_since.is_some() {
            return false;
        }
        entry.vacant_since = Some(now);
        if !entry.is_waiting {
            entry.is_waiting = true;
            self.vacant.push_back((now + VACANT_MIN, place.clone()));
        }
        if self.vacant.len() > VACANT_MAX
            && let Some((_, oldest)) = self.vacant.pop_front()
        {
            self.end_waiting(oldest);
        }
        true
    }

    /// Records that places with no more interest have no clients, without waiting.
    pub(super) fn forget(&mut self, is_wanted: impl Fn(&Place) -> bool) {
        let unwanted = self.entries.iter_mut();
        for (place, entry) in unwanted.filter(|(place, _)| !is_wanted(place)) {
            entry.workers.clear();
            entry.vacant_since = None;
            entry.must_restore = false;
            if !entry.is_changed {
                entry.is_changed = true;
                self.changed.push_back(place.clone());
            }
        }
    }

    /// Records that the broker has lost what was stored.
    pub(super) fn restore(&mut self) {
        for (place, entry) in &mut self.entries {
            entry.must_restore |= std::mem::take(&mut entry.is_stored);
            if !entry.is_changed {
                entry.is_changed = true;
                self.changed.push_back(place.clone());
            }
        }
    }

    /// Returns when to look for changes, at the latest.
    pub(super) fn due(&self) -> Option<Instant> {
        self.vacant.front().map(|(due, _)| *due)
    }

    /// Removes up to `limit` changes that are to be stored.
    pub(super) fn take(&mut self, now: Instant, limit: usize) -> Vec<Change> {
        while self.due().is_some_and(|due| due <= now) {
            let Some((_, place)) = self.vacant.pop_front() else {
                break;
            };
            match self.entries.get_mut(&place) {
                // Clients have come and left again in the meantime.
                Some(entry) if entry.is_recent(now) => {
                    self.vacant.push_back((now + VACANT_MIN, place));
                }
                _ => self.end_waiting(place),
            }
        }
        let mut changes = Vec::new();
        while changes.len() < limit
            && let Some(place) = self.changed.pop_front()
        {
            let Some(entry) = self.entries.get_mut(&place) else {
                continue;
            };
            entry.is_changed = false;
            let is_occupied = entry.is_occupied(now);
            if is_occupied != entry.is_stored {
                changes.push(Change { place, is_occupied });
            } else if !is_occupied && !entry.is_waiting {
                self.remove(&place);
            }
        }
        changes
    }

    /// Records that changes were stored.
    pub(super) fn stored(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(entry) = self.entries.get_mut(&change.place) else {
                continue;
            };
            entry.is_stored = change.is_occupied;
            entry.must_restore &= !change.is_occupied;
            let has_clients = !entry.workers.is_empty();
            if entry.is_changed || entry.is_waiting {
                continue;
            }
            if has_clients != change.is_occupied {
                // Clients have come or left in the meantime.
                entry.is_changed = true;
                self.changed.push_back(change.place.clone());
            } else if !has_clients {
                self.remove(&change.place);
            }
        }
    }

    /// Records that changes could not be stored, so that they are attempted again.
    pub(super) fn failed(&mut self, changes: Vec<Change>) {
        for Change { place, .. } in changes.into_iter().rev() {
            if let Some(entry) = self.entries.get_mut(&place)
                && !entry.is_changed
            {
                entry.is_changed = true;
                self.changed.push_front(place);
            }
        }
    }

    /// Removes all places and returns those that are stored.
    pub(super) fn end(&mut self) -> Vec<Place> {
        let entries = std::mem::take(self).entries.into_iter();
        let told = entries.filter(|(_, entry)| entry.is_stored);
        told.map(|(place, _)| place).collect()
    }

    /// Returns the number of places.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the approximate memory of the places, in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Looks again at a place that no longer waits.
    fn end_waiting(&mut self, place: Place) {
        let Some(entry) = self.entries.get_mut(&place) else {
            return;
        };
        entry.is_waiting = false;
        if entry.workers.is_empty() {
            entry.vacant_since = None;
        }
        if !entry.is_changed {
            entry.is_changed = true;
            self.changed.push_back(place);
        }
    }

    fn remove(&mut self, place: &Place) {
        if self.entries.remove(place).is_some() {
            self.bytes -= place.bytes();
        }
    }
}

#[cfg(test)]
mod tests;
