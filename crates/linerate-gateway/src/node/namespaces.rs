//! The options of channels in force, and the labels under which channels are counted.

use std::sync::Arc;

use arc_swap::ArcSwap;
use linerate_hub::ChannelName;

use super::labels::Labels;
use crate::config::Namespaces;

/// The namespaces of a node, which a reload replaces. Their labels stay.
#[derive(Debug)]
pub(crate) struct NamespaceTable {
    current: ArcSwap<Namespaces>,
    labels: Labels,
}

impl NamespaceTable {
    pub(super) fn new(namespaces: Namespaces) -> Self {
        Self {
            current: ArcSwap::from_pointee(namespaces),
            labels: Labels::default(),
        }
    }

    /// Replaces the options of channels. Existing subscriptions keep theirs.
    pub(crate) fn replace(&self, namespaces: Namespaces) {
        self.current.store(Arc::new(namespaces));
    }

    /// Returns the options of channels.
    pub(crate) fn current(&self) -> Arc<Namespaces> {
        self.current.load_full()
    }

    /// Returns the name of the namespace that the hubs' counters identify by `label`.
    pub(crate) fn name(&self, label: u16) -> Arc<str> {
        self.labels.name(label)
    }

    /// Returns the label under which a channel is counted.
    pub(super) fn label_of(&self, channel: &ChannelName) -> u16 {
        self.labels.number(self.current.load().label(channel))
    }
}
