//! Timers, and time limits for futures.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{task::unconstrained, time::Instant};

use super::{Runtime, RuntimeHandle, Sleep};

pin_project_lite::pin_project! {
    /// A timer of any runtime.
    #[project = TimerProjection]
    pub(crate) enum Timer {
        Other {
            runtime: Arc<dyn Runtime>,
            deadline: Instant,
            // `None` once the timer is ready.
            sleep: Option<Sleep>,
        },
        Tokio { #[pin] sleep: tokio::time::Sleep },
    }
}

impl Timer {
    pub(super) fn new(runtime: &RuntimeHandle, deadline: Instant) -> Self {
        match runtime {
            RuntimeHandle::Other(runtime) => Self::Other {
                runtime: runtime.clone(),
                deadline,
                sleep: Some(runtime.sleep_until(deadline.into_std())),
            },
            RuntimeHandle::Tokio => Self::Tokio {
                sleep: tokio::time::sleep_until(deadline),
            },
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        match self {
            Self::Other { deadline, .. } => *deadline,
            Self::Tokio { sleep } => sleep.deadline(),
        }
    }

    /// Returns whether the timer has been ready.
    pub(crate) fn is_elapsed(&self) -> bool {
        match self {
            Self::Other { sleep, .. } => sleep.is_none(),
            Self::Tokio { sleep } => sleep.is_elapsed(),
        }
    }

    /// Sets another deadline; the timer can be used again.
    pub(crate) fn reset(self: Pin<&mut Self>, to: Instant) {
        match self.project() {
            TimerProjection::Other {
                runtime,
                deadline,
                sleep,
            } => {
                *deadline = to;
                *sleep = Some(runtime.sleep_until(to.into_std()));
            }
            TimerProjection::Tokio { sleep } => sleep.reset(to),
        }
    }
}

impl Future for Timer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            TimerProjection::Other { sleep, .. } => {
                if let Some(sleeping) = sleep {
                    ready!(sleeping.as_mut().poll(cx));
                    *sleep = None;
                }
                Poll::Ready(())
            }
            TimerProjection::Tokio { sleep } => sleep.poll(cx),
        }
    }
}

/// The error of a [`Timeout`]: the time is over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Elapsed;

pin_project_lite::pin_project! {
    /// Waits for a future, up to a deadline.
    pub(crate) struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        timer: Timer,
    }
}

impl<F> Timeout<F> {
    pub(super) fn new(timer: Timer, future: F) -> Self {
        Self { future, timer }
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        // A future that always uses up tokio's cooperative budget must not disable its time limit.
        pin!(unconstrained(this.timer))
            .poll(cx)
            .map(|()| Err(Elapsed))
    }
}
