//! Registered holders of memory, which can be ended to free it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, Weak},
};

use crate::{Consumer, lock::lock};

/// Something that holds memory for a peer and can be ended: a request body, a connection, a
/// session.
pub trait Holder: Send + Sync + 'static {
    /// Returns the consumer that most of the memory is counted for, and the number of bytes that
    /// ending it would free.
    fn holds(&self) -> (Consumer, u64);

    /// Ends it soon, with an answer to the peer if its protocol has one. May be called on any
    /// thread.
    fn end(&self);
}

/// Keeps a [`Holder`] registered with its budget until it is dropped.
#[derive(Default)]
pub struct Registration {
    /// `None` if the budget is unbounded.
    holders: Option<Arc<Holders>>,
    number: u64,
}

/// The holders of a budget, ordered by age.
#[derive(Default)]
pub(crate) struct Holders(Mutex<Known>);

#[derive(Default)]
struct Known {
    holders: BTreeMap<u64, Weak<dyn Holder>>,
    registered: u64,
}

impl Holders {
    pub(crate) fn register(self: &Arc<Self>, holder: &Arc<impl Holder>) -> Registration {
        let holder: Weak<dyn Holder> = Arc::downgrade(holder) as _;
        let mut known = lock(&self.0);
        known.registered += 1;
        let number = known.registered;
        known.holders.insert(number, holder);
        Registration {
            holders: Some(Arc::clone(self)),
            number,
        }
    }

    /// Returns the registered holders, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Holder>> {
        // Upgrade after the lock is released: dropping the last reference to a holder may
        // unregister it.
        let weak: Vec<_> = lock(&self.0).holders.values().cloned().collect();
        weak.iter().filter_map(Weak::upgrade).collect()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(holders) = &self.holders {
            lock(&holders.0).holders.remove(&self.number);
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.number).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use crate::{Budget, Consumer, Holder, Registration};

    struct Body {
        bytes: u64,
        is_ended: AtomicBool,
    }

    impl Holder for Body {
        fn holds(&self) -> (Consumer, u64) {
            (Consumer::Bodies, self.bytes)
        }

        fn end(&self) {
            self.is_ended.store(true, Ordering::Relaxed);
        }
    }

    fn body(budget: &Budget, bytes: u64) -> (Arc<Body>, Registration) {
        let is_ended = AtomicBool::new(false);
        let body = Arc::new(Body { bytes, is_ended });
        let registration = budget.register(&body);
        (body, registration)
    }

    #[test]
    fn holders_are_listed_by_age_until_they_are_dropped() {
        let budget = Budget::new(1 << 20);
        let (first, first_known) = body(&budget, 1);
        let (second, _second_known) = body(&budget, 2);
        let (third, _third_known) = body(&budget, 3);
        let bytes = || -> Vec<u64> {
            let holders = budget.holders();
            holders.iter().map(|holder| holder.holds().1).collect()
        };
        assert_eq!(bytes(), [1, 2, 3]);
        drop(second);
        assert_eq!(bytes(), [1, 3]);
        drop(first_known);
        assert_eq!(bytes(), [3]);
        budget.holders()[0].end();
        assert!(third.is_ended.load(Ordering::Relaxed));
        assert!(!first.is_ended.load(Ordering::Relaxed));
    }

    #[test]
    fn without_a_budget_no_holder_is_listed() {
        let budget = Budget::unbounded();
        let _body = body(&budget, 1);
        assert!(budget.holders().is_empty());
    }
}
