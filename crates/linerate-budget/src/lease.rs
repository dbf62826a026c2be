//! A part of the budget that belongs to one buffer, or to all buffers of one worker.

use std::{fmt, sync::Arc};

use crate::{Consumer, Exhausted, counters::Counters};

/// The minimum number of bytes of credit that a lease draws at once.
const STEP_BYTES_MIN: u64 = 1 << 10;

/// The maximum number of bytes of credit that a lease draws ahead.
const STEP_BYTES_MAX: u64 = 256 << 10;

/// The amount of credit that a lease draws ahead.
///
/// A lease belongs either to one buffer or to many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Slabs {
    /// Draws whole slabs, and keeps one when it is empty. For many buffers.
    Whole,
    /// Draws an amount that depends on its size. For one buffer.
    Small,
}

impl Slabs {
    /// Returns how many bytes of credit a lease draws at once if it holds `held` bytes of a budget
    /// of `limit` bytes.
    ///
    /// For one buffer it is an eighth of the bytes held, so that accounting overstates only a
    /// little. It is at least 1 KiB, and at most 256 KiB or a 64th of the budget.
    fn step(self, held: u64, limit: u64) -> u64 {
        let largest = (limit / 64).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        match self {
            Self::Whole => largest,
            Self::Small => (held / 8).clamp(STEP_BYTES_MIN, largest),
        }
    }
}

/// A number of bytes of a budget, given back when dropped.
///
/// A lease draws credit ahead, in steps of an eighth of the bytes it holds (1 KiB to 256 KiB), and
/// gives credit back only when more than two steps are unused. Changes in between touch no memory
/// that threads share. An empty lease keeps no credit, unless it belongs to a worker.
///
/// To account for many small buffers of a worker, use one lease for all of them
/// ([`Budget::worker_lease`](crate::Budget::worker_lease)).
pub struct Lease {
    counters: Option<Arc<Counters>>,
    consumer: Consumer,
    slabs: Slabs,
    held: u64,
    /// INVARIANT: at least `held`, and exactly the bytes that are counted in `counters` for this
    /// lease. Unused without `counters`.
    drawn: u64,
}

impl Lease {
    pub(crate) fn new(counters: Option<Arc<Counters>>, consumer: Consumer, slabs: Slabs) -> Self {
        Self {
            counters,
            consumer,
            slabs,
            held: 0,
            drawn: 0,
        }
    }

    /// Adds bytes. Call it before allocating them.
    ///
    /// # Errors
    ///
    /// Returns an error if fewer bytes are left. The lease is then unchanged.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Exhausted> {
        let held = self.held.saturating_add(bytes);
        if held > self.drawn
            && let Some(counters) = &self.counters
        {
            self.drawn += draw(counters, held, self)?;
        }
        self.held = held;
        Ok(())
    }

    /// Like [`grow`](Self::grow), but also fails while the budget is critical: the remaining bytes
    /// are for consumers that cannot ask in advance.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget is critical or has fewer bytes left. The lease is then
    /// unchanged.
    pub fn grow_unless_critical(&mut self, bytes: u64) -> Result<(), Exhausted> {
        if let Some(counters) = &self.counters {
            counters.refuse_critical(self.consumer, bytes)?;
        }
        self.grow(bytes)
    }

    /// Adds bytes that are already allocated, even if fewer are left, so that allocations that
    /// cannot be prevented are still counted.
    pub fn force(&mut self, bytes: u64) {
        let held = self.held.saturating_add(bytes);
        if held > self.drawn
            && let Some(counters) = &self.counters
        {
            let needed = held - self.drawn;
            let ahead = needed.saturating_add(self.slabs.step(held, counters.limit()));
            let drawn = match counters.draw(self.consumer, ahead) {
                Ok(()) => ahead,
                Err(_) => {
                    counters.force(self.consumer, needed);
                    needed
                }
            };
            self.drawn = self.drawn.saturating_add(drawn);
        }
        self.held = held;
    }

    /// Removes bytes. Removing more than the lease holds makes it empty.
    pub fn shrink(&mut self, bytes: u64) {
        self.held = self.held.saturating_sub(bytes);
        let Some(counters) = &self.counters else {
            return;
        };
        let step = self.slabs.step(self.held, counters.limit());
        let empty = self.held == 0 && self.slabs == Slabs::Small;
        let (kept, tolerated) = if empty { (0, 0) } else { (step, 2 * step) };
        let unused = self.drawn - self.held;
        if unused > tolerated {
            counters.give_back(self.consumer, unused - kept);
            self.drawn = self.held + kept;
        }
    }

    /// Resizes the lease to `bytes` bytes, using [`grow`](Self::grow) or [`shrink`](Self::shrink).
    ///
    /// # Errors
    ///
    /// Returns an error if fewer bytes are left. The lease is then unchanged.
    pub fn resize(&mut self, bytes: u64) -> Result<(), Exhausted> {
        if bytes <= self.held {
            self.shrink(self.held - bytes);
            return Ok(());
        }
        self.grow(bytes - self.held)
    }

    /// Resizes the lease to `bytes` bytes, even if fewer are left; for buffers whose size is known
    /// only afterwards.
    pub fn set(&mut self, bytes: u64) {
        if bytes <= self.held {
            self.shrink(self.held - bytes);
        } else {
            self.force(bytes - self.held);
        }
    }

    /// Returns the number of bytes that the lease holds.
    pub fn bytes(&self) -> u64 {
        self.held
    }

    /// Returns the number of bytes that the lease has drawn, which is at least the number it holds.
    pub(crate) fn drawn(&self) -> u64 {
        match self.counters {
            Some(_) => self.drawn,
            None => u64::MAX,
        }
    }

    /// Returns how many of the drawn bytes may be unused before some are given back.
    pub(crate) fn slack(&self) -> u64 {
        let step = |counters: &Arc<Counters>| self.slabs.step(self.held, counters.limit());
        2 * self.counters.as_ref().map_or(0, step)
    }

    /// Returns the consumer.
    pub fn consumer(&self) -> Consumer {
        self.consumer
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(counters) = &self.counters
            && self.drawn > 0
        {
            counters.give_back(self.consumer, self.drawn);
        }
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("consumer", &self.consumer)
            .field("bytes", &self.held)
            .finish()
    }
}

/// Draws the bytes that a lease lacks to hold `held`, and a further step if the budget has room for
/// it. Returns the number of bytes drawn.
fn draw(counters: &Counters, held: u64, lease: &Lease) -> Result<u64, Exhausted> {
    let needed = held - lease.drawn;
    let ahead = needed.saturating_add(lease.slabs.step(held, counters.limit()));
    if counters.draw(lease.consumer, ahead).is_ok() {
        return Ok(ahead);
    }
    match counters.draw(lease.consumer, needed) {
        Ok(()) => Ok(needed),
        Err(error) => {
            counters.note_refusal(lease.consumer);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
