//! The rate limit for streams that are reset by the peer or because of the peer's errors.
//!
//! Opening a stream and resetting it immediately costs a client two small frames, but costs the
//! server a request. So a client may do this often only for a short time (CVE-2023-44487). The same
//! limit applies if the client makes the server reset the stream (CVE-2025-8671).

use std::time::Duration;

use tokio::time::Instant;

/// A leaky bucket that counts resets.
#[derive(Debug)]
pub struct Resets {
    max: u32,
    per_second: u32,
    counted: u32,
    /// The time up to which the leak has been applied.
    leaked_until: Instant,
}

impl Resets {
    /// Creates an empty bucket for a burst of `max` resets that leaks `per_second` of them.
    pub const fn new(now: Instant, max: u32, per_second: u32) -> Self {
        Self {
            max,
            per_second,
            counted: 0,
            leaked_until: now,
        }
    }

    /// Counts one reset; returns whether there are now more than allowed.
    pub fn count(&mut self, now: Instant) -> bool {
        self.leak(now);
        self.counted = self.counted.saturating_add(1);
        self.counted > self.max
    }

    fn leak(&mut self, now: Instant) {
        if self.counted == 0 || self.per_second == 0 {
            self.leaked_until = now;
            return;
        }
        let each = Duration::from_secs(1) / self.per_second;
        let elapsed = now.saturating_duration_since(self.leaked_until);
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
        let now = Instant::now();
        let mut resets = Resets::new(now, 3, 10);
        let counted: Vec<_> = (0..4).map(|_| resets.count(now)).collect();
        assert_eq!(counted, [false, false, false, true]);
    }

    #[test]
    fn time_makes_room_for_as_many_as_are_allowed_in_the_long_run() {
        let start = Instant::now();
        let mut resets = Resets::new(start, 3, 10);
        for tenth in 0..100 {
            let now = start + Duration::from_millis(100) * tenth;
            assert!(!resets.count(now), "{tenth}");
        }
        let now = start + Duration::from_millis(9_900);
        let counted: Vec<_> = (0..3).map(|_| resets.count(now)).collect();
        assert_eq!(counted, [false, false, true]);
    }

    #[test]
    fn a_rest_makes_room_for_no_more_than_the_first_time() {
        let start = Instant::now();
        let mut resets = Resets::new(start, 3, 10);
        assert!(!resets.count(start));
        let now = start + Duration::from_secs(3_600);
        let counted: Vec<_> = (0..4).map(|_| resets.count(now)).collect();
        assert_eq!(counted, [false, false, false, true]);
    }
}
