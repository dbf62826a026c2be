//! How long each phase of opening a connection may take.

use std::{fmt, time::Duration};

use tokio::time::{Instant, timeout};

use super::DialError;

/// A phase of opening a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// Connecting to an address, of which there may be several to try.
    Connect,
    /// The opening handshake: our request and the server's response.
    Handshake,
    /// Asking a proxy for the way to the server.
    Proxy,
    /// Resolving a name to addresses.
    Resolve,
    /// Agreeing on TLS.
    Tls,
}

/// How long each phase of opening a connection may take, and all of them together.
///
/// How long the opening handshake itself may take is an
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
    /// For resolving a name. Default: 5 s, which is the time after which the system asks the next
    /// name server.
    pub resolve: Duration,
    /// For connecting to the first address that answers. Default: 10 s, time for three lost SYNs.
    pub connect: Duration,
    /// For what a proxy is asked, TLS with it included. Default: 15 s, because it connects meanwhile.
    pub proxy: Duration,
    /// For agreeing on TLS. Default: 10 s.
    pub tls: Duration,
    /// For everything from the first name to the end of the opening handshake. Default: 30 s.
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

/// The deadline of opening one connection, which also ends each of its phases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    started: Instant,
    total: Duration,
}

impl Deadline {
    /// Starts the time.
    pub(crate) fn start(total: Duration) -> Self {
        Self {
            started: Instant::now(),
            total,
        }
    }

    /// Waits for `future`, for `limit` at most and never beyond the deadline.
    ///
    /// # Errors
    /// It was not ready in time.
    pub(crate) async fn keep<F: Future>(
        &self,
        phase: Phase,
        limit: Duration,
        future: F,
    ) -> Result<F::Output, DialError> {
        let begun = Instant::now();
        let left = self.total.saturating_sub(begun - self.started);
        timeout(limit.min(left), future).await.map_err(|_| {
            let (since, limit) = if left < limit {
                (self.started, self.total)
            } else {
                (begun, limit)
            };
            DialError::TimedOut {
                phase,
                elapsed: since.elapsed(),
                limit,
            }
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Handshake => "the opening handshake",
            Self::Proxy => "asking the proxy",
            Self::Resolve => "resolving the name",
            Self::Tls => "agreeing on TLS",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn time_out(deadline: Deadline, phase: Phase, limit: Duration) -> DialError {
        deadline
            .keep(phase, limit, pending::<()>())
            .await
            .unwrap_err()
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_that_takes_too_long_is_named_with_its_time_and_limit() {
        let deadline = Deadline::start(30 * SECOND);
        let error = time_out(deadline, Phase::Tls, 10 * SECOND).await;
        let DialError::TimedOut {
            phase,
            elapsed,
            limit,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((phase, limit), (Phase::Tls, 10 * SECOND));
        // Timers of tokio have a resolution of a millisecond.
        assert_eq!(elapsed.as_secs(), 10);
        assert!(
            error
                .to_string()
                .starts_with("gave up agreeing on TLS after 10")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_ends_phases_that_have_time_left() {
        let deadline = Deadline::start(15 * SECOND);
        time_out(deadline, Phase::Connect, 10 * SECOND).await;
        let error = time_out(deadline, Phase::Tls, 10 * SECOND).await;
        let DialError::TimedOut { phase, limit, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((phase, limit), (Phase::Tls, 15 * SECOND));
        // Nothing begins behind it.
        let error = time_out(deadline, Phase::Handshake, SECOND).await;
        assert!(
            matches!(error, DialError::TimedOut { limit, .. } if limit == 15 * SECOND),
            "{error}"
        );
    }
}
