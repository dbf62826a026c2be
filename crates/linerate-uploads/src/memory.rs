//! The memory budget shared by all uploads.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use linerate_budget::{Budget, Consumer, Lease, State, Watch};

/// Number of bytes that the allocator uses for every 8 bytes requested, because it rounds up to a
/// few size classes.
pub(crate) const ALLOCATED_FOR_8: u64 = 9;

/// The budget of all uploads, and the budget of the process, which includes it.
#[derive(Debug)]
pub(crate) struct Memory {
    uploads: Budget,
    process: Budget,
    bytes_max: u64,
}

/// The number of bytes that one upload holds: its session, its waiting input and its waiting
/// replies.
#[derive(Clone, Debug, Default)]
pub(crate) struct UploadBytes(Arc<AtomicU64>);

/// The bytes of one session or lane, charged to both budgets.
#[derive(Debug)]
pub(crate) struct Share {
    uploads: Lease,
    process: Lease,
    held: UploadBytes,
}

/// The error that a budget has too few bytes left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct BudgetExceeded;

impl Memory {
    pub(crate) fn new(bytes_max: u64, process: Budget) -> Self {
        Self {
            // A `Budget` lets uploads use only a percentage of it, so this one is enlarged such
            // that the percentage equals `bytes_max`.
            uploads: Budget::new(bytes_max.saturating_mul(100) / Consumer::Uploads.share_percent()),
            process,
            bytes_max,
        }
    }

    /// Creates an empty share, whose bytes count towards `held`.
    pub(crate) fn share(&self, held: UploadBytes) -> Share {
        Share {
            uploads: self.uploads.lease(Consumer::Uploads),
            process: self.process.lease(Consumer::Uploads),
            held,
        }
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Returns whether the process has so little memory left that no further upload should start.
    pub(crate) fn is_tight(&self) -> bool {
        self.process.state() >= State::Tight
    }

    /// Returns a watch on the state of the process.
    pub(crate) fn watch(&self) -> Watch {
        self.process.watch()
    }

    /// Counts an upload that was ended to free memory, and the bytes that it held.
    pub(crate) fn note_shed(&self, bytes: u64) {
        self.process.note_shed(Consumer::Uploads, bytes);
    }

    /// Returns the number of bytes used by all uploads.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.uploads.used_total()
    }
}

impl UploadBytes {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Changes the size of the share to `bytes`. If a budget does not allow that, the share is
    /// unchanged.
    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        let before = self.bytes();
        self.uploads.resize(bytes).map_err(|_| BudgetExceeded)?;
        if self.process.resize(bytes).is_err() {
            self.uploads.set(before);
            return Err(BudgetExceeded);
        }
        self.count(before);
        Ok(())
    }

    pub(crate) fn grow(&mut self, bytes: u64) -> Result<(), BudgetExceeded> {
        self.resize(self.bytes().saturating_add(bytes))
    }

    /// Sets the size of the share to `bytes` that are already in use, even if that exceeds a
    /// budget.
    pub(crate) fn set(&mut self, bytes: u64) {
        let before = self.bytes();
        self.uploads.set(bytes);
        self.process.set(bytes);
        self.count(before);
    }

    pub(crate) fn shrink(&mut self, bytes: u64) {
        self.set(self.bytes().saturating_sub(bytes));
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.uploads.bytes()
    }

    /// Returns the counter of the upload that this share belongs to.
    pub(crate) fn held(&self) -> &UploadBytes {
        &self.held
    }

    /// Moves the share to another upload.
    pub(crate) fn belong_to(&mut self, held: UploadBytes) {
        let bytes = self.bytes();
        self.held.0.fetch_sub(bytes, Ordering::Relaxed);
        held.0.fetch_add(bytes, Ordering::Relaxed);
        self.held = held;
    }

    /// Updates the upload's counter after the share has changed from `before` bytes.
    fn count(&self, before: u64) {
        // A decrease wraps around, as does the atomic addition, so the sum is correct.
        let change = self.bytes().wrapping_sub(before);
        self.held.0.fetch_add(change, Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.held.0.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::{Budget, Consumer};

    use super::{BudgetExceeded, Memory, UploadBytes};

    #[test]
    fn share_is_taken_from_both_budgets_or_from_none() {
        let process = Budget::new(100 << 20);
        let memory = Memory::new(1 << 30, process.clone());
        let mut share = memory.share(UploadBytes::default());
        share.resize(10 << 20).unwrap();
        assert_eq!(
            share.grow(60 << 20),
            Err(BudgetExceeded),
            "more than half of the process"
        );
        assert_eq!(share.bytes(), 10 << 20);
        assert!(memory.used() < 11 << 20 && process.used(Consumer::Uploads) < 11 << 20);

        let memory = Memory::new(8 << 20, process.clone());
        assert_eq!(
            memory.share(UploadBytes::default()).grow((8 << 20) + 1),
            Err(BudgetExceeded)
        );
        drop(share);
        assert_eq!(process.used_total(), 0);
    }

    #[test]
    fn all_of_the_uploads_budget_can_be_used() {
        let memory = Memory::new(8 << 20, Budget::unbounded());
        let mut share = memory.share(UploadBytes::default());
        share.grow(8 << 20).unwrap();
        assert_eq!(
            memory.share(UploadBytes::default()).grow(1),
            Err(BudgetExceeded)
        );
        share.shrink(2 << 20);
        memory.share(UploadBytes::default()).grow(1 << 20).unwrap();
    }

    #[test]
    fn what_an_upload_holds_is_the_sum_of_its_shares() {
        let memory = Memory::new(8 << 20, Budget::unbounded());
        let (one, other) = (UploadBytes::default(), UploadBytes::default());
        let mut session = memory.share(one.clone());
        let mut lane = memory.share(other.clone());
        session.grow(3_000).unwrap();
        lane.set(500);
        assert_eq!(session.grow(9 << 20), Err(BudgetExceeded));
        assert_eq!((one.bytes(), other.bytes()), (3_000, 500));
        lane.belong_to(one.clone());
        assert_eq!((one.bytes(), other.bytes()), (3_500, 0));
        session.shrink(1_000);
        assert_eq!(lane.held().bytes(), 2_500);
        drop(session);
        drop(lane);
        assert_eq!(one.bytes(), 0);
    }
}
