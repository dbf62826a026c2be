//! When to reconnect after a connection was lost (RFC 6455 §7.2.3).

use std::{fmt, ops::ControlFlow, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{Closed, attempts::AttemptsExhausted, retry::Retry};

/// Determines whether to connect again, and how long to wait before that: a random time whose upper
/// bound doubles with each failed attempt.
///
/// A server that restarts loses all of its clients at once; random delays keep them from
/// reconnecting all at once. RFC 6455 §7.2.3 asks clients to do this.
///
/// ```no_run
/// use std::ops::ControlFlow;
///
/// use linerate::{Backoff, Client, CloseCode, Closed, Result};
///
/// async fn follow(client: &Client, backoff: &mut Backoff) -> Result<Closed> {
///     let mut ws = client.connect("wss://example.com/feed").await?;
///     backoff.connected();
///     // Subscribe again here.
///     while let Some(message) = ws.recv().await? {
///         println!("{message:?}");
///     }
///     ws.close(CloseCode::NORMAL, "").await // waits for the end, and returns the server's code
/// }
///
/// # async fn f() -> linerate::Result<()> {
/// let (client, mut backoff) = (Client::new(), Backoff::new());
/// loop {
///     let end = follow(&client, &mut backoff).await;
///     if let ControlFlow::Break(closed) = backoff.wait_after(end).await? {
///         println!("{closed}"); // for instance with code 1000 or 1008
///         return Ok(());
///     }
/// }
/// # }
/// ```
///
/// # When to connect again
///
/// [`wait_after`](Self::wait_after), [`Closed::is_transient`] and
/// [`Error::is_transient`](crate::Error::is_transient) follow this table;
/// [`with_retry_if`](Self::with_retry_if) replaces its rows about close codes:
///
#[doc = include_str!("retry.md")]
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    stable_after: Duration,
    retry_after_max: Duration,
    attempts_max: u32,
    retry_if: Option<RetryIf>,
    /// Attempts since the last stable connection.
    attempts: u32,
    connected: Option<Instant>,
}

/// The application's decision whether to connect again.
#[derive(Clone)]
struct RetryIf(Arc<dyn Fn(&Closed) -> bool + Send + Sync>);

impl Backoff {
    /// Creates a policy with the defaults: the first wait takes at most one second, later ones at
    /// most one minute, and the number of attempts is unlimited.
    pub fn new() -> Self {
        Self {
            first: Duration::from_secs(1),
            max: Duration::from_secs(60),
            stable_after: Duration::from_secs(5),
            retry_after_max: Duration::from_secs(300),
            attempts_max: u32::MAX,
            retry_if: None,
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

    /// Sets the longest wait that a server can ask for with a `Retry-After` header. Default: 5
    /// minutes.
    pub fn with_retry_after_max(mut self, retry_after_max: Duration) -> Self {
        self.retry_after_max = retry_after_max;
        self
    }

    /// Sets whether to connect again after a connection that was open, instead of the
    /// [table](Self#when-to-connect-again), which [`Closed::is_transient`] follows.
    ///
    /// ```
    /// // This server uses 4000 for tokens that have expired.
    /// let backoff = linerate::Backoff::new()
    ///     .with_retry_if(|closed| closed.code != 4000 && closed.is_transient());
    /// ```
    pub fn with_retry_if(
        mut self,
        retry_if: impl Fn(&Closed) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.retry_if = Some(RetryIf(Arc::new(retry_if)));
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

    /// Waits before the next attempt if another attempt makes sense after this end of a connection
    /// or an attempt. Returns `Break` if the connection was closed for good.
    ///
    /// After close code 1013, the wait takes up to the [longest bound](Self::with_max). A
    /// `Retry-After` header is added to the wait, up to its [limit](Self::with_retry_after_max).
    ///
    /// # Errors
    /// The error that is passed, if another attempt would end the same way, or
    /// [`AttemptsExhausted`].
    ///
    /// # Cancel safety
    /// Same as for [`wait`](Self::wait).
    pub async fn wait_after(
        &mut self,
        end: crate::Result<Closed>,
    ) -> crate::Result<ControlFlow<Closed>> {
        match self.next_delay_after(end)? {
            ControlFlow::Break(closed) => Ok(ControlFlow::Break(closed)),
            ControlFlow::Continue(delay) => {
                sleep(delay).await;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Returns how long [`wait_after`](Self::wait_after) would wait, for callers that do the
    /// waiting themselves.
    ///
    /// # Errors
    /// Same as for [`wait_after`](Self::wait_after).
    pub fn next_delay_after(
        &mut self,
        end: crate::Result<Closed>,
    ) -> crate::Result<ControlFlow<Closed, Duration>> {
        let retry = match &end {
            Ok(closed) => self.retry_after_close(closed),
            Err(error) => error.retry(),
        };
        let retry_after = match end {
            Ok(closed) if retry == Retry::Never => return Ok(ControlFlow::Break(closed)),
            Err(error) if retry == Retry::Never => return Err(error),
            Ok(_) => None,
            Err(error) => error.retry_after(),
        };
        let first = match retry {
            Retry::Later => self.max,
            Retry::Never | Retry::Soon => self.first,
        };
        let delay = self.delay_from(first)?;
        let retry_after = retry_after.unwrap_or_default().min(self.retry_after_max);
        Ok(ControlFlow::Continue(retry_after.saturating_add(delay)))
    }

    fn retry_after_close(&self, closed: &Closed) -> Retry {
        let retry = Retry::after_code(closed.code);
        match &self.retry_if {
            None => retry,
            Some(RetryIf(retry_if)) if !retry_if(closed) => Retry::Never,
            Some(_) if retry.is_never() => Retry::Soon,
            Some(_) => retry,
        }
    }

    /// Returns how long to wait before the next attempt, for callers that do the waiting
    /// themselves.
    ///
    /// # Errors
    /// The maximum number of attempts has been made.
    pub fn next_delay(&mut self) -> Result<Duration, AttemptsExhausted> {
        self.delay_from(self.first)
    }

    /// Returns the next delay, with `first` as the bound before it is doubled.
    fn delay_from(&mut self, first: Duration) -> Result<Duration, AttemptsExhausted> {
        let connected = self.connected.take();
        if connected.is_some_and(|connected| connected.elapsed() >= self.stable_after) {
            self.attempts = 0;
        }
        self.delay(first, rand::random())
    }

    /// Returns the delay for a random number from 0 (inclusive) to 1 (exclusive).
    fn delay(&mut self, first: Duration, random: f64) -> Result<Duration, AttemptsExhausted> {
        let attempts_max = self.attempts_max;
        if self.attempts >= attempts_max {
            return Err(AttemptsExhausted { attempts_max });
        }
        let doubled = 1_u32.checked_shl(self.attempts);
        let bound = doubled.and_then(|doubled| first.checked_mul(doubled));
        self.attempts = self.attempts.saturating_add(1);
        Ok(bound.unwrap_or(self.max).min(self.max).mul_f64(random))
    }
}

impl fmt::Debug for RetryIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RetryIf")
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
            assert_eq!(backoff.delay(backoff.first, 1.0), Ok(expected * SECOND));
        }
        for _ in 0..100 {
            assert_eq!(backoff.delay(backoff.first, 0.5), Ok(30 * SECOND));
        }
        let mut backoff = Backoff::new().with_first(Duration::MAX);
        for _ in 0..100 {
            assert_eq!(backoff.delay(backoff.first, 1.0), Ok(60 * SECOND));
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
                let mut waiting = Box::pin(backoff.wait_after(closed(1001)));
                for _ in 0..polls {
                    if poll_once(&mut waiting).await.is_ready() {
                        break;
                    }
                }
            }
            assert_eq!(backoff.wait().await.is_err(), polls > 0, "{polls} polls");
        }
    }

    fn closed(code: u16) -> crate::Result<Closed> {
        let frame = linerate_proto::CloseFrame {
            code: linerate_proto::CloseCode::new(code),
            reason: "",
        };
        Ok(Closed::new(Some(frame.into()), None))
    }

    #[test]
    fn ends_are_sorted_into_those_to_retry_soon_later_and_never() {
        let mut backoff = Backoff::new().with_max(100 * SECOND);
        let mut longest = [Duration::ZERO; 2];
        for _ in 0..100 {
            for (code, longest) in [1001, 1013].into_iter().zip(&mut longest) {
                backoff.attempts = 0;
                let delay = backoff.next_delay_after(closed(code)).unwrap();
                *longest = delay.continue_value().unwrap().max(*longest);
            }
        }
        assert!(longest[0] <= SECOND, "{longest:?}");
        assert!(longest[1] > 10 * SECOND && longest[1] <= 100 * SECOND);
        for code in [1000, 1008] {
            let end = backoff.next_delay_after(closed(code)).unwrap();
            assert_eq!(end, ControlFlow::Break(closed(code).unwrap()));
        }
        let error = backoff.next_delay_after(Err(crate::Error::Refused { status: 403 }));
        assert!(matches!(error, Err(crate::Error::Refused { status: 403 })));
        let end = backoff.next_delay_after(Err(crate::Error::Abnormal));
        assert!(end.unwrap().is_continue());
        backoff.attempts_max = 0;
        let error = backoff.next_delay_after(closed(1001)).unwrap_err();
        assert!(matches!(error, crate::Error::AttemptsExhausted(_)));
    }

    #[test]
    fn the_application_decides_about_codes() {
        let mut backoff = Backoff::new().with_retry_if(|closed| closed.code == 1008);
        for (code, is_retried) in [(1008, true), (1001, false), (4000, false)] {
            let end = backoff.next_delay_after(closed(code)).unwrap();
            assert_eq!(end.is_continue(), is_retried, "{code}");
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
            let delay = backoff.delay(backoff.first, unit).unwrap().as_secs_f64();
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
