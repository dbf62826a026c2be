//! Time limits for the phases of opening a connection.

use std::time::Duration;

use tokio::time::Instant;

use super::{DialError, Phase};
use crate::runtime::{Elapsed, RuntimeHandle};

/// Time limits for each phase of opening a connection, and for all of them together.
///
/// The time limit for the opening handshake itself is an
/// [option](crate::Options::handshake_timeout) of the connection.
///
/// ```
/// use std::time::Duration;
///
/// let mut timeouts = linerate::dial::Timeouts::default();
/// timeouts.connect = Duration::from_secs(3);
/// let client = linerate::Client::new().with_timeouts(timeouts);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Timeouts {
    /// For resolving a host name. Default: 5 s, which is the time after which the system asks the
    /// next name server.
    pub resolve: Duration,
    /// For connecting to the first address that answers. Default: 10 s, which leaves time for three
    /// lost SYNs.
    pub connect: Duration,
    /// For the exchange with a proxy, including TLS with it. Default: 15 s, because the proxy
    /// connects to the server during this time.
    pub proxy: Duration,
    /// For the TLS handshake. Default: 10 s.
    pub tls: Duration,
    /// For everything from resolving the first host name to the end of the opening handshake.
    /// Default: 30 s.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(10),
            proxy: Duration::from_secs(15),
            tls: Duration::from_secs(10),
            total: Duration::from_secs(30),
        }
    }
}

/// The deadline for opening one connection, which also limits each of its phases.
#[derive(Clone, Debug)]
pub(crate) struct Deadline {
    started: Instant,
    total: Duration,
    runtime: RuntimeHandle,
}

impl Deadline {
    /// Starts the clock.
    pub(crate) fn start(total: Duration, runtime: &RuntimeHandle) -> Self {
        Self {
            started: Instant::now(),
            total,
            runtime: runtime.clone(),
        }
    }

    /// Waits for `future`, at most for `limit` and never beyond the deadline.
    ///
    /// # Errors
    /// The future did not complete in time.
    pub(crate) async fn keep<F: Future>(
        &self,
        phase: Phase,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, DialError> {
        let begun = Instant::now();
        let left = self.total.saturating_sub(begun - self.started);
        let kept = self.runtime.timeout(limit.min(left), future);
        kept.await.map_err(|Elapsed| {
            let (since, limit) = if left < limit {
                (self.started, self.total)
            } else {
                (begun, limit)
            };
            DialError::TimedOut {
                phase,
                elapsed: since.elapsed(),
                limit,
                attempts: Vec::new(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn time_out(deadline: &Deadline, phase: Phase, limit: Duration) -> DialError {
        deadline
            .keep(phase, limit, pending::<()>())
            .await
            .unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_that_takes_too_long_is_named_with_its_time_and_limit() {
        let deadline = Deadline::start(30 * SECOND, &RuntimeHandle::Tokio);
        let error = time_out(&deadline, Phase::Tls, 10 * SECOND).await;
        let DialError::TimedOut {
            phase,
            elapsed,
            limit,
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((phase, limit), (Phase::Tls, 10 * SECOND));
        // Tokio's timers have a resolution of one millisecond.
        assert_eq!(elapsed.as_secs(), 10);
        assert!(
            error
                .to_string()
                .starts_with("TLS handshake timed out after 10")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_phases_that_have_time_left() {
        let deadline = Deadline::start(15 * SECOND, &RuntimeHandle::Tokio);
        time_out(&deadline, Phase::Connect, 10 * SECOND).await;
        let error = time_out(&deadline, Phase::Tls, 10 * SECOND).await;
        let DialError::TimedOut { phase, limit, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((phase, limit), (Phase::Tls, 15 * SECOND));
        // After the deadline, no new phase gets any time.
        let error = time_out(&deadline, Phase::Handshake, SECOND).await;
        assert!(
            matches!(error, DialError::TimedOut { limit, .. } if limit == 15 * SECOND),
            "{error}"
        );
    }
}
