//! Counts of what has happened in the simulation.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::AddAssign,
};

/// What clients have seen, and what was done to them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Seen {
    pub(super) publications: u64,
    pub(super) gaps: u64,
    pub(super) recovered: u64,
    pub(super) unrecovered: u64,
    /// Subscriptions that a gap has ended.
    pub(super) ended: u64,
    /// Publications of a new epoch in answers that could not recover everything.
    pub(super) followed: u64,
    pub(super) crashes: u64,
    pub(super) freezes: u64,
    pub(super) partitions: u64,
    pub(super) restarts: u64,
    pub(super) failovers: u64,
    pub(super) zones_lost: u64,
    pub(super) deploys: u64,
    /// The most subscriptions for which clients stood in one seed.
    pub(super) subscriptions_max: u64,
    /// A digest of everything that clients have seen, in order.
    pub(super) digest: u64,
}

impl Seen {
    /// Adds to the digest what a client has seen.
    pub(super) fn record(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.digest, what).hash(&mut hasher);
        self.digest = hasher.finish();
    }

    /// Returns the counts of which each must occur.
    pub(super) fn all(&self) -> [u64; 13] {
        [
            self.publications,
            self.gaps,
            self.recovered,
            self.unrecovered,
            self.ended,
            self.followed,
            self.crashes,
            self.freezes,
            self.partitions,
            self.restarts,
            self.failovers,
            self.zones_lost,
            self.deploys,
        ]
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.publications += other.publications;
        self.gaps += other.gaps;
        self.recovered += other.recovered;
        self.unrecovered += other.unrecovered;
        self.ended += other.ended;
        self.followed += other.followed;
        self.crashes += other.crashes;
        self.freezes += other.freezes;
        self.partitions += other.partitions;
        self.restarts += other.restarts;
        self.failovers += other.failovers;
        self.zones_lost += other.zones_lost;
        self.deploys += other.deploys;
        self.subscriptions_max = self.subscriptions_max.max(other.subscriptions_max);
        self.digest ^= other.digest;
    }
}
