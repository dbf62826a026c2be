//! Happy Eyeballs: connecting to whichever of several addresses answers first (RFC 8305).
//!
//! One resolver call returns the addresses of both families, so there is no need to wait for a
//! second answer (§3). A client with a broken route for one family then loses a quarter of a second
//! instead of the minutes until TCP gives up.

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::Attempt;

/// How long to wait for an answer before trying the next address in parallel (§5: "a recommended
/// value for a default delay is 250 milliseconds").
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The maximum number of addresses to try, because a name may resolve to any number.
const ATTEMPTS_MAX: usize = 16;

/// Returns the addresses in the order in which to try them: alternating between the families,
/// beginning with that of the first address (§4).
pub(super) fn order(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let Some(first) = addresses.first() else {
        return VecDeque::new();
    };
    let first_is_ipv6 = first.is_ipv6();
    let (preferred, others): (Vec<_>, Vec<_>) = addresses
        .into_iter()
        .partition(|address| address.is_ipv6() == first_is_ipv6);
    let mut others = others.into_iter();
    let mut ordered = VecDeque::new();
    for address in preferred {
        ordered.push_back(address);
        ordered.extend(others.next());
    }
    ordered.extend(others);
    ordered.truncate(ATTEMPTS_MAX);
    ordered
}

/// Connects to the addresses one after another, starting each attempt [`ATTEMPT_DELAY`] after the
/// previous one, or as soon as an attempt fails. The first connection wins, and the other attempts
/// are cancelled.
///
/// Returns `None` if all attempts failed. Each attempt is recorded in `attempts` when it begins, so
/// that the record is complete if the future is dropped.
pub(super) async fn race<T, F>(
    addresses: VecDeque<SocketAddr>,
    connect: impl FnMut(SocketAddr) -> F,
    attempts: &mut Vec<Attempt>,
) -> Option<T>
where
    F: Future<Output = io::Result<T>>,
{
    let mut race = Race {
        waiting: addresses,
        running: Vec::new(),
        connect,
        attempts,
    };
    let mut delay = pin!(sleep(ATTEMPT_DELAY));
    poll_fn(|cx| {
        loop {
            let has_failed = match race.poll_running(cx) {
                Poll::Ready(Some(connection)) => return Poll::Ready(Some(connection)),
                Poll::Ready(None) => true,
                Poll::Pending => false,
            };
            if race.waiting.is_empty() && !race.running.is_empty() {
                return Poll::Pending;
            }
            let is_due =
                has_failed || race.running.is_empty() || delay.as_mut().poll(cx).is_ready();
            if !is_due {
                return Poll::Pending;
            }
            if !race.start_next() {
                return Poll::Ready(None);
            }
            delay.as_mut().reset(Instant::now() + ATTEMPT_DELAY);
        }
    })
    .await
}

/// Connection attempts that run in parallel.
struct Race<'a, F, C> {
    waiting: VecDeque<SocketAddr>,
    /// Each attempt with its index in `attempts`.
    running: Vec<(usize, Pin<Box<F>>)>,
    connect: C,
    attempts: &'a mut Vec<Attempt>,
}

impl<T, F, C> Race<'_, F, C>
where
    F: Future<Output = io::Result<T>>,
    C: FnMut(SocketAddr) -> F,
{
    /// Starts an attempt with the next address; returns whether there was one.
    fn start_next(&mut self) -> bool {
        let Some(address) = self.waiting.pop_front() else {
            return false;
        };
        let attempt = Box::pin((self.connect)(address));
        self.running.push((self.attempts.len(), attempt));
        self.attempts.push(Attempt {
            address,
            error: None,
        });
        true
    }

    /// Returns a connection, or `None` if an attempt has failed.
    fn poll_running(&mut self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut has_failed = false;
        let mut at = 0;
        while let Some((index, attempt)) = self.running.get_mut(at) {
            match attempt.as_mut().poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(Ok(connection)) => return Poll::Ready(Some(connection)),
                Poll::Ready(Err(error)) => {
                    self.attempts[*index].error = Some(error);
                    drop(self.running.remove(at));
                    has_failed = true;
                }
            }
        }
        if has_failed {
            Poll::Ready(None)
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::RefCell, future::pending};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn addresses(texts: &[&str]) -> VecDeque<SocketAddr> {
        texts.iter().map(|text| address(text)).collect()
    }

    #[test]
    fn families_take_turns_beginning_with_that_of_the_first_address() {
        let resolved = [
            "[::1]:80",
            "[::2]:80",
            "[::3]:80",
            "127.0.0.1:80",
            "127.0.0.2:80",
        ];
        let expected = [
            "[::1]:80",
            "127.0.0.1:80",
            "[::2]:80",
            "127.0.0.2:80",
            "[::3]:80",
        ];
        assert_eq!(order(addresses(&resolved).into()), addresses(&expected));
        let resolved = ["127.0.0.1:80", "[::1]:80", "[::2]:80"];
        assert_eq!(order(addresses(&resolved).into()), addresses(&resolved));
        assert_eq!(order(Vec::new()), VecDeque::new());
    }

    #[test]
    fn no_more_addresses_are_tried_than_the_limit() {
        for (resolved, tried) in [(16, 16), (17, 16), (10_000, 16)] {
            let addresses = vec![address("127.0.0.1:80"); resolved];
            assert_eq!(order(addresses).len(), tried);
        }
    }

    /// Races addresses whose ports determine how they answer; returns the winner's port and when
    /// each attempt began, in milliseconds. Port 1 never answers, port 2 refuses, and any other
    /// port connects after that number of milliseconds.
    async fn raced(texts: &[&str]) -> (Result<u16, Vec<String>>, Vec<(u16, u128)>) {
        let start = Instant::now();
        let begun = RefCell::new(Vec::new());
        let connect = |address: SocketAddr| {
            let port = address.port();
            begun.borrow_mut().push((port, start.elapsed().as_millis()));
            async move {
                match port {
                    1 => pending().await,
                    2 => Err(io::ErrorKind::ConnectionRefused.into()),
                    _ => {
                        sleep(Duration::from_millis(port.into())).await;
                        Ok(port)
                    }
                }
            }
        };
        let mut attempts = Vec::new();
        let raced = race(addresses(texts), connect, &mut attempts);
        let won = tokio::time::timeout(Duration::from_secs(1), raced).await;
        let attempts = attempts.iter().map(ToString::to_string).collect();
        let won = won.ok().flatten().ok_or(attempts);
        (won, begun.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_answers_at_once_is_the_only_one_tried() {
        let (won, begun) = raced(&["[::1]:100", "127.0.0.1:101"]).await;
        assert_eq!(won, Ok(100));
        assert_eq!(begun, [(100, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_does_not_answer_costs_a_quarter_of_a_second() {
        let (won, begun) = raced(&["[::1]:1", "127.0.0.1:1", "[::2]:10"]).await;
        assert_eq!(won, Ok(10));
        assert_eq!(begun, [(1, 0), (1, 250), (10, 500)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_costs_nothing() {
        let (won, begun) = raced(&["[::1]:2", "127.0.0.1:20"]).await;
        assert_eq!(won, Ok(20));
        assert_eq!(begun, [(2, 0), (20, 0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_early_attempt_may_still_win_when_a_later_one_runs() {
        let (won, begun) = raced(&["[::1]:400", "127.0.0.1:800"]).await;
        assert_eq!(won, Ok(400));
        assert_eq!(begun, [(400, 0), (800, 250)]);
    }

    #[tokio::test(start_paused = true)]
    async fn when_no_attempt_succeeds_all_are_recorded() {
        let (won, begun) = raced(&["[::1]:2", "127.0.0.1:1", "[::2]:2"]).await;
        let attempts = won.unwrap_err();
        assert_eq!(
            attempts,
            [
                "[::1]:2: connection refused",
                "127.0.0.1:1: no answer",
                "[::2]:2: connection refused"
            ]
        );
        assert_eq!(begun.len(), 3);
    }
}
