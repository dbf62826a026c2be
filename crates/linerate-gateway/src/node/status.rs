//! What a node tells others about itself.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};

use super::{counts::Counts, dispatch::Dispatcher};
use crate::clock::now;

/// A summary of a node's state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct NodeInfo {
    /// The ID of this run of the node.
    pub id: String,
    /// The display name of the node.
    pub name: String,
    /// The version of linerate.
    pub version: String,
    /// The time since the node was started, in seconds.
    pub uptime_s: u64,
    /// The number of connected clients.
    pub clients: u64,
    /// The number of distinct users among them.
    pub users: u64,
    /// The number of their subscriptions.
    pub subscriptions: u64,
    /// The number of channels with subscribers.
    pub channels: u64,
}

/// The identity of this node, and how much it serves.
#[derive(Debug)]
pub(crate) struct Status {
    id: String,
    name: String,
    started: Instant,
    counts: Arc<Counts>,
    dispatcher: Arc<Dispatcher>,
}

impl Status {
    pub(super) fn new(
        id: String,
        name: String,
        counts: Arc<Counts>,
        dispatcher: Arc<Dispatcher>,
    ) -> Self {
        Self {
            id,
            name,
            started: now(),
            counts,
            dispatcher,
        }
    }

    /// Returns the ID of this run of the node, unique in the cluster.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time since the node was started.
    pub(crate) fn uptime(&self) -> Duration {
        now() - self.started
    }

    /// Returns a summary of the node's state.
    pub(crate) fn info(&self) -> NodeInfo {
        NodeInfo {
            id: self.id.clone(),
            name: self.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.uptime().as_secs(),
            clients: self.counts.clients(),
            users: self.counts.users(),
            subscriptions: self.counts.subscriptions(),
            channels: self.dispatcher.routes.count() as u64,
        }
    }
}
