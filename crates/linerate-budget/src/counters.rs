//! The counters that all leases draw from, and the state that follows from them.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::{Consumer, Exhausted, State, lock::lock, signal::Signal, state::percent_of};

/// What a budget, its leases and its watches count with.
pub(crate) struct Counters {
    limit: u64,
    total: Counter,
    ledgers: [Ledger; Consumer::ALL.len()],
    state: AtomicU8,
    signal: Signal,
}

impl Counters {
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            total: Counter::default(),
            ledgers: Default::default(),
            state: AtomicU8::new(State::Normal.after(0, limit) as u8),
            signal: Signal::default(),
        }
    }

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

    /// Counts that something of this consumer was closed to free `bytes` bytes.
    pub(crate) fn note_shed(&self, consumer: Consumer, bytes: u64) {
        let ledger = self.ledger(consumer);
        ledger.sheds.fetch_add(1, Ordering::Relaxed);
        ledger.shed_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn total(&self) -> u64 {
        self.total.get()
    }

    pub(crate) fn used(&self, consumer: Consumer) -> u64 {
        self.ledger(consumer).used.get()
    }

    pub(crate) fn refusals(&self, consumer: Consumer) -> u64 {
        self.ledger(consumer).refusals.load(Ordering::Relaxed)
    }

    pub(crate) fn sheds(&self, consumer: Consumer) -> u64 {
        self.ledger(consumer).sheds.load(Ordering::Relaxed)
    }

    pub(crate) fn shed_bytes(&self, consumer: Consumer) -> u64 {
        self.ledger(consumer).shed_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns the number of bytes to free in order to leave the current state.
    pub(crate) fn excess(&self) -> u64 {
        let goal = match self.state() {
            State::Normal => return 0,
            State::Tight => State::NORMAL_BELOW_PERCENT,
            State::Critical => State::TIGHT_PERCENT,
        };
        let below = percent_of(self.limit, goal).saturating_sub(1);
        self.total.get().saturating_sub(below)
    }

    pub(crate) fn state(&self) -> State {
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
