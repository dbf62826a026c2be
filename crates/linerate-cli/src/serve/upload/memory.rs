//! The memory that uploads take up, within one budget for all of them.

use linerate_budget::{Budget, Consumer, Lease, State};

/// The budget of all uploads, and that of the process, of which it is a part.
#[derive(Debug)]
pub(super) struct Memory {
    uploads: Budget,
    process: Budget,
    bytes_max: u64,
}

/// The bytes of one session or lane, in both budgets.
#[derive(Debug)]
pub(super) struct Share {
    uploads: Lease,
    process: Lease,
}

/// There are too few bytes left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Full;

impl Memory {
    pub(super) fn new(bytes_max: u64, process: Budget) -> Self {
        Self {
            // Of any budget uploads may use a part, so that theirs is larger by as much.
            uploads: Budget::new(bytes_max.saturating_mul(100) / Consumer::Uploads.share_percent()),
            process,
            bytes_max,
        }
    }

    /// Returns a share of no bytes yet.
    pub(super) fn share(&self) -> Share {
        Share {
            uploads: self.uploads.lease(Consumer::Uploads),
            process: self.process.lease(Consumer::Uploads),
        }
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Returns whether the process has so little memory left that no further upload should begin.
    pub(super) fn is_tight(&self) -> bool {
        self.process.state() >= State::Tight
    }

    /// Returns how many bytes uploads take up.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.uploads.used_total()
    }
}

impl Share {
    /// Makes it so many bytes if they are left; else it is as it was.
    pub(super) fn resize(&mut self, bytes: u64) -> Result<(), Full> {
        let before = self.uploads.bytes();
        self.uploads.resize(bytes).map_err(|_| Full)?;
        if self.process.resize(bytes).is_err() {
            self.uploads.set(before);
            return Err(Full);
        }
        Ok(())
    }

    pub(super) fn grow(&mut self, bytes: u64) -> Result<(), Full> {
        self.resize(self.bytes().saturating_add(bytes))
    }

    /// Makes it so many bytes that are held already.
    pub(super) fn set(&mut self, bytes: u64) {
        self.uploads.set(bytes);
        self.process.set(bytes);
    }

    pub(super) fn shrink(&mut self, bytes: u64) {
        self.uploads.shrink(bytes);
        self.process.shrink(bytes);
    }

    pub(super) fn bytes(&self) -> u64 {
        self.uploads.bytes()
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::{Budget, Consumer};

    use super::{Full, Memory};

    #[test]
    fn share_is_taken_from_both_budgets_or_from_none() {
        let process = Budget::new(100 << 20);
        let memory = Memory::new(1 << 30, process.clone());
        let mut share = memory.share();
        share.resize(10 << 20).unwrap();
        assert_eq!(
            share.grow(60 << 20),
            Err(Full),
            "more than half of the process"
        );
        assert_eq!(share.bytes(), 10 << 20);
        assert!(memory.used() < 11 << 20 && process.used(Consumer::Uploads) < 11 << 20);

        let memory = Memory::new(8 << 20, process.clone());
        assert_eq!(memory.share().grow((8 << 20) + 1), Err(Full));
        drop(share);
        assert_eq!(process.used_total(), 0);
    }

    #[test]
    fn all_of_the_uploads_budget_can_be_used() {
        let memory = Memory::new(8 << 20, Budget::unbounded());
        let mut share = memory.share();
        share.grow(8 << 20).unwrap();
        assert_eq!(memory.share().grow(1), Err(Full));
        share.shrink(2 << 20);
        memory.share().grow(1 << 20).unwrap();
    }
}
