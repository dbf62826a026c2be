//! The registry of the nodes of a service: each holds a lease at the broker, which it renews.
//!
//! The broker's clock decides which leases have ended, so the clocks of nodes need not agree.

use std::time::Duration;

/// How long a node is registered after its last [beat](crate::Broker::beat).
pub const LEASE: Duration = Duration::from_secs(8);

/// The result of a beat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Beat {
    /// The number of registered nodes, including this one.
    pub nodes: usize,
    /// True if the node was not registered before the beat: it is new, or its lease had ended.
    pub is_new: bool,
    /// True if the broker has removed entries of [presence](crate::Broker::set_presence) or
    /// [occupied names](crate::Broker::set_occupancy) of this node, because a lease had ended.
    pub has_lost_presence: bool,
}

impl Beat {
    /// The beat of a node that is the only one of its broker.
    pub const ALONE: Self = Self {
        nodes: 1,
        is_new: false,
        has_lost_presence: false,
    };
}
