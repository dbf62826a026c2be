//! Statistics of waiting times.

use std::time::Duration;

/// Returns the 99th percentile; zero if there are no times. Changes the order of `times`.
pub(crate) fn p99(times: &mut [Duration]) -> Duration {
    let place = times.len() * 99 / 100;
    match times.is_empty() {
        true => Duration::ZERO,
        false => *times.select_nth_unstable(place).1,
    }
}

/// Returns the median; zero if there are no times.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
