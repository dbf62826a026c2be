//! The schedule of an open loop: when each message is to be sent, whatever the server does.

use std::ops::Range;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::load::LoadError;
use crate::load::error::system;

/// The timer goes off at most this often; messages between two times are sent together.
const INTERVAL_MIN: Duration = Duration::from_micros(20);

/// Messages of one thread at equal intervals, numbered from 0. Times are in nanoseconds since a
/// moment of the caller's choice.
#[derive(Debug)]
pub(super) struct Schedule {
    timer: OwnedFd,
    start: u64,
    interval: f64,
    sent: u64,
    measured_from: u64,
}

impl Schedule {
    /// Starts to send `rate` messages per second.
    ///
    /// # Errors
    ///
    /// No timer can be had, or there is no such rate.
    pub(super) fn new(rate: f64, start: u64) -> Result<Self, LoadError> {
        let interval = 1e9 / rate;
        if !(interval.is_finite() && interval > 0.0) {
            return Err(LoadError::Unsupported {
                what: "a rate that is not above zero",
            });
        }
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )
        .map_err(system("no timer can be had"))?;
        let period = Duration::from_nanos(interval as u64).max(INTERVAL_MIN);
        let period = Timespec::try_from(period).map_err(|_| LoadError::Unsupported {
            what: "a rate that is so low",
        })?;
        let times = Itimerspec {
            it_interval: period,
            it_value: period,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &times)
            .map_err(system("the timer cannot be set"))?;
        Ok(Self {
            timer,
            start,
            interval,
            sent: 0,
            measured_from: u64::MAX,
        })
    }

    /// Returns the messages to be sent at `now` that were not returned before. Call it whenever the
    /// timer goes off, which it does not again without.
    pub(super) fn take_due(&mut self, now: u64) -> Range<u64> {
        // The kernel sets a timer that repeats anew when its count is read; how often it went off,
        // the clock tells as well.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
        let due = (now.saturating_sub(self.start) as f64 / self.interval) as u64;
        let before = self.sent;
        self.sent = due.max(before);
        before..self.sent
    }

    /// Measures the delay of messages that are to be sent from `now` on.
    pub(super) fn measure_from(&mut self, now: u64) {
        self.measured_from = now;
    }

    /// Returns how long ago a message was to be sent, `None` if that is not measured.
    pub(super) fn delay(&self, number: u64, now: u64) -> Option<u64> {
        let intended = self.intended(number);
        (intended >= self.measured_from).then(|| now.saturating_sub(intended))
    }

    /// Returns when a message is to be sent.
    pub(super) fn intended(&self, number: u64) -> u64 {
        self.start + ((number + 1) as f64 * self.interval) as u64
    }

    /// Returns how many messages were due until now.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns what becomes readable, edge-triggered, when messages are due.
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
        // Message 0 was to be sent at 1.005 ms, message 1 at 2.005 ms.
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
