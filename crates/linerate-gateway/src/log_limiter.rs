//! Log lines that clients cannot flood.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Minimum time between two log lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Limits how often a frequent event is logged.
#[derive(Debug)]
pub(crate) struct LogLimiter(Mutex<State>);

#[derive(Debug)]
struct State {
    said: Option<Instant>,
    unsaid: u64,
}

impl LogLimiter {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            said: None,
            unsaid: 0,
        }))
    }

    /// Counts an occurrence. Returns the number of occurrences since the last log line if it may be
    /// logged now.
    pub(crate) fn ask(&self, now: Instant) -> Option<u64> {
        self.ask_for(1, now)
    }

    /// Like [`ask`](Self::ask), for `times` occurrences.
    pub(crate) fn ask_for(&self, times: u64, now: Instant) -> Option<u64> {
        let mut state = self.0.lock();
        let is_silent = state
            .said
            .is_some_and(|said| now.duration_since(said) < PAUSE);
        if is_silent {
            state.unsaid += times;
            return None;
        }
        state.said = Some(now);
        Some(std::mem::take(&mut state.unsaid) + times)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::LogLimiter;

    #[test]
    fn r11_a_flood_is_one_line_in_ten_seconds_with_a_count() {
        let limiter = LogLimiter::new();
        let start = Instant::now();
        assert_eq!(limiter.ask(start), Some(1));
        for millis in 0..9_000 {
            assert_eq!(limiter.ask(start + Duration::from_millis(millis)), None);
        }
        assert_eq!(limiter.ask(start + Duration::from_secs(10)), Some(9_001));
        assert_eq!(limiter.ask(start + Duration::from_secs(20)), Some(1));
    }
}
