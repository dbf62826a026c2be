//! How long a delivery waits for more publications.

use std::time::Duration;

/// Approximate cost of a write for a worker; 2.3 µs were measured on loopback.
const WRITE: Duration = Duration::from_micros(2);

/// A delivery with fewer writes starts immediately.
const WRITES_MIN: usize = 32;

/// The wait ends when no publication arrives for the cost of the writes divided by this number.
const QUIET_PART: u32 = 40;

/// Upper limit for the time without a publication. Publishers that are about to publish together do
/// so within one system call of each other.
const QUIET_MAX: Duration = Duration::from_micros(10);

/// The whole wait is limited to the cost of the writes divided by this number.
const WHOLE_PART: u32 = 10;

/// A delivery that waits a moment, because publications that arrive meanwhile can be sent in the
/// same writes. A client that publishes eight messages one by one wakes the worker with the first;
/// writing that one alone to a thousand subscribers costs as much as writing all eight.
///
/// The wait is in proportion to the cost of the writes, so that it costs only a few percent of what
/// it may save. It ends as soon as no more publications seem to follow: after 5 µs for 100
/// subscribers.
#[derive(Debug)]
pub(super) struct Linger {
    began: Duration,
    /// When the newest publication arrived, and how many bytes there were then.
    newest: Duration,
    bytes: usize,
    quiet_max: Duration,
    whole_max: Duration,
}

impl Linger {
    /// Starts to wait with a delivery of `bytes` bytes in `writes` writes; `None` if waiting is
    /// unlikely to pay.
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

    /// Returns whether to continue waiting, now that there are `bytes` bytes to deliver.
    pub(super) fn continues(&mut self, now: Duration, bytes: usize) -> bool {
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
        assert!(linger.continues(micros(1_004), 100));
        assert!(linger.continues(micros(1_008), 200));
        assert!(linger.continues(micros(1_012), 200));
        assert!(!linger.continues(micros(1_013), 200));
    }

    #[test]
    fn a_wait_is_bounded_by_what_it_may_save() {
        let mut linger = Linger::new(micros(0), 0, 100).unwrap();
        let waited = (1..).take_while(|at| linger.continues(micros(*at), *at as usize));
        assert_eq!(waited.count(), 19);
        let mut linger = Linger::new(micros(0), 100, 1_000_000).unwrap();
        assert!(linger.continues(micros(9), 100));
        assert!(!linger.continues(micros(10), 100));
    }
}
