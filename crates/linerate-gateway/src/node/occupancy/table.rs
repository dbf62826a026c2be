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
pub(crate) enum Place {
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
mod tests {
    use std::time::{Duration, Instant};

    use linerate_hub::ChannelName;
    use linerate_testkit::Rng;

    use super::{Change, Place, Table, VACANT_MAX, VACANT_MIN};

    fn room(number: usize) -> Place {
        Place::Channel(ChannelName::new(&format!("room:{number}")).unwrap())
    }

    fn change(place: &Place, is_occupied: bool) -> Change {
        Change {
            place: place.clone(),
            is_occupied,
        }
    }

    /// Stores all changes and returns them.
    fn store(table: &mut Table, now: Instant) -> Vec<Change> {
        let changes = table.take(now, usize::MAX);
        table.stored(&changes);
        changes
    }

    #[test]
    fn names_of_places_are_read_back() {
        let channel = ChannelName::new("presence-a").unwrap();
        for place in [
            room(1),
            Place::Member(channel.clone(), "ada".into()),
            Place::Member(channel, "a b \n".into()),
        ] {
            assert_eq!(Place::named(&place.name()), Some(place));
        }
        assert_eq!(Place::named(""), None);
        assert_eq!(Place::named(" ada"), None);
    }

    #[test]
    fn a_place_is_occupied_from_the_first_worker_to_the_last_and_a_while_longer() {
        let (mut table, place, now) = (Table::default(), room(1), Instant::now());
        assert!(table.came(&place, 0));
        assert!(!table.came(&place, 1));
        assert_eq!(store(&mut table, now), [change(&place, true)]);
        assert!(!table.left(now, &place, 0));
        assert!(table.left(now, &place, 1));
        let almost = now + VACANT_MIN - Duration::from_millis(1);
        assert_eq!(store(&mut table, almost), []);
        assert_eq!(table.due(), Some(now + VACANT_MIN));
        let vacant = store(&mut table, now + VACANT_MIN);
        assert_eq!(vacant, [change(&place, false)]);
        assert_eq!((table.len(), table.bytes()), (0, 0));
    }

    #[test]
    fn a_client_that_returns_soon_changes_nothing() {
        let (mut table, place, now) = (Table::default(), room(1), Instant::now());
        table.came(&place, 0);
        store(&mut table, now);
        for second in [0, 2, 4, 6] {
            let now = now + Duration::from_secs(second);
            table.left(now, &place, 0);
            assert_eq!(store(&mut table, now + Duration::from_secs(1)), []);
            table.came(&place, 0);
        }
        let now = now + Duration::from_secs(7);
        assert_eq!(store(&mut table, now), []);
        table.left(now, &place, 0);
        let now = now + 2 * VACANT_MIN;
        assert_eq!(store(&mut table, now), [change(&place, false)]);
    }

    #[test]
    fn a_client_that_comes_while_a_vacant_place_is_stored_is_stored_afterwards() {
        let (mut table, place, now) = (Table::default(), room(1), Instant::now());
        table.came(&place, 0);
        store(&mut table, now);
        table.left(now, &place, 0);
        let changes = table.take(now + VACANT_MIN, 1);
        table.came(&place, 0);
        table.stored(&changes);
        let later = store(&mut table, now + VACANT_MIN);
        assert_eq!(later, [change(&place, true)]);
    }

    #[test]
    fn a_change_that_failed_is_attempted_again_and_everything_after_a_loss() {
        let (mut table, now) = (Table::default(), Instant::now());
        for number in 0..3 {
            table.came(&room(number), 0);
        }
        let changes = table.take(now, 2);
        table.failed(changes.clone());
        assert_eq!(table.take(now, 2), changes);
        table.stored(&changes);
        store(&mut table, now);
        table.left(now, &room(0), 0);
        table.restore();
        let mut changes = store(&mut table, now);
        changes.sort_by_key(|change| change.place.name());
        assert_eq!(changes, [0, 1, 2].map(|number| change(&room(number), true)));
    }

    #[test]
    fn a_place_that_was_left_before_a_loss_is_stored_again_and_then_vacated() {
        for is_due in [false, true] {
            let (mut table, place, now) = (Table::default(), room(1), Instant::now());
            table.came(&place, 0);
            store(&mut table, now);
            table.left(now, &place, 0);
            table.restore();
            let later = match is_due {
                false => now,
                true => now + VACANT_MIN,
            };
            assert_eq!(store(&mut table, later), [change(&place, true)]);
            let vacated = store(&mut table, now + VACANT_MIN);
            assert_eq!(vacated, [change(&place, false)]);
            store(&mut table, now + VACANT_MIN);
            assert_eq!((table.len(), table.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_flood_of_vacant_places_does_not_wait() {
        let (mut table, now) = (Table::default(), Instant::now());
        let all = VACANT_MAX + 10;
        for number in 0..all {
            table.came(&room(number), 0);
            store(&mut table, now);
            table.left(now, &room(number), 0);
        }
        assert_eq!(store(&mut table, now).len(), 1);
        assert_eq!(table.len(), VACANT_MAX);
        store(&mut table, now + VACANT_MIN);
        assert_eq!((table.len(), table.bytes()), (0, 0));
    }

    #[test]
    fn what_is_stored_is_at_last_what_is_occupied() {
        let mut rng = Rng::new(7);
        let (mut table, mut now) = (Table::default(), Instant::now());
        let (mut here, mut at_broker) = ([[false; 2]; 5], [false; 5]);
        for step in 0..50_000 {
            let (number, worker) = (rng.below(5), rng.below(2));
            let is_here = &mut here[number][worker];
            *is_here = !*is_here;
            match *is_here {
                true => _ = table.came(&room(number), worker as u16),
                false => _ = table.left(now, &room(number), worker as u16),
            }
            now += Duration::from_millis(rng.below(2_000) as u64);
            match rng.below(4) {
                0 => {
                    let changes = table.take(now, 3);
                    table.failed(changes);
                }
                1 if step % 100 == 0 => {
                    table.restore();
                    at_broker = [false; 5];
                }
                _ => {}
            }
            let rounds = match step % 50 {
                0 => 4,
                _ => 1,
            };
            for _ in 0..rounds {
                if rounds > 1 {
                    now += VACANT_MIN;
                }
                for change in store(&mut table, now) {
                    let number: usize = change.place.channel().as_str()[5..].parse().unwrap();
                    at_broker[number] = change.is_occupied;
                }
            }
            if rounds > 1 {
                let occupied = here.map(|workers| workers.contains(&true));
                assert_eq!(at_broker, occupied, "after {step} steps");
            }
        }
    }
}
