//! The schedule of an open loop: when to send each message, whatever the server does.

use std::ops::Range;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::load::LoadError;
use crate::load::error::system;

/// Shortest interval of the timer. Messages that become due between two expirations are sent
/// together.
const INTERVAL_MIN: Duration = Duration::from_micros(20);

/// Messages of one thread at equal intervals, numbered from 0. Times are in nanoseconds since a
/// moment that the caller chooses.
#[derive(Debug)]
pub(super) struct Schedule {
    timer: OwnedFd,
    start: u64,
    interval: f64,
    sent: u64,
    measured_from: u64,
}

impl Schedule {
    /// Starts a schedule of `rate` messages per second at the time `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if no timer can be created, or if `rate` is not a possible rate.
    pub(super) fn new(rate: f64, start: u64) -> Result<Self, LoadError> {
        let interval = 1e9 / rate;
        if !(interval.is_finite() && interval > 0.0) {
            return Err(LoadError::Unsupported(
                "a rate that is not greater than zero",
            ));
        }
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )
        .map_err(system("cannot create a timer"))?;
        let period = Duration::from_nanos(interval as u64).max(INTERVAL_MIN);
        let period = Timespec::try_from(period)
            .map_err(|_| LoadError::Unsupported("a rate that is too low for a timer"))?;
        let times = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)
            .map_err(system("cannot set the timer"))?;
        Ok(Self {
            timer,
            start,
            interval,
            sent: 0,
            measured_from: u64::MAX,
        })
    }

    /// Returns the messages that are due at `now` and were not returned before. Call this whenever
    /// the timer expires; otherwise it does not expire again.
    pub(super) fn take_due(&mut self, now: u64) -> Range<u64> {
        // Reading the count re-arms the repeating timer. The count itself is not needed, because
        // the clock tells how many messages are due.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        let due = (now.saturating_sub(self.start) as f64 / self.interval) as u64;
        let before = self.sent;
        self.sent = due.max(before);
        before..self.sent
    }

    /// Starts to measure the delay of messages that are due at `now` or later.
    pub(super) fn measure_from(&mut self, now: u64) {
        self.measured_from = now;
    }

    /// Returns how long ago a message was due, or `None` if its delay is not measured.
    pub(super) fn delay(&self, number: u64, now: u64) -> Option<u64> {
        let intended = self.intended(number);
        (intended >= self.measured_from).then(|| now.saturating_sub(intended))
    }

    /// Returns the time at which a message is due.
    pub(super) fn intended(&self, number: u64) -> u64 {
        self.start + ((number + 1) as f64 * self.interval) as u64
    }

    /// Returns the number of messages that have become due so far.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns a descriptor that becomes readable (edge-triggered) when messages are due.
    pub(super) fn timer(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_at_equal_intervals() {
        let mut schedule = Schedule::new(1_000.0, 5_000).unwrap();
        assert_eq!(schedule.take_due(5_000), 0..0);
        assert_eq!(schedule.take_due(1_005_000), 0..1);
        assert_eq!(schedule.take_due(1_005_000), 1..1);
        assert_eq!(schedule.take_due(10_006_000), 1..10);
        assert_eq!(schedule.sent(), 10);
    }

    #[test]
    fn delay_counts_from_the_intended_time() {
        let mut schedule = Schedule::new(1_000.0, 5_000).unwrap();
        assert_eq!(schedule.delay(0, 2_000_000), None);
        schedule.measure_from(2_000_000);
        // Message 0 was due at 1.005 ms, message 1 at 2.005 ms.
        assert_eq!(schedule.delay(0, 9_000_000), None);
        assert_eq!(schedule.delay(1, 9_000_000), Some(6_995_000));
    }

    #[test]
    fn rates_have_to_be_above_zero() {
        for rate in [0.0, -1.0, f64::NAN] {
            let error = Schedule::new(rate, 0).unwrap_err();
            assert!(matches!(error, LoadError::Unsupported { .. }), "{rate}");
        }
    }
}
