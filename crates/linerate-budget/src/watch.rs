//! Waits for a change of state, without a runtime.

use std::{
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use crate::{State, counters::Counters, lock::lock};

/// Waits for changes of a budget's state.
///
/// It reports the newest state and may skip states in between. Only one task at a time can wait on
/// a watch.
pub struct Watch {
    counters: Option<Arc<Counters>>,
    seen: State,
}

impl Watch {
    pub(crate) fn new(counters: Option<Arc<Counters>>) -> Self {
        let seen = counters
            .as_ref()
            .map_or(State::Normal, |counters| counters.state());
        Self { counters, seen }
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
        let Some(counters) = &self.counters else {
            return Poll::Pending;
        };
        // The state changes under this lock, so no change can happen between this check and the
        // registration.
        let mut wakers = lock(counters.signal().wakers());
        if counters.state() == self.seen {
            wakers.register(cx.waker());
        }
        drop(wakers);
        let state = counters.state();
        if state == self.seen {
            return Poll::Pending;
        }
        self.seen = state;
        Poll::Ready(state)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
