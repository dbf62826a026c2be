//! The ticks of the timer that the connections of a server share.

use std::{num::NonZeroU32, time::Duration};

/// A point in time of the shared timer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Tick(NonZeroU32);

impl Tick {
    /// The interval of the shared timer, which is also how late a deadline can be.
    pub(super) const INTERVAL: Duration = Duration::from_millis(100);

    /// Returns the first tick that is not before `at`.
    pub(super) fn at_or_after(at: Duration) -> Self {
        Self::new(at.as_millis().div_ceil(Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the last tick that is not after `now`.
    pub(super) fn at_or_before(now: Duration) -> Self {
        Self::new((now.as_millis() / Self::INTERVAL.as_millis()) as u32)
    }

    /// Returns the tick after `intervals` intervals.
    pub(super) const fn new(intervals: u32) -> Self {
        // The value is never 0, so that `Option<Tick>` is the same size.
        Self(NonZeroU32::MIN.saturating_add(intervals))
    }

    /// Returns the number of intervals up to the tick.
    pub(super) const fn intervals(self) -> u32 {
        self.0.get() - 1
    }
}
