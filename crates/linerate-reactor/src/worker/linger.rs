//! How long a delivery waits for publications to go with it.

use std::time::Duration;

/// What a write costs a worker, about: on loopback it was measured to take 2.3 µs.
const WRITE: Duration = Duration::from_micros(2);

/// A delivery of fewer writes is made at once.
const WRITES_MIN: usize = 32;

/// The part of the time which the writes take that may pass without another publication,
const QUIET_PART: u32 = 40;

/// and at most this: publishers that are about to publish together do so one system call behind the
/// other.
const QUIET_MAX: Duration = Duration::from_micros(10);

/// The part of the time which the writes take that may pass altogether.
const WHOLE_PART: u32 = 10;

/// A delivery that waits a moment, because what comes meanwhile goes out by the same writes: who
/// publishes eight messages one by one wakes the worker with the first, and to write this one alone
/// to a thousand subscribers costs as much as to write all.
///
/// The wait is in proportion to the writes, so that it costs a few percent of what it may save, and
/// ends as soon as nothing more seems to come: 5 µs for 100 subscribers.
#[derive(Debug)]
pub(super) struct Linger {
    began: Duration,
    /// When the newest publication was made, and how many bytes there were then.
    newest: Duration,
    bytes: usize,
    quiet_max: Duration,
    whole_max: Duration,
}

impl Linger {
    /// Starts to wait with a delivery of `bytes` that takes so many writes, if that may pay.
    pub(super) fn new(now: Duration, bytes: usize, writes: usize) -> Option<Self> {
        let cost = WRITE * u32::try_from(writes).ok()?;
        (writes >= WRITES_MIN).then_some(Self {
            began: now,
            newest: now,
            bytes,
            quiet_max: (cost / QUIET_PART).min(QUIET_MAX),
            whole_max: cost / WHOLE_PART,
        })
    }

    /// Returns whether to wait on, with `bytes` to deliver by now.
    pub(super) fn goes_on(&mut self, now: Duration, bytes: usize) -> bool {
        if bytes != self.bytes {
            (self.bytes, self.newest) = (bytes, now);
        }
        now - self.newest < self.quiet_max && now - self.began < self.whole_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn few_writes_are_not_waited_with() {
        assert!(Linger::new(micros(7), 100, WRITES_MIN - 1).is_none());
        assert!(Linger::new(micros(7), 100, WRITES_MIN).is_some());
    }

    #[test]
    fn a_wait_ends_when_nothing_more_comes() {
        let mut linger = Linger::new(micros(1_000), 100, 100).unwrap();
        assert!(linger.goes_on(micros(1_004), 100));
        assert!(linger.goes_on(micros(1_008), 200));
        assert!(linger.goes_on(micros(1_012), 200));
        assert!(!linger.goes_on(micros(1_013), 200));
    }

    #[test]
    fn a_wait_is_bounded_by_what_it_may_save() {
        let mut linger = Linger::new(micros(0), 0, 100).unwrap();
        let waited = (1..).take_while(|at| linger.goes_on(micros(*at), *at as usize));
        assert_eq!(waited.count(), 19);
        let mut linger = Linger::new(micros(0), 100, 1_000_000).unwrap();
        assert!(linger.goes_on(micros(9), 100));
        assert!(!linger.goes_on(micros(10), 100));
    }
}
