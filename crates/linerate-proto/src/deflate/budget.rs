//! Limits the memory that compression holds in a process.

use core::{
    fmt,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A limit on the memory that connections hold for compression between two inputs.
///
/// The receiving window of a connection is reserved during the opening handshake, because it cannot
/// be released later; if there is no room, the peer must compress each message on its own. Sending
/// windows grow while there is room. When memory gets tight, idle connections release theirs, which
/// makes the next message compress less well. A message that has arrived only in part counts with
/// the state that inflates it. The states in a [`Pool`](super::Pool) are not counted, because their
/// number per thread is limited.
pub struct Budget {
    bytes_max: AtomicUsize,
    used: AtomicUsize,
}

static GLOBAL: Budget = Budget::new(256 << 20);

impl Budget {
    /// Creates a budget of `bytes_max` bytes.
    pub const fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max: AtomicUsize::new(bytes_max),
            used: AtomicUsize::new(0),
        }
    }

    /// Returns the budget of the process: 256 MiB, enough for the windows of 32,000 connections at
    /// the default of 4 KiB per direction.
    pub fn global() -> &'static Self {
        &GLOBAL
    }

    /// Changes the limit. If more than a new, lower limit is in use, it stays in use until it is
    /// released.
    pub fn set_bytes_max(&self, bytes_max: usize) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Returns the limit in bytes.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Returns how many bytes are in use.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns whether `bytes` more bytes would fit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes) <= self.bytes_max()
    }

    /// Returns whether more than three quarters of the budget are in use.
    pub(super) fn is_tight(&self) -> bool {
        self.used() > self.bytes_max() / 4 * 3
    }

    fn try_add(&self, bytes: usize) -> bool {
        let add = |used: usize| {
            let sum = used.checked_add(bytes)?;
            (sum <= self.bytes_max()).then_some(sum)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_ok()
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("bytes_max", &self.bytes_max())
            .field("used", &self.used())
            .finish()
    }
}

/// A part of a budget, released on drop.
#[derive(Debug)]
pub(super) struct Share {
    budget: &'static Budget,
    bytes: usize,
}

impl Share {
    /// Creates an empty share.
    pub(super) const fn new(budget: &'static Budget) -> Self {
        Self { budget, bytes: 0 }
    }

    /// Grows to `bytes` if there is room; returns whether the share now has at least that size.
    pub(super) fn grow_to(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let fits = self.budget.try_add(bytes - self.bytes);
        if fits {
            self.bytes = bytes;
        }
        fits
    }

    /// Shrinks to `bytes`, or grows to them if there is room; returns whether it has this size.
    pub(super) fn resize(&mut self, bytes: usize) -> bool {
        let less = self.bytes.saturating_sub(bytes);
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
        self.grow_to(bytes)
    }

    /// Grows to `bytes`, even beyond the limit of the budget.
    pub(super) fn insist_on(&mut self, bytes: usize) {
        let more = bytes.saturating_sub(self.bytes);
        self.budget.used.fetch_add(more, Ordering::Relaxed);
        self.bytes += more;
    }

    pub(super) fn give_back(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }

    pub(super) const fn budget(&self) -> &'static Budget {
        self.budget
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_to_its_last_byte_and_no_further() {
        static BUDGET: Budget = Budget::new(100);
        let mut share = Share::new(&BUDGET);
        assert!(share.grow_to(60) && share.grow_to(100) && share.grow_to(80));
        assert_eq!(BUDGET.used(), 100);
        let mut other = Share::new(&BUDGET);
        assert!(!other.grow_to(1) && !BUDGET.has_room(1) && BUDGET.is_tight());
        other.insist_on(7);
        assert_eq!(BUDGET.used(), 107);
        assert!(share.resize(30) && !share.resize(94) && share.resize(93));
        share.give_back();
        assert!(other.grow_to(100) && !other.grow_to(101));
        drop(other);
        assert_eq!(BUDGET.used(), 0);
    }

    #[test]
    fn a_budget_is_tight_above_three_quarters() {
        static BUDGET: Budget = Budget::new(400);
        let mut share = Share::new(&BUDGET);
        assert!(share.grow_to(300) && !BUDGET.is_tight());
        assert!(share.grow_to(301) && BUDGET.is_tight());
        let shown = std::format!("{BUDGET:?}");
        assert!(shown.contains("400") && shown.contains("301"), "{shown}");
    }
}
