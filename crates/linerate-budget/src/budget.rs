//! The counters that all leases draw from.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use crate::{
    Account, Consumer, Exhausted, Lease, State, Watch,
    holders::Holders,
    lease::Slabs,
    state::percent_of,
    watch::{Signal, lock},
};

/// A number of bytes that the consumers of a process share. Clones refer to the same budget.
///
/// An unbounded budget counts and refuses nothing; it is for libraries whose caller has no budget.
#[derive(Clone, Default)]
pub struct Budget(Option<Arc<Shared>>);

impl Budget {
    /// Creates a budget of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self(Some(Arc::new(Shared {
            limit: bytes_max,
            total: Counter::default(),
            ledgers: Default::default(),
            state: AtomicU8::new(State::Normal.after(0, bytes_max) as u8),
            signal: Signal::default(),
            holders: Holders::default(),
        })))
    }

    /// Creates a budget without a limit, whose leases cost nothing.
    pub const fn unbounded() -> Self {
        Self(None)
    }

    /// Returns an empty lease.
    pub fn lease(&self, consumer: Consumer) -> Lease {
        Lease::new(self.0.clone(), consumer, Slabs::Small)
    }

    /// Returns an account, for buffers that move between threads and each hold a share of it.
    pub fn account(&self, consumer: Consumer) -> Account {
        match &self.0 {
            Some(_) => Account::new(self.worker_lease(consumer)),
            None => Account::default(),
        }
    }

    /// Returns a lease for all buffers of a worker together. It draws whole slabs of up to 256 KiB
    /// and keeps one when it is empty, so that short-lived buffers touch no memory that threads
    /// share.
    pub fn worker_lease(&self, consumer: Consumer) -> Lease {
        Lease::new(self.0.clone(), consumer, Slabs::Whole)
    }

    /// Returns a lease of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget has fewer bytes left.
    pub fn lease_of(&self, consumer: Consumer, bytes: u64) -> Result<Lease, Exhausted> {
        let mut lease = self.lease(consumer);
        lease.grow(bytes)?;
        Ok(lease)
    }

    /// Counts that something of this consumer was closed to free `bytes` bytes.
    pub fn note_shed(&self, consumer: Consumer, bytes: u64) {
        if let Some(shared) = &self.0 {
            let ledger = shared.ledger(consumer);
            ledger.sheds.fetch_add(1, Ordering::Relaxed);
            ledger.shed_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the size of the budget in bytes, or `None` if it is unbounded.
    pub fn bytes_max(&self) -> Option<u64> {
        self.0.as_ref().map(|shared| shared.limit)
    }

    /// Returns the state, which is always `Normal` for an unbounded budget.
    pub fn state(&self) -> State {
        self.0
            .as_ref()
            .map_or(State::Normal, |shared| shared.state())
    }

    /// Returns the number of bytes that all consumers have drawn.
    pub fn used_total(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.total.get())
    }

    /// Returns the number of bytes that a consumer has drawn: those that it holds, and the unused
    /// rest of its slabs.
    pub fn used(&self, consumer: Consumer) -> u64 {
        self.of(consumer, |ledger| ledger.used.get())
    }

    /// Returns how many requests of a consumer for bytes were refused.
    pub fn refusals(&self, consumer: Consumer) -> u64 {
        self.of(consumer, |ledger| ledger.refusals.load(Ordering::Relaxed))
    }

    /// Returns how many things of a consumer were closed to free memory.
    pub fn sheds(&self, consumer: Consumer) -> u64 {
        self.of(consumer, |ledger| ledger.sheds.load(Ordering::Relaxed))
    }

    /// Returns the number of bytes that were freed by closing things of a consumer.
    pub fn shed_bytes(&self, consumer: Consumer) -> u64 {
        self.of(consumer, |ledger| ledger.shed_bytes.load(Ordering::Relaxed))
    }

    /// Returns the number of bytes to free in order to leave the current state: until the budget is
    /// no longer tight if it is critical, and until it is normal if it is tight.
    pub fn excess(&self) -> u64 {
        self.0.as_ref().map_or(0, |shared| shared.excess())
    }

    /// Returns a watch that reports changes of the state from now on.
    pub fn watch(&self) -> Watch {
        Watch::new(self.clone(), self.state())
    }

    pub(crate) fn shared(&self) -> Option<&Arc<Shared>> {
        self.0.as_ref()
    }

    pub(crate) fn signal(&self) -> Option<&Signal> {
        self.0.as_ref().map(|shared| &shared.signal)
    }

    fn of(&self, consumer: Consumer, value: impl FnOnce(&Ledger) -> u64) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |shared| value(shared.ledger(consumer)))
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("bytes_max", &self.bytes_max())
            .field("used", &self.used_total())
            .field("state", &self.state())
            .finish()
    }
}

/// The state that the clones of a budget and its leases share.
pub(crate) struct Shared {
    limit: u64,
    total: Counter,
    ledgers: [Ledger; Consumer::ALL.len()],
    state: AtomicU8,
    signal: Signal,
    pub(crate) holders: Holders,
}

impl Shared {
    /// Returns an error, and counts a refusal, if the budget is critical.
    pub(crate) fn refuse_critical(&self, consumer: Consumer, bytes: u64) -> Result<(), Exhausted> {
        if self.state() != State::Critical {
            return Ok(());
        }
        self.note_refusal(consumer);
        Err(Exhausted {
            consumer,
            asked: bytes,
            used: self.total.get(),
            limit: percent_of(self.limit, State::CRITICAL_PERCENT),
        })
    }

    /// Takes bytes out of the budget, if enough are left.
    pub(crate) fn draw(&self, consumer: Consumer, bytes: u64) -> Result<(), Exhausted> {
        let ledger = self.ledger(consumer);
        let share = percent_of(self.limit, consumer.share_percent());
        let refused = |used, limit| Exhausted {
            consumer,
            asked: bytes,
            used,
            limit,
        };
        ledger
            .used
            .add_within(bytes, share)
            .map_err(|used| refused(used, share))?;
        match self.total.add_within(bytes, self.limit) {
            Ok(total) => {
                self.follow(total);
                Ok(())
            }
            Err(used) => {
                ledger.used.sub(bytes);
                Err(refused(used, self.limit))
            }
        }
    }

    /// Takes bytes out of the budget, even if fewer are left.
    pub(crate) fn force(&self, consumer: Consumer, bytes: u64) {
        self.ledger(consumer).used.add(bytes);
        self.follow(self.total.add(bytes));
    }

    pub(crate) fn give_back(&self, consumer: Consumer, bytes: u64) {
        self.ledger(consumer).used.sub(bytes);
        self.follow(self.total.sub(bytes));
    }

    pub(crate) fn note_refusal(&self, consumer: Consumer) {
        let ledger = self.ledger(consumer);
        ledger.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many bytes of credit a lease that holds `held` bytes draws at once.
    ///
    /// For one buffer it is an eighth of the bytes held, so that accounting overstates only a
    /// little. It is at least 1 KiB, and at most 256 KiB or a 64th of the budget.
    pub(crate) fn step(&self, held: u64, slabs: Slabs) -> u64 {
        let largest = (self.limit / 64).clamp(STEP_BYTES_MIN, STEP_BYTES_MAX);
        match slabs {
            Slabs::Whole => largest,
            Slabs::Small => (held / 8).clamp(STEP_BYTES_MIN, largest),
        }
    }

    fn excess(&self) -> u64 {
        let goal = match self.state() {
            State::Normal => return 0,
            State::Tight => State::NORMAL_BELOW_PERCENT,
            State::Critical => State::TIGHT_PERCENT,
        };
        let below = percent_of(self.limit, goal).saturating_sub(1);
        self.total.get().saturating_sub(below)
    }

    fn state(&self) -> State {
        State::from_byte(self.state.load(Ordering::SeqCst))
    }

    fn ledger(&self, consumer: Consumer) -> &Ledger {
        &self.ledgers[consumer as usize]
    }

    /// Updates the state after the total was changed to `total`.
    ///
    /// Either this load sees the state that another thread has just stored, or that thread sees our
    /// change of the total, because it loads the total again afterwards. Both are sequentially
    /// consistent.
    fn follow(&self, total: u64) {
        let state = self.state();
        if state.after(total, self.limit) != state {
            self.change_state();
        }
    }

    #[cold]
    fn change_state(&self) {
        let mut wakers = lock(self.signal.wakers());
        let before = self.state();
        let mut state = before;
        loop {
            let next = state.after(self.total.get(), self.limit);
            if next == state {
                break;
            }
            self.state.store(next as u8, Ordering::SeqCst);
            state = next;
        }
        let woken = if state == before {
            Vec::new()
        } else {
            wakers.take()
        };
        drop(wakers);
        for waker in woken {
            waker.wake();
        }
    }
}

/// The minimum number of bytes of credit that a lease draws at once.
const STEP_BYTES_MIN: u64 = 1 << 10;

/// The maximum number of bytes of credit that a lease draws ahead.
const STEP_BYTES_MAX: u64 = 256 << 10;

#[derive(Default)]
struct Ledger {
    used: Counter,
    refusals: AtomicU64,
    sheds: AtomicU64,
    shed_bytes: AtomicU64,
}

/// A counter in its own cache line.
#[derive(Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

impl Counter {
    fn get(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn add(&self, bytes: u64) -> u64 {
        self.0
            .fetch_add(bytes, Ordering::SeqCst)
            .wrapping_add(bytes)
    }

    fn sub(&self, bytes: u64) -> u64 {
        self.0
            .fetch_sub(bytes, Ordering::SeqCst)
            .wrapping_sub(bytes)
    }

    /// Adds `bytes` and returns the new value, or returns the current value as an `Err` if the new
    /// one would exceed `limit`.
    fn add_within(&self, bytes: u64, limit: u64) -> Result<u64, u64> {
        let mut used = self.get();
        loop {
            let Some(after) = used.checked_add(bytes).filter(|after| *after <= limit) else {
                return Err(used);
            };
            match self
                .0
                .compare_exchange_weak(used, after, Ordering::SeqCst, Ordering::SeqCst)
            {
                Ok(_) => return Ok(after),
                Err(now) => used = now,
            }
        }
    }
}

#[cfg(test)]
mod tests;
