//! The rate limit for streams that are reset by the peer or because of the peer's errors.
//!
//! Opening a stream and resetting it immediately costs a client two small frames, but costs the
//! server a request. So a client may do this often only for a short time (CVE-2023-44487). The same
//! limit applies if the client makes the server reset the stream (CVE-2025-8671).

use std::time::Duration;

/// A leaky bucket that counts resets.
#[derive(Debug)]
pub(crate) struct Resets {
    counted: u32,
    /// The time up to which the leak has been applied.
    leaked_until: Duration,
}

impl Resets {
    pub(crate) const fn new(now: Duration) -> Self {
        Self {
            counted: 0,
            leaked_until: now,
        }
    }

    /// Counts one reset; returns whether the client has exceeded a burst of `max` resets that
    /// refills at `per_second`.
    pub(crate) fn count(&mut self, now: Duration, max: u32, per_second: u32) -> bool {
        self.leak(now, per_second);
        self.counted = self.counted.saturating_add(1);
        self.counted > max
    }

    fn leak(&mut self, now: Duration, per_second: u32) {
        if self.counted == 0 || per_second == 0 {
            self.leaked_until = now;
            return;
        }
        let each = Duration::from_secs(1) / per_second;
        let elapsed = now.saturating_sub(self.leaked_until);
        let leaked = elapsed.as_nanos() / each.as_nanos().max(1);
        let leaked = u32::try_from(leaked).unwrap_or(u32::MAX).min(self.counted);
        self.counted -= leaked;
        self.leaked_until = match self.counted {
            0 => now,
            _ => self.leaked_until + each * leaked,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s01_the_last_one_allowed_is_allowed_and_the_next_is_not() {
        let mut resets = Resets::new(Duration::ZERO);
        let counted: Vec<_> = (0..4)
            .map(|_| resets.count(Duration::ZERO, 3, 10))
            .collect();
        assert_eq!(counted, [false, false, false, true]);
    }

    #[test]
    fn time_makes_room_for_as_many_as_are_allowed_in_the_long_run() {
        let mut resets = Resets::new(Duration::from_secs(7));
        for tenth in 0..100 {
            let now = Duration::from_secs(7) + Duration::from_millis(100) * tenth;
            assert!(!resets.count(now, 3, 10), "{tenth}");
        }
        let now = Duration::from_millis(16_900);
        let counted: Vec<_> = (0..3).map(|_| resets.count(now, 3, 10)).collect();
        assert_eq!(counted, [false, false, true]);
    }

    #[test]
    fn a_rest_makes_room_for_no_more_than_the_first_time() {
        let mut resets = Resets::new(Duration::ZERO);
        assert!(!resets.count(Duration::ZERO, 3, 10));
        let now = Duration::from_secs(3_600);
        let counted: Vec<_> = (0..4).map(|_| resets.count(now, 3, 10)).collect();
        assert_eq!(counted, [false, false, false, true]);
    }
}
