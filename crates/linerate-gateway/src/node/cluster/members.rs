//! The other nodes of the cluster, as the broker's registry lists them.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// How often a node renews its lease. Together with the lease, after which a beat of any node
/// finds that another one has ended, this is the ten seconds after which a node is forgotten.
pub(crate) const BEAT_INTERVAL: Duration = Duration::from_secs(2);

/// How long the other nodes are assumed to exist without an answer of the broker.
const UNHEARD_MAX: Duration = Duration::from_secs(10);

/// The maximum number of other nodes. Further nodes are neither listed nor waited for in surveys.
const NODES_MAX: usize = 1_024;

/// The list is read again at least after this many beats, and after as many as there are nodes, so
/// that the average size of a read does not grow with the number of nodes.
const BEATS_A_READ_MIN: usize = 20;

/// The other nodes that are registered.
///
/// Nodes say when they join and leave. The registry shows if a message was lost or a node has
/// ended without one: then its number of nodes differs from the one known here.
#[derive(Debug, Default)]
pub(crate) struct Members {
    ids: HashSet<String>,
    /// When the broker answered the last beat.
    heard: Option<Instant>,
    beats_since_read: usize,
    /// True if the registry was read after the broker was last silent for too long.
    are_listed: bool,
}

impl Members {
    /// Records the answer to a beat. Returns whether the list must be read.
    pub(crate) fn handle_beat(&mut self, now: Instant, is_new: bool, nodes: usize) -> bool {
        self.handle_timeout(now);
        let is_known = self.heard.replace(now).is_some() && !is_new;
        self.beats_since_read += 1;
        let is_equal = nodes == self.ids.len() + 1 || nodes > NODES_MAX;
        !is_known || !is_equal || self.beats_since_read >= self.ids.len().max(BEATS_A_READ_MIN)
    }

    /// Records the list of the registry. Returns the nodes that were known but have left.
    pub(crate) fn handle_list(&mut self, others: impl Iterator<Item = String>) -> Vec<String> {
        self.beats_since_read = 0;
        self.are_listed = true;
        let before = std::mem::replace(&mut self.ids, others.take(NODES_MAX).collect());
        let gone = before.into_iter().filter(|id| !self.ids.contains(id));
        gone.collect()
    }

    /// Records nodes that the registry has. Forgets none: others may have joined since it was read.
    pub(crate) fn handle_names(&mut self, others: impl Iterator<Item = String>) {
        self.are_listed = true;
        others.for_each(|id| self.handle_hello(&id));
    }

    /// Returns whether the nodes are known as far as the registry had them.
    pub(crate) fn are_listed(&self) -> bool {
        self.are_listed
    }

    /// Records that a node has joined.
    pub(crate) fn handle_hello(&mut self, id: &str) {
        if self.ids.len() < NODES_MAX {
            self.ids.insert(id.to_owned());
        }
    }

    /// Records that a node has left.
    pub(crate) fn handle_goodbye(&mut self, id: &str) {
        self.ids.remove(id);
    }

    /// Forgets all nodes if the broker has not answered for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let is_over = |heard| now.saturating_duration_since(heard) >= UNHEARD_MAX;
        if self.heard.is_some_and(is_over) {
            *self = Self::default();
        }
    }

    /// Returns whether a node is known.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Returns the IDs of the nodes.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.ids.iter().cloned().collect()
    }

    /// Returns the number of nodes.
    pub(crate) fn count(&self) -> usize {
        self.ids.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use linerate_broker::registry::LEASE;

    use super::{BEAT_INTERVAL, BEATS_A_READ_MIN, Members, NODES_MAX, UNHEARD_MAX};

    fn list(names: &[&str]) -> impl Iterator<Item = String> {
        names.iter().map(|name| (*name).to_owned())
    }

    #[test]
    fn a_node_is_forgotten_within_ten_seconds() {
        assert_eq!(LEASE + BEAT_INTERVAL, Duration::from_secs(10));
    }

    #[test]
    fn the_list_is_read_when_the_numbers_differ() {
        let (mut members, now) = (Members::default(), Instant::now());
        assert!(members.handle_beat(now, true, 3));
        assert!(members.handle_list(list(&["a", "b"])).is_empty());
        assert!(!members.handle_beat(now, false, 3));
        members.handle_hello("c");
        assert!(!members.handle_beat(now, false, 4));
        members.handle_goodbye("a");
        assert!(members.handle_beat(now, false, 4));
        assert_eq!(members.handle_list(list(&["c", "d"])), ["b"]);
        assert!(members.knows("d") && !members.knows("b"));
        assert!(members.handle_beat(now, true, 3), "the lease had ended");
    }

    #[test]
    fn the_list_is_read_again_after_as_many_beats_as_there_are_nodes() {
        let now = Instant::now();
        for others in [1, 100] {
            let mut members = Members::default();
            let ids = (0..others).map(|id| id.to_string());
            members.handle_beat(now, true, others + 1);
            members.handle_list(ids);
            let beats = (1..).find(|_| members.handle_beat(now, false, others + 1));
            assert_eq!(beats, Some(others.max(BEATS_A_READ_MIN)));
        }
    }

    #[test]
    fn nodes_are_forgotten_while_the_broker_is_unavailable() {
        let (mut members, start) = (Members::default(), Instant::now());
        members.handle_beat(start, true, 2);
        members.handle_list(list(&["a"]));
        members.handle_timeout(start + UNHEARD_MAX - Duration::from_millis(1));
        assert_eq!(members.count(), 1);
        members.handle_timeout(start + UNHEARD_MAX);
        assert_eq!(members.count(), 0);
        assert!(members.handle_beat(start + 2 * UNHEARD_MAX, false, 1));
    }

    #[test]
    fn nodes_are_bounded() {
        let (mut members, now) = (Members::default(), Instant::now());
        members.handle_beat(now, true, NODES_MAX + 10);
        members.handle_list((0..NODES_MAX + 9).map(|id| id.to_string()));
        members.handle_hello("one more");
        assert_eq!(members.count(), NODES_MAX);
        assert!(!members.handle_beat(now, false, NODES_MAX + 10));
    }
}
