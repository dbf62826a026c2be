//! The clock of nodes and sessions.

use std::time::Instant;

/// Returns the time of the runtime's clock. Everything that depends on the time reads this clock,
/// because the runtime's timers use it as well, and because tests and simulations can control it.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
