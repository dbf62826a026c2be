//! Waking the driver at its connection's deadlines.

use std::{
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Sleep;

use crate::{clock, server::Slot};

/// The timer that wakes a driver at a deadline: either its own, or the one that all connections of
/// a server share, which costs almost no memory per connection.
pub(crate) enum Alarm {
    Own(Pin<Box<Sleep>>),
    Shared(Slot),
}

impl Alarm {
    /// Creates an alarm with its own timer.
    pub(crate) fn own() -> Self {
        Self::Own(Box::pin(tokio::time::sleep_until(clock::instant(
            Duration::ZERO,
        ))))
    }

    /// Ensures that the driver is woken at `due` or earlier. `set` is the tick for which the shared
    /// timer is set, if any. Ready if the deadline may have passed.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        due: Duration,
        set: &mut Option<Tick>,
    ) -> Poll<()> {
        match self {
            Self::Own(sleep) => {
                let due = clock::instant(due);
                if sleep.deadline() > due || sleep.is_elapsed() {
                    sleep.as_mut().reset(due);
                }
                sleep.as_mut().poll(cx)
            }
            Self::Shared(slot) => {
                let tick = Tick::at_or_after(due);
                if set.is_none_or(|set| set > tick) {
                    *set = Some(slot.set_alarm(tick));
                }
                Poll::Pending
            }
        }
    }
}

/// A point in time of the shared timer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Tick(NonZeroU32);

impl Tick {
    /// The interval of the shared timer, which is also how late a deadline can be.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

    /// Returns the first tick that is not before `at`.
    pub(crate) fn at_or_after(at: Duration) -> Self {
        Self::new(at.as_millis().div_ceil(Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the last tick that is not after `now`.
    pub(crate) fn at_or_before(now: Duration) -> Self {
        Self::new((now.as_millis() / Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the tick after `intervals` intervals.
    pub(crate) const fn new(intervals: u32) -> Self {
        // The value is never 0, so that `Option<Tick>` is the same size.
        Self(NonZeroU32::MIN.saturating_add(intervals))
    }

    /// Returns the number of intervals up to the tick.
    pub(crate) const fn intervals(self) -> u32 {
        self.0.get() - 1
    }
}
