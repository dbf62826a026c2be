//! Looks for the highest rate that a server sustains.

use super::StoryError;
use super::trial::Trial;

/// Each step multiplies or divides the rate by this.
const STEP: f64 = 2.0;

/// Number of steps between the highest rate that was sustained and the lowest that was not.
const HALVINGS: u32 = 2;

/// The search gives up below the first rate divided by this.
const DOWN_MAX: f64 = 64.0;

/// The result of the search.
#[derive(Clone, Debug)]
pub struct SustainedRate {
    /// The trial with the highest rate that was sustained.
    pub best: Option<Trial>,
    /// True if the publisher or `rate_max` was the limit, and not the server.
    pub is_bound_by_load: bool,
}

/// Finds the highest rate that is sustained. Tries rising rates from `start` on, or falling ones if
/// `start` fails, then some between the highest that was sustained and the lowest that was not. A
/// rate that fails is tried once more before the failure counts, since other work on the machine
/// may disturb a trial.
///
/// # Errors
///
/// Returns an error if `try_rate` does.
pub fn climb(
    start: f64,
    rate_max: f64,
    mut try_rate: impl FnMut(f64) -> Result<Trial, StoryError>,
) -> Result<SustainedRate, StoryError> {
    let mut best: Option<Trial> = None;
    let mut failed: Option<Trial> = None;
    let mut halvings = 0;
    loop {
        let rate = match (&best, &failed) {
            (None, None) => start,
            (Some(best), None) => (best.rate * STEP).min(rate_max),
            (None, Some(failed)) => failed.rate / STEP,
            (Some(best), Some(failed)) => {
                halvings += 1;
                (best.rate * failed.rate).sqrt()
            }
        };
        let is_at_end = best.as_ref().is_some_and(|best| best.rate >= rate_max);
        if is_at_end || halvings > HALVINGS || rate * DOWN_MAX < start {
            return Ok(SustainedRate {
                is_bound_by_load: is_at_end
                    || failed.is_some_and(|failed| !failed.is_on_schedule()),
                best,
            });
        }
        let mut trial = try_rate(rate)?;
        if !trial.is_sustained() {
            trial = try_rate(rate)?;
        }
        match trial.is_sustained() {
            true => best = Some(trial),
            false => failed = Some(trial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::audience::Received;

    fn trial(rate: f64, limit: f64) -> Trial {
        Trial {
            peer: "a server".into(),
            dialect: "raw",
            subscribers: 1,
            sources: 1,
            batch_ms: 0,
            stalled: 0,
            rate,
            seconds: 1.0,
            published: 1,
            received: Received {
                delivered: 1,
                bytes: 1,
                lost: u64::from(rate > limit),
                ..Received::default()
            },
            latency: None,
            cpu_s: 1.0,
            delivered_per_cpu_s: 1.0,
            resident_bytes_peak: 0,
            publisher_late_s: 0.0,
        }
    }

    #[test]
    fn the_highest_rate_is_found_within_a_fifth() {
        for limit in [20.0, 900.0, 1_000.0, 5_000.0, 47_000.0] {
            let found = climb(1_000.0, 1e6, |rate| Ok(trial(rate, limit))).unwrap();
            let best = found.best.unwrap().rate;
            assert!(best <= limit && best > limit * 0.8, "{best} of {limit}");
            assert!(!found.is_bound_by_load);
        }
    }

    #[test]
    fn a_server_that_fails_at_every_rate_is_given_up() {
        let found = climb(1_000.0, 1e6, |rate| Ok(trial(rate, 0.0))).unwrap();
        assert!(found.best.is_none());
    }

    #[test]
    fn a_failure_counts_only_if_it_comes_again() {
        let mut failures = 0;
        let found = climb(1_000.0, 4_000.0, |rate| {
            let fails = rate > 1_500.0 && failures == 0;
            failures += u32::from(fails);
            Ok(trial(rate, if fails { 0.0 } else { 1e6 }))
        });
        let found = found.unwrap();
        assert_eq!(found.best.unwrap().rate, 4_000.0);
        assert!(found.is_bound_by_load);
    }
}
