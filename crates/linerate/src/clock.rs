//! The clock for engines.

use std::{
    sync::LazyLock,
    time::{Duration, Instant},
};

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the time since a fixed moment of this process, by tokio's clock.
pub(crate) fn now() -> Duration {
    let start = *START;
    tokio::time::Instant::now()
        .into_std()
        .saturating_duration_since(start)
}

/// Converts a time from [`now`] to an instant of tokio's clock.
pub(crate) fn instant(at: Duration) -> tokio::time::Instant {
    tokio::time::Instant::from_std(*START + at)
}
