//! Waits for a change of state, without a runtime.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{Budget, State};

/// Waits for changes of a budget's state.
///
/// It reports the newest state and may skip states in between. Only one task at a time can wait on
/// a watch.
#[derive(Debug)]
pub struct Watch {
    budget: Budget,
    seen: State,
}

impl Watch {
    pub(crate) fn new(budget: Budget, seen: State) -> Self {
        Self { budget, seen }
    }

    /// Waits until the state differs from the one last returned, and returns it. For an unbounded
    /// budget it waits forever.
    ///
    /// Cancel-safe: a change that was not returned is returned by the next call.
    pub async fn changed(&mut self) -> State {
        poll_fn(|cx| self.poll_changed(cx)).await
    }

    /// Like [`Self::changed`], for callers that poll.
    pub fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<State> {
        if let Some(signal) = self.budget.signal() {
            // The state changes under this lock, so no change can happen between this check and the
            // registration.
            let mut wakers = lock(signal.wakers());
            if self.budget.state() == self.seen {
                wakers.register(cx.waker());
            }
        }
        let state = self.budget.state();
        if state == self.seen {
            return Poll::Pending;
        }
        self.seen = state;
        Poll::Ready(state)
    }
}

/// The wakers of the tasks that wait for a change of state.
#[derive(Default)]
pub(crate) struct Signal(Mutex<Wakers>);

impl Signal {
    pub(crate) fn wakers(&self) -> &Mutex<Wakers> {
        &self.0
    }
}

#[derive(Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn take(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.0)
    }

    fn register(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }
}

/// Locks a mutex and ignores poisoning, because a panic leaves the lists behind these mutexes
/// intact.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
