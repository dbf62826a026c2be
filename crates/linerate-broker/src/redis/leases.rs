//! The leases under which this node stores what ends with it: presence, and the names that it
//! occupies; and their scripts.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64},
    },
};

use ::redis::Script;

use crate::registry::LEASE;

/// What is stored under a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Family {
    Occupancy,
    Presence,
}

/// The leases of this node under which it stores entries of a family, one for each shard.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// True once this node stores such entries, or wants to sweep those of others.
    pub(super) are_used: AtomicBool,
    pub(super) generation: AtomicU64,
    /// The shards in which the current generation holds a lease.
    pub(super) held: Mutex<HashSet<u16>>,
}

/// The scripts for leases and entries.
#[derive(Debug)]
pub(super) struct LeaseScripts {
    pub(super) lease: Script,
    pub(super) occupy: Script,
    pub(super) change: Script,
    pub(super) present: Script,
}

impl Leases {
    /// Creates leases for entries that all nodes store and sweep.
    pub(super) fn in_use() -> Self {
        Self {
            are_used: true.into(),
            ..Self::default()
        }
    }
}

impl LeaseScripts {
    pub(super) fn new() -> Self {
        Self {
            lease: Script::new(include_str!("lua/lease.lua")),
            occupy: Script::new(include_str!("lua/occupancy.lua")),
            change: Script::new(include_str!("lua/presence.lua")),
            present: Script::new(include_str!("lua/present.lua")),
        }
    }
}

/// Returns how long a lease lasts, in milliseconds.
pub(super) fn lease_ms() -> u64 {
    LEASE.as_secs() * 1_000
}
