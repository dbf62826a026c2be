//! The leases under which this node stores presence, and their scripts.

use std::{
    collections::HashSet,
    sync::{Mutex, atomic::AtomicU64},
};

use ::redis::Script;

use crate::registry::LEASE;

/// The leases of this node under which it stores entries, one for each shard.
#[derive(Debug, Default)]
pub(super) struct Leases {
    pub(super) generation: AtomicU64,
    /// The shards in which the current generation holds a lease.
    pub(super) held: Mutex<HashSet<u16>>,
}

/// The scripts of presence.
#[derive(Debug)]
pub(super) struct PresenceScripts {
    pub(super) lease: Script,
    pub(super) change: Script,
    pub(super) present: Script,
}

impl PresenceScripts {
    pub(super) fn new() -> Self {
        Self {
            lease: Script::new(include_str!("lua/lease.lua")),
            change: Script::new(include_str!("lua/presence.lua")),
            present: Script::new(include_str!("lua/present.lua")),
        }
    }
}

/// Returns how long a lease lasts, in milliseconds.
pub(super) fn lease_ms() -> u64 {
    LEASE.as_secs() * 1_000
}
