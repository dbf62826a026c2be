//! A part of the budget that belongs to one buffer, or to all buffers of one worker.

use std::{error, fmt, sync::Arc};

use crate::{Consumer, budget::Shared};

/// How much credit a lease draws ahead.
///
/// Complete: it belongs to one buffer or to many.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Slabs {
    /// Whole slabs, and one when it is empty.
    Whole,
    /// As its size demands.
    Small,
}

/// Bytes of a budget, given back when dropped.
///
/// It draws credit ahead, in steps of an eighth of what it holds (1 KiB to 256 KiB), and gives credit back only when
/// more than two steps are unused; in between, changes touch nothing that threads share. An empty lease has none.
///
/// Account for many small buffers of a worker in one lease ([`Budget::worker_lease`](crate::Budget::worker_lease)).
pub struct Lease {
    shared: Option<Arc<Shared>>,
    consumer: Consumer,
    slabs: Slabs,
    held: u64,
    /// INVARIANT: at least `held`; exactly this much is counted in `shared`. Without `shared` it is unused.
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

    /// Adds bytes, before they are allocated.
    ///
    /// # Errors
    ///
    /// If they are not left. The lease is as it was.
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

    /// As [`grow`](Self::grow), and refused while the budget is critical: what is left then is for those who can't ask.
    ///
    /// # Errors
    ///
    /// If the budget is critical, or the bytes are not left. The lease is as it was.
    pub fn grow_unless_critical(&mut self, bytes: u64) -> Result<(), Exhausted> {
        if let Some(shared) = &self.shared {
            shared.refuse_critical(self.consumer, bytes)?;
        }
        self.grow(bytes)
    }

    /// Adds bytes that are allocated already, also more than are left: what can't be prevented is still counted.
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

    /// Takes bytes away; more than are held are all.
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

    /// Makes it this many bytes, as [`grow`](Self::grow) or [`shrink`](Self::shrink) do.
    ///
    /// # Errors
    ///
    /// If they are not left. The lease is as it was.
    pub fn resize(&mut self, bytes: u64) -> Result<(), Exhausted> {
        if bytes <= self.held {
            self.shrink(self.held - bytes);
            return Ok(());
        }
        self.grow(bytes - self.held)
    }

    /// Makes it this many bytes, also if they are not left; for buffers whose size is known only afterwards.
    pub fn set(&mut self, bytes: u64) {
        if bytes <= self.held {
            self.shrink(self.held - bytes);
        } else {
            self.force(bytes - self.held);
        }
    }

    /// Returns the bytes that it holds.
    pub fn bytes(&self) -> u64 {
        self.held
    }

    /// Returns the bytes that it has drawn, which are no fewer.
    pub(crate) fn drawn(&self) -> u64 {
        match self.shared {
            Some(_) => self.drawn,
            None => u64::MAX,
        }
    }

    /// Returns how much of what it has drawn may be unused before some is given back.
    pub(crate) fn slack(&self) -> u64 {
        let step = |shared: &Arc<Shared>| shared.step(self.held, self.slabs);
        2 * self.shared.as_ref().map_or(0, step)
    }

    /// Returns who uses them.
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

/// Draws what a lease lacks to hold `held`, and a step more if that is left. Returns how much was drawn.
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
    /// Who asked.
    pub consumer: Consumer,
    /// How many bytes were asked for.
    pub asked: u64,
    /// How many were in use: by the consumer, if its share is exhausted, by all otherwise.
    pub used: u64,
    /// How many may be.
    pub limit: u64,
}

impl fmt::Display for Exhausted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory budget exhausted: {} asked for {} bytes, {} of {} are in use; raise server.memory_bytes_max",
            self.consumer, self.asked, self.used, self.limit
        )
    }
}

impl error::Error for Exhausted {}

#[cfg(test)]
mod tests;
