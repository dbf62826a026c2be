//! What a feed has read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a feed has read since it was started.
#[derive(Debug, Default)]
pub(crate) struct FeedStatus {
    is_up: AtomicBool,
    events: Counter,
    gaps: Counter,
    ignored: Counter,
    refused: Counter,
    requests: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl FeedStatus {
    /// Returns whether what is published arrives.
    pub(crate) fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// Records whether what is published arrives.
    pub(super) fn set_up(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Relaxed);
    }

    /// Returns the number of events for clients of this node.
    pub(crate) fn events(&self) -> u64 {
        self.events.value()
    }

    /// Returns how often events may have been missed.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.value()
    }

    /// Returns the number of packets that concern only servers of Socket.IO.
    pub(crate) fn ignored(&self) -> u64 {
        self.ignored.value()
    }

    /// Returns the number of packets that are malformed or exceed a limit.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.value()
    }

    /// Returns the number of requests to move or to disconnect clients.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.value()
    }

    pub(super) fn count_event(&self) {
        self.events.increment();
    }

    pub(super) fn count_gap(&self) {
        self.gaps.increment();
    }

    pub(super) fn count_ignored(&self) {
        self.ignored.increment();
    }

    pub(super) fn count_refused(&self) {
        self.refused.increment();
    }

    pub(super) fn count_request(&self) {
        self.requests.increment();
    }
}
