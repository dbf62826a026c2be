//! One lease for many buffers that belong to different threads.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::{Consumer, Lease, lock::lock};

/// A lease that many buffers hold [shares](Share) of. Clones refer to the same account; the default
/// account counts nothing.
///
/// A change is one addition to an atomic number. It reaches the budget only when the credit drawn
/// in slabs is used up, or when much of it is unused. With one account per worker, that number
/// stays in the cache of the worker's core. An account refuses nothing: it counts buffers that have
/// limits of their own, and the state of the budget tells the owner when to close some of them.
#[derive(Clone, Default)]
pub struct Account(Option<Arc<Inner>>);

struct Inner {
    held: AtomicU64,
    /// The bytes that `lease` has drawn, for comparing with `held` without taking the lock.
    drawn: AtomicU64,
    /// Credit is given back when `held` is more than this many bytes below `drawn`.
    slack: u64,
    lease: Mutex<Lease>,
}

/// A number of bytes of an [`Account`], given back when dropped.
#[derive(Default)]
pub struct Share {
    account: Account,
    bytes: u64,
}

impl Account {
    pub(crate) fn new(lease: Lease) -> Self {
        let slack = lease.slack();
        Self(Some(Arc::new(Inner {
            held: AtomicU64::new(0),
            drawn: AtomicU64::new(lease.drawn()),
            slack,
            lease: Mutex::new(lease),
        })))
    }

    /// Returns a share of `bytes` bytes.
    pub fn share(&self, bytes: u64) -> Share {
        self.add(bytes);
        Share {
            account: self.clone(),
            bytes,
        }
    }

    /// Adds bytes, for callers that [remove them](Self::sub) themselves.
    pub fn add(&self, bytes: u64) {
        let Some(inner) = &self.0 else { return };
        let held = inner.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
        if held > inner.drawn.load(Ordering::SeqCst) {
            inner.settle();
        }
    }

    /// Removes bytes that were added before.
    pub fn sub(&self, bytes: u64) {
        let Some(inner) = &self.0 else { return };
        let held = inner.held.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        if held.saturating_add(inner.slack) < inner.drawn.load(Ordering::SeqCst) {
            inner.settle();
        }
    }

    /// Returns the number of bytes of all shares.
    pub fn bytes(&self) -> u64 {
        self.0
            .as_ref()
            .map_or(0, |inner| inner.held.load(Ordering::SeqCst))
    }

    /// Returns the consumer, or `None` for an account that counts nothing.
    pub fn consumer(&self) -> Option<Consumer> {
        let inner = self.0.as_ref()?;
        Some(lock(&inner.lease).consumer())
    }
}

impl Inner {
    /// Resizes the lease to the bytes of all shares.
    ///
    /// A concurrent change is either seen by the load of `held` below, or sees the new `drawn` and
    /// settles again.
    #[cold]
    fn settle(&self) {
        let mut lease = lock(&self.lease);
        loop {
            let held = self.held.load(Ordering::SeqCst);
            lease.set(held);
            self.drawn.store(lease.drawn(), Ordering::SeqCst);
            if self.held.load(Ordering::SeqCst) <= lease.drawn() {
                return;
            }
        }
    }
}

impl Share {
    /// Resizes the share to `bytes` bytes.
    pub fn set(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.account.add(bytes - self.bytes);
        } else {
            self.account.sub(self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the account.
    pub fn account(&self) -> &Account {
        &self.account
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.account.sub(self.bytes);
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Account").field(&self.bytes()).finish()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Share").field(&self.bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use crate::{Account, Budget, Consumer, Share, State};

    const MIB: u64 = 1 << 20;

    #[test]
    fn shares_count_until_they_are_dropped_on_any_thread() {
        let budget = Budget::new(64 * MIB);
        let account = budget.account(Consumer::Blocks);
        let mut share = account.share(3 * MIB);
        assert_eq!((share.bytes(), account.bytes()), (3 * MIB, 3 * MIB));
        let used = budget.used(Consumer::Blocks);
        assert!((3 * MIB..4 * MIB).contains(&used), "{used}");
        drop(share.account().share(MIB));
        assert_eq!(account.bytes(), 3 * MIB);
        share.set(40 * MIB);
        share.set(20 * MIB);
        assert!((20 * MIB..21 * MIB).contains(&budget.used(Consumer::Blocks)));
        thread::spawn(move || drop(share)).join().unwrap();
        assert_eq!(account.bytes(), 0);
        assert!(budget.used(Consumer::Blocks) <= MIB);
        drop(account);
        assert_eq!(budget.used_total(), 0);
    }

    #[test]
    fn shares_move_the_state_and_are_never_refused() {
        let budget = Budget::new(MIB);
        let account = budget.account(Consumer::Backlogs);
        let share = account.share(5 * MIB);
        assert_eq!(budget.state(), State::Critical);
        drop(share);
        assert_eq!(budget.state(), State::Normal);
    }

    #[test]
    fn shares_of_many_threads_add_up() {
        let budget = Budget::new(64 * MIB);
        let account = budget.account(Consumer::Messages);
        thread::scope(|scope| {
            for seed in 1..9_u64 {
                let account = &account;
                scope.spawn(move || {
                    let mut shares: Vec<Share> = Vec::new();
                    for step in 0..20_000 {
                        let bytes = (seed * 7_919 + step * 104_729) % 100_000;
                        shares.push(account.share(bytes));
                        if step % 3 > 0 {
                            shares.swap_remove((step as usize * 31) % shares.len());
                        }
                        if shares.len() > 40 {
                            shares.clear();
                        }
                    }
                });
            }
        });
        assert_eq!(account.bytes(), 0);
        assert!(budget.used_total() <= 2 * MIB);
        let share = account.share(7 * MIB);
        assert!((7 * MIB..9 * MIB).contains(&budget.used_total()));
        drop((share, account));
        assert_eq!(budget.used_total(), 0);
    }

    #[test]
    fn without_a_budget_an_account_counts_nothing() {
        let account = Account::default();
        let share = account.share(MIB);
        assert_eq!((account.bytes(), account.consumer()), (0, None));
        assert_eq!(share.bytes(), MIB);
        assert_eq!(Budget::unbounded().account(Consumer::Blocks).bytes(), 0);
    }
}
