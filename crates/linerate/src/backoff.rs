//! When to reconnect after a connection was lost (RFC 6455 §7.2.3).

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Determines how long to wait between connection attempts: a random time whose upper bound doubles
/// with each failed attempt.
///
/// A server that restarts loses all of its clients at once; random delays keep them from
/// reconnecting all at once. RFC 6455 §7.2.3 asks clients to do this.
///
/// ```no_run
/// # async fn f() -> linerate::Result<()> {
/// let client = linerate::Client::new();
/// let mut backoff = linerate::Backoff::new();
/// loop {
///     match client.connect("wss://example.com/feed").await {
///         Ok(mut ws) => {
///             backoff.connected();
///             // Subscribe again here. A lost connection shows as an error or as `None`.
///             while let Ok(Some(message)) = ws.recv().await {
///                 println!("{message:?}");
///             }
///         }
///         Err(error) if !error.is_transient() => return Err(error),
///         Err(error) => eprintln!("{error}"),
///     }
///     backoff.wait().await?;
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    stable_after: Duration,
    attempts_max: u32,
    /// Attempts since the last stable connection.
    attempts: u32,
    connected: Option<Instant>,
}

/// The error returned when the maximum number of connection attempts has been made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("gave up after {attempts_max} attempts to connect")]
#[non_exhaustive]
pub struct AttemptsExhausted {
    /// The maximum number of attempts.
    pub attempts_max: u32,
}

impl Backoff {
    /// Creates a policy with the defaults: the first wait takes at most one second, later ones at
    /// most one minute, and the number of attempts is unlimited.
    pub fn new() -> Self {
        Self {
            first: Duration::from_secs(1),
            max: Duration::from_secs(60),
            stable_after: Duration::from_secs(5),
            attempts_max: u32::MAX,
            attempts: 0,
            connected: None,
        }
    }

    /// Sets the upper bound of the first wait. Default: 1 s.
    pub fn with_first(mut self, first: Duration) -> Self {
        self.first = first;
        self
    }

    /// Sets the upper bound of every wait. Default: 60 s.
    pub fn with_max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// Sets how long a connection must last before the waits start over at the first bound. Without
    /// this, clients would flood a server that accepts connections only to drop them. Default: 5 s.
    pub fn with_stable_after(mut self, stable_after: Duration) -> Self {
        self.stable_after = stable_after;
        self
    }

    /// Sets how many waits are allowed without a stable connection in between; after that, waiting
    /// returns an error. Default: no limit, because a client that gives up has to be restarted by
    /// hand.
    pub fn with_attempts_max(mut self, attempts_max: u32) -> Self {
        self.attempts_max = attempts_max;
        self
    }

    /// Records that a connection was opened now.
    pub fn connected(&mut self) {
        self.connected = Some(Instant::now());
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// The maximum number of attempts has been made.
    ///
    /// # Cancel safety
    /// Dropping the future uses up an attempt, unless it was never polled.
    pub async fn wait(&mut self) -> Result<(), AttemptsExhausted> {
        sleep(self.next_delay()?).await;
        Ok(())
    }

    /// Returns how long to wait before the next attempt, for callers that do the waiting
    /// themselves.
    ///
    /// # Errors
    /// The maximum number of attempts has been made.
    pub fn next_delay(&mut self) -> Result<Duration, AttemptsExhausted> {
        let connected = self.connected.take();
        if connected.is_some_and(|connected| connected.elapsed() >= self.stable_after) {
            self.attempts = 0;
        }
        self.delay(rand::random())
    }

    /// Returns the delay for a random number from 0 (inclusive) to 1 (exclusive).
    fn delay(&mut self, random: f64) -> Result<Duration, AttemptsExhausted> {
        let attempts_max = self.attempts_max;
        if self.attempts >= attempts_max {
            return Err(AttemptsExhausted { attempts_max });
        }
        let doubled = 1_u32.checked_shl(self.attempts);
        let bound = doubled.and_then(|doubled| self.first.checked_mul(doubled));
        self.attempts = self.attempts.saturating_add(1);
        Ok(bound.unwrap_or(self.max).min(self.max).mul_f64(random))
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, pin::Pin, task::Poll};

    use rand::{Rng, SeedableRng, rngs::SmallRng};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn bounds_double_up_to_the_longest_and_do_not_overflow() {
        let mut backoff = Backoff::new();
        for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(backoff.delay(1.0), Ok(expected * SECOND));
        }
        for _ in 0..100 {
            assert_eq!(backoff.delay(0.5), Ok(30 * SECOND));
        }
        let mut backoff = Backoff::new().with_first(Duration::MAX);
        for _ in 0..100 {
            assert_eq!(backoff.delay(1.0), Ok(60 * SECOND));
        }
    }

    #[test]
    fn attempts_may_have_an_end() {
        let mut backoff = Backoff::new().with_attempts_max(2);
        assert!(backoff.next_delay().is_ok() && backoff.next_delay().is_ok());
        let error = backoff.next_delay().unwrap_err();
        assert_eq!(error, AttemptsExhausted { attempts_max: 2 });
        assert_eq!(error.to_string(), "gave up after 2 attempts to connect");
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_that_lasts_makes_the_next_wait_short() {
        let mut backoff = Backoff::new().with_attempts_max(2);
        for _ in 0..2 {
            backoff.connected();
            sleep(4 * SECOND).await;
            backoff.wait().await.unwrap();
        }
        assert!(backoff.wait().await.is_err());
        for _ in 0..10 {
            backoff.connected();
            sleep(5 * SECOND).await;
            let begun = Instant::now();
            backoff.wait().await.unwrap();
            assert!(begun.elapsed() <= SECOND + Duration::from_millis(1));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_that_is_dropped_after_any_number_of_polls_has_cost_one_attempt() {
        for polls in 0..5 {
            let mut backoff = Backoff::new().with_attempts_max(2);
            for _ in 0..2 {
                let mut waiting = Box::pin(backoff.wait());
                for _ in 0..polls {
                    if poll_once(&mut waiting).await.is_ready() {
                        break;
                    }
                }
            }
            assert_eq!(backoff.wait().await.is_err(), polls > 0, "{polls} polls");
        }
    }

    async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
    }

    /// A server that restarts loses 100,000 clients, then accepts 10,000 connections per second and
    /// refuses the others. Time advances in steps of a tenth of a second.
    #[test]
    fn c07_a_hundred_thousand_clients_do_not_come_back_at_once() {
        const CLIENTS: u32 = 100_000;
        const ACCEPTED_A_STEP: usize = 1_000;
        const STEPS_A_SECOND: f64 = 10.0;
        let mut random = SmallRng::seed_from_u64(7);
        let mut steps: Vec<Vec<Backoff>> = vec![Vec::new(); 6_000];
        let mut wait = |steps: &mut Vec<Vec<Backoff>>, now: usize, mut backoff: Backoff| {
            let unit = f64::from(random.next_u32()) / f64::from(u32::MAX);
            let delay = backoff.delay(unit).unwrap().as_secs_f64();
            let at = now + 1 + (delay * STEPS_A_SECOND) as usize;
            steps[at].push(backoff);
        };
        for _ in 0..CLIENTS {
            wait(&mut steps, 0, Backoff::new());
        }
        let (mut back, mut attempts, mut last) = (0, 0, 0);
        for now in 0..steps.len() {
            let mut coming = std::mem::take(&mut steps[now]);
            // In the first second, each step has a tenth of the clients, plus those that were
            // refused.
            let crowd_max = if now <= 11 { 20_000 } else { 8_000 };
            assert!(
                coming.len() < crowd_max,
                "{} after {now} steps",
                coming.len()
            );
            attempts += coming.len();
            let refused = coming.split_off(coming.len().min(ACCEPTED_A_STEP));
            back += coming.len();
            last = if coming.is_empty() { last } else { now };
            for backoff in refused {
                wait(&mut steps, now, backoff);
            }
        }
        assert_eq!(back, CLIENTS as usize);
        assert!(attempts < 5 * CLIENTS as usize, "{attempts} attempts");
        assert!(last < 900, "the last came after {last} steps");
    }
}
