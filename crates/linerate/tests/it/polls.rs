//! Futures that are dropped after a given number of polls.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
};

/// The maximum number of polls; each test needs fewer.
pub(crate) const POLLS_MAX: usize = 1_000;

/// Polls a future at most `polls` times, then drops it.
pub(crate) async fn poll_times<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|cx: &mut Context<'_>| {
        if polled == polls {
            return Poll::Ready(None);
        }
        polled += 1;
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// Calls `run` with `first` polls, one more, and so on, until it returns that no future was
/// cancelled.
pub(crate) async fn for_all_polls(first: usize, mut run: impl AsyncFnMut(usize) -> usize) {
    let mut polls = first;
    while run(polls).await > 0 {
        polls += 1;
        assert!(polls < POLLS_MAX);
    }
    assert!(polls > 1, "no future was cancelled");
}
