//! A circuit breaker: stops asking a backend that does not answer, until it answers again.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::clock::now;

/// Counts consecutive failures. After too many, requests are refused for a while; then one at a
/// time is let through, until one is answered.
#[derive(Debug)]
pub(super) struct Breaker {
    failures_max: u32,
    pause: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Closed { failures: u32 },
    Open { until: Instant },
    Probing,
}

/// The permission to send one request. Dropping it without [`answered`](Self::answered) or
/// [`failed`](Self::failed) says nothing about the backend.
#[derive(Debug)]
pub(super) struct Permit<'a> {
    breaker: &'a Breaker,
    is_probe: bool,
}

impl Breaker {
    /// Creates a breaker that opens after `failures_max` consecutive failures; with 0, it never
    /// does.
    pub(super) fn new(failures_max: u32, pause: Duration) -> Self {
        Self {
            failures_max,
            pause,
            state: Mutex::new(State::Closed { failures: 0 }),
        }
    }

    /// Returns the permission to send a request, or `None` while the backend is not asked.
    pub(super) fn permit(&self, now: Instant) -> Option<Permit<'_>> {
        let mut state = self.state.lock();
        let is_probe = match *state {
            State::Closed { .. } => false,
            State::Open { until } if now >= until => true,
            State::Open { .. } | State::Probing => return None,
        };
        if is_probe {
            *state = State::Probing;
        }
        Some(Permit {
            breaker: self,
            is_probe,
        })
    }

    /// Returns whether requests are refused, except for one that tries whether there are answers.
    pub(super) fn is_open(&self) -> bool {
        !matches!(*self.state.lock(), State::Closed { .. })
    }
}

impl Permit<'_> {
    /// Records that the backend has answered.
    pub(super) fn answered(mut self) {
        self.is_probe = false;
        *self.breaker.state.lock() = State::Closed { failures: 0 };
    }

    /// Records that the backend has not answered.
    pub(super) fn failed(mut self, now: Instant) {
        let mut state = self.breaker.state.lock();
        let until = now + self.breaker.pause;
        match &mut *state {
            State::Closed { failures } => {
                *failures = failures.saturating_add(1);
                if *failures == self.breaker.failures_max {
                    *state = State::Open { until };
                }
            }
            State::Probing if self.is_probe => *state = State::Open { until },
            // A request that was sent before the breaker opened.
            State::Open { .. } | State::Probing => {}
        }
        self.is_probe = false;
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            // The result is unknown, so that the next request has to find out.
            let until = now();
            *self.breaker.state.lock() = State::Open { until };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(1);

    fn fail(breaker: &Breaker, now: Instant) {
        breaker.permit(now).unwrap().failed(now);
    }

    #[test]
    fn only_consecutive_failures_open_it() {
        let (breaker, now) = (Breaker::new(3, PAUSE), now());
        for _ in 0..5 {
            fail(&breaker, now);
            fail(&breaker, now);
            breaker.permit(now).unwrap().answered();
        }
        assert!(!breaker.is_open());
        for _ in 0..3 {
            fail(&breaker, now);
        }
        assert!(breaker.is_open());
        assert!(breaker.permit(now + PAUSE / 2).is_none());
    }

    #[test]
    fn after_the_pause_one_request_finds_out() {
        let (breaker, start) = (Breaker::new(1, PAUSE), now());
        fail(&breaker, start);
        let now = start + PAUSE;
        let probe = breaker.permit(now).unwrap();
        assert!(breaker.permit(now).is_none());
        probe.failed(now);
        assert!(breaker.permit(now + PAUSE / 2).is_none());
        breaker.permit(now + PAUSE).unwrap().answered();
        assert!(!breaker.is_open());
        assert!(breaker.permit(now + PAUSE).is_some());
    }

    #[test]
    fn an_abandoned_probe_makes_room_for_another() {
        let (breaker, start) = (Breaker::new(1, PAUSE), now());
        fail(&breaker, start);
        let later = start + 2 * PAUSE;
        drop(breaker.permit(later).unwrap());
        assert!(breaker.permit(later).is_some());
    }

    #[test]
    fn requests_sent_before_it_opened_change_nothing() {
        let (breaker, start) = (Breaker::new(1, PAUSE), now());
        let early = breaker.permit(start).unwrap();
        fail(&breaker, start);
        let probe = breaker.permit(start + PAUSE).unwrap();
        early.failed(start + PAUSE);
        assert!(breaker.permit(start + 3 * PAUSE).is_none());
        probe.answered();
        assert!(!breaker.is_open());
    }

    #[test]
    fn zero_failures_never_open_it() {
        let (breaker, now) = (Breaker::new(0, PAUSE), now());
        for _ in 0..1_000 {
            fail(&breaker, now);
        }
        assert!(!breaker.is_open());
    }
}
