//! The time that engines are told.

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

/// Returns the moment that `at`, as told by [`now`], stands for.
pub(crate) fn instant(at: Duration) -> tokio::time::Instant {
    tokio::time::Instant::from_std(*START + at)
}
