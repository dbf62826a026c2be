//! The clock of nodes and sessions.

use std::time::{Instant, SystemTime};

/// Returns the time of the runtime's clock. Everything that depends on the time reads this clock,
/// because the runtime's timers use it as well, and because tests and simulations can control it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Converts a time to milliseconds since 1970.
pub(crate) fn milliseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
