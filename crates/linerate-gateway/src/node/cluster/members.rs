//! The other nodes of the cluster.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use crate::node::NodeInfo;

/// How often a node announces itself.
pub(crate) const ANNOUNCE_INTERVAL: Duration = Duration::from_secs(3);

/// How long a node may be silent before it counts as gone. Two announcements may be lost.
const GONE_AFTER: Duration = Duration::from_secs(10);

/// The maximum number of other nodes. Further nodes are neither listed nor waited for in surveys.
const NODES_MAX: usize = 1_024;

/// The other nodes that have announced themselves recently.
#[derive(Debug, Default)]
pub(crate) struct Members(HashMap<String, (Instant, NodeInfo)>);

impl Members {
    /// Records an announcement. Returns whether the node is new.
    pub(crate) fn handle_announcement(&mut self, now: Instant, info: NodeInfo) -> bool {
        self.handle_timeout(now);
        if self.0.len() == NODES_MAX && !self.0.contains_key(&info.id) {
            return false;
        }
        self.0.insert(info.id.clone(), (now, info)).is_none()
    }

    /// Removes a node that has said goodbye.
    pub(crate) fn handle_goodbye(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Forgets nodes that have not announced themselves for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.0
            .retain(|_, (seen, _)| now.saturating_duration_since(*seen) < GONE_AFTER);
    }

    /// Returns the nodes, sorted by name.
    pub(crate) fn all(&self) -> Vec<NodeInfo> {
        let mut nodes: Vec<_> = self.0.values().map(|(_, info)| info.clone()).collect();
        nodes.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        nodes
    }

    /// Returns whether a node is known.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    /// Returns the IDs of the nodes.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{GONE_AFTER, Members, NODES_MAX, NodeInfo};

    fn node(id: &str) -> NodeInfo {
        NodeInfo {
            id: id.to_owned(),
            ..NodeInfo::default()
        }
    }

    #[test]
    fn a_silent_node_is_forgotten() {
        let (mut members, start) = (Members::default(), Instant::now());
        assert!(members.handle_announcement(start, node("a")));
        let later = start + Duration::from_secs(4);
        assert!(members.handle_announcement(later, node("b")));
        assert!(!members.handle_announcement(later, node("b")));
        members.handle_timeout(start + GONE_AFTER);
        assert_eq!(members.ids(), ["b"]);
        members.handle_goodbye("b");
        assert!(members.all().is_empty());
    }

    #[test]
    fn nodes_are_bounded() {
        let (mut members, now) = (Members::default(), Instant::now());
        for id in 0..=NODES_MAX {
            members.handle_announcement(now, node(&id.to_string()));
        }
        assert_eq!(members.ids().len(), NODES_MAX);
    }
}
