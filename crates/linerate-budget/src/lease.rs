//! A part of the budget that belongs to one buffer, or to all buffers of one worker.

use std::{error, fmt, sync::Arc};

use crate::{Consumer, budget::Shared};

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

/// A number of bytes of a budget, given back when dropped.
///
/// A lease draws credit ahead, in steps of an eighth of the bytes it holds (1 KiB to 256 KiB), and
/// gives credit back only when more than two steps are unused. Changes in between touch no memory
/// that threads share. An empty lease keeps no credit, unless it belongs to a worker.
///
/// To account for many small buffers of a worker, use one lease for all of them
/// ([`Budget::worker_lease`](crate::Budget::worker_lease)).
pub struct Lease {
    shared: Option<Arc<Shared>>,
    consumer: Consumer,
    slabs: Slabs,
    held: u64,
    /// INVARIANT: at least `held`, and exactly the bytes that are counted in `shared` for this
    /// lease. Unused without `shared`.
    drawn: u64,
}

impl Lease {
    pub(crate) fn new(shared: Option<Arc<Shared>>, consumer: Consumer, slabs: Slabs) -> Self {
        Self {
            shared,
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
            && let Some(shared) = &self.shared
        {
            self.drawn += draw(shared, held, self)?;
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
        if let Some(shared) = &self.shared {
            shared.refuse_critical(self.consumer, bytes)?;
        }
        self.grow(bytes)
    }

    /// Adds bytes that are already allocated, even if fewer are left, so that allocations that
    /// cannot be prevented are still counted.
    pub fn force(&mut self, bytes: u64) {
        let held = self.held.saturating_add(bytes);
        if held > self.drawn
            && let Some(shared) = &self.shared
        {
            let needed = held - self.drawn;
            let ahead = needed.saturating_add(shared.step(held, self.slabs));
            let drawn = match shared.draw(self.consumer, ahead) {
                Ok(()) => ahead,
                Err(_) => {
                    shared.force(self.consumer, needed);
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
        let Some(shared) = &self.shared else { return };
        let step = shared.step(self.held, self.slabs);
        let empty = self.held == 0 && self.slabs == Slabs::Small;
        let (kept, tolerated) = if empty { (0, 0) } else { (step, 2 * step) };
        let unused = self.drawn - self.held;
        if unused > tolerated {
            shared.give_back(self.consumer, unused - kept);
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
        match self.shared {
            Some(_) => self.drawn,
            None => u64::MAX,
        }
    }

    /// Returns how many of the drawn bytes may be unused before some are given back.
    pub(crate) fn slack(&self) -> u64 {
        let step = |shared: &Arc<Shared>| shared.step(self.held, self.slabs);
        2 * self.shared.as_ref().map_or(0, step)
    }

    /// Returns the consumer.
    pub fn consumer(&self) -> Consumer {
        self.consumer
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared
            && self.drawn > 0
        {
            shared.give_back(self.consumer, self.drawn);
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
fn draw(shared: &Shared, held: u64, lease: &Lease) -> Result<u64, Exhausted> {
    let needed = held - lease.drawn;
    let ahead = needed.saturating_add(shared.step(held, lease.slabs));
    if shared.draw(lease.consumer, ahead).is_ok() {
        return Ok(ahead);
    }
    match shared.draw(lease.consumer, needed) {
        Ok(()) => Ok(needed),
        Err(error) => {
            shared.note_refusal(lease.consumer);
            Err(error)
        }
    }
}

/// The budget, or the consumer's share of it, has too few bytes left.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Exhausted {
    /// The consumer that asked.
    pub consumer: Consumer,
    /// The number of bytes it asked for.
    pub asked: u64,
    /// The number of bytes in use: by the consumer if its share is exhausted, otherwise by all
    /// consumers.
    pub used: u64,
    /// The number of bytes that may be in use.
    pub limit: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory budget exhausted: {} asked for {} bytes, but {} of {} bytes are in use; raise server.memory_bytes_max",
            self.consumer, self.asked, self.used, self.limit
        )
    }
}

impl error::Error for Exhausted {}

#[cfg(test)]
mod tests;
