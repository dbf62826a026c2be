//! Logs that can't be flooded.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// How often something is said at most.
const PAUSE: Duration = Duration::from_secs(10);

/// Says when something that happens often may be logged again.
#[derive(Debug)]
pub(crate) struct Quiet(Mutex<State>);

#[derive(Debug)]
struct State {
    said: Option<Instant>,
    unsaid: u64,
}

impl Quiet {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(State {
            said: None,
            unsaid: 0,
        }))
    }

    /// Returns how often it has happened since it was said last, if it may be said now.
    pub(crate) fn ask(&self, now: Instant) -> Option<u64> {
        self.ask_for(1, now)
    }

    /// As [`ask`](Self::ask), of what has happened `times`.
    pub(crate) fn ask_for(&self, times: u64, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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

    use super::Quiet;

    #[test]
    fn r11_a_flood_is_one_line_in_ten_seconds_with_a_count() {
        let quiet = Quiet::new();
        let start = Instant::now();
        assert_eq!(quiet.ask(start), Some(1));
        for millis in 0..9_000 {
            assert_eq!(quiet.ask(start + Duration::from_millis(millis)), None);
        }
        assert_eq!(quiet.ask(start + Duration::from_secs(10)), Some(9_001));
        assert_eq!(quiet.ask(start + Duration::from_secs(20)), Some(1));
    }
}
