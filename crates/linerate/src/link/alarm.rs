//! When the driver is to look at its connection's deadlines.

use std::{
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Sleep;

use crate::{clock, server::Slot};

/// What wakes a driver at a deadline: a timer of its own, or the one that the connections of a
/// server share, which costs a connection no memory to speak of.
pub(crate) enum Alarm {
    Own(Pin<Box<Sleep>>),
    Shared(Slot),
}

impl Alarm {
    /// Creates a timer of its own.
    pub(crate) fn own() -> Self {
        Self::Own(Box::pin(tokio::time::sleep_until(clock::instant(
            Duration::ZERO,
        ))))
    }

    /// Sees to it that the driver is woken at `due` or earlier; `set` is the tick for which a shared
    /// timer is set, if it is. Ready if the deadline may have come.
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

/// A moment of the timer that connections share.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Tick(NonZeroU32);

impl Tick {
    /// How often the shared timer looks; deadlines are that much late at most.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(100);

    /// Returns the first tick that is not before `at`.
    pub(crate) fn at_or_after(at: Duration) -> Self {
        Self::new(at.as_millis().div_ceil(Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the last tick that is not after `now`.
    pub(crate) fn at_or_before(now: Duration) -> Self {
        Self::new((now.as_millis() / Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the tick after so many intervals.
    pub(crate) const fn new(intervals: u32) -> Self {
        // Never 0, so that `Option<Tick>` is as small.
        Self(NonZeroU32::MIN.saturating_add(intervals))
    }

    /// Returns after how many intervals the tick is.
    pub(crate) const fn intervals(self) -> u32 {
        self.0.get() - 1
    }
}
