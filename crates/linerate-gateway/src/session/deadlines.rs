//! Deadlines of a session: pings, pongs and token expiry.

use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::config::ClientOptions;

/// If a deadline is noticed this much too late, the process was suspended, and the client's answer
/// may be waiting unread.
const LATE: Duration = Duration::from_secs(1);

/// After such a delay, how long to read input before the client is considered unresponsive.
const GRACE: Duration = Duration::from_secs(2);

/// The deadlines of a session.
#[derive(Debug)]
pub(super) struct Deadlines {
    /// In milliseconds, like the next one.
    ping_interval: u32,
    pong_timeout: u32,
    /// When the client must have connected or, once it has, have answered the last ping.
    answer: Option<Instant>,
    /// `None` until the client has connected.
    ping: Option<Instant>,
    expiry: Option<Instant>,
}

/// A deadline that has passed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// The client did not send its first command in time.
    Connect,
    /// The client did not present a newer token in time.
    Expiry,
    /// It is time to send a ping.
    Ping,
    /// The client did not answer a ping in time.
    Pong,
}

/// The time left until each deadline.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct PortableDeadlines {
    #[serde(skip_serializing_if = "is_default")]
    pub(super) connect: Option<Duration>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) ping: Option<Duration>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) pong: Option<Duration>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) expiry: Option<Duration>,
    #[serde(skip_serializing_if = "is_default")]
    pub(super) subscription_expiry: Option<Duration>,
}

/// Returns whether a field is left out when it is written.
pub(super) fn is_default<T: Default + PartialEq>(field: &T) -> bool {
    *field == T::default()
}

impl Deadlines {
    /// Creates the deadlines of a client that has not connected yet. `heartbeat` is how long it may
    /// be silent if it sends signs of life on its own: instead of sending a ping, the server then
    /// begins to wait for the next one.
    pub(super) fn new(options: &ClientOptions, heartbeat: Option<Duration>, now: Instant) -> Self {
        let mut deadlines = Self {
            ping_interval: milliseconds(options.ping_interval),
            pong_timeout: milliseconds(options.pong_timeout),
            answer: Some(now + options.connect_timeout),
            ping: None,
            expiry: None,
        };
        if let Some(heartbeat) = heartbeat {
            deadlines.limit_silence(heartbeat);
        }
        deadlines
    }

    /// Sets how long a client may be silent that sends signs of life on its own. To be called
    /// before the client has connected.
    pub(super) fn limit_silence(&mut self, timeout: Duration) {
        self.ping_interval = milliseconds(timeout / 2);
        self.pong_timeout = milliseconds(timeout);
    }

    /// Sets when the client must have sent its connect command.
    pub(super) fn expect_connect(&mut self, at: Instant) {
        self.answer = Some(at);
    }

    /// Marks the client as connected. The first ping is sent after `part` of the interval, clamped
    /// to 0.1 to 1, so that clients that connected together are not pinged together.
    pub(super) fn connected(&mut self, now: Instant, part: f32) {
        self.answer = None;
        let interval = Duration::from_millis(self.ping_interval.into());
        self.ping = Some(now + interval.mul_f32(part.clamp(0.1, 1.0)));
    }

    /// Sets when the session expires unless its token is refreshed.
    pub(super) fn set_expiry(&mut self, at: Option<Instant>) {
        self.expiry = at;
    }

    /// Records the client's answer to a ping.
    pub(super) fn pong(&mut self) {
        if self.ping.is_some() {
            self.answer = None;
        }
    }

    /// Returns the next deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        let all = [self.answer, self.ping, self.expiry];
        all.into_iter().flatten().min()
    }

    /// Returns the time left until each deadline.
    pub(super) fn export(&self, now: Instant) -> PortableDeadlines {
        let left = |at: Option<Instant>| at.map(|at| at.saturating_duration_since(now));
        let (connect, pong) = match self.ping {
            None => (self.answer, None),
            Some(_) => (None, self.answer),
        };
        PortableDeadlines {
            connect: left(connect),
            ping: left(self.ping),
            pong: left(pong),
            expiry: left(self.expiry),
            subscription_expiry: None,
        }
    }

    /// Continues the deadlines of another process.
    pub(super) fn restore(&mut self, now: Instant, left: PortableDeadlines) {
        let at = |left: Option<Duration>| now.checked_add(left?);
        self.answer = at(left.connect.or(left.pong));
        self.ping = at(left.ping);
        self.expiry = at(left.expiry);
    }

    /// Returns a deadline that has passed and clears it. A ping schedules the next one.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Due> {
        if let Some(answer) = &mut self.answer
            && now.saturating_duration_since(*answer) > LATE
        {
            *answer = now + GRACE;
        }
        let is_due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.answer) {
            return Some(match self.ping {
                None => Due::Connect,
                Some(_) => Due::Pong,
            });
        }
        if is_due(&mut self.expiry) {
            return Some(Due::Expiry);
        }
        if is_due(&mut self.ping) {
            let after = |milliseconds: u32| now + Duration::from_millis(milliseconds.into());
            self.ping = Some(after(self.ping_interval));
            self.answer.get_or_insert(after(self.pong_timeout));
            return Some(Due::Ping);
        }
        None
    }
}

/// Returns a duration in milliseconds, at most 49 days.
fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

/// Returns the time left until `seconds` since the Unix epoch; zero if that time has passed.
pub(super) fn until(seconds: u64) -> Duration {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    let left = at.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    // A time that the system clock cannot represent counts as never.
    left.unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const SECOND: Duration = Duration::from_secs(1);

    fn connected(start: Instant) -> Deadlines {
        let mut deadlines = Deadlines::new(&Config::default().client, None, start);
        deadlines.connected(start, 1.0);
        deadlines
    }

    #[test]
    fn the_first_command_is_due_once() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(&Config::default().client, None, start);
        assert_eq!(deadlines.next(), Some(start + 10 * SECOND));
        assert_eq!(deadlines.poll(start + 9 * SECOND), None);
        assert_eq!(deadlines.poll(start + 10 * SECOND), Some(Due::Connect));
        assert_eq!(deadlines.poll(start + 11 * SECOND), None);
    }

    #[test]
    fn a_ping_is_to_be_answered_in_time() {
        let start = Instant::now();
        let mut deadlines = connected(start);
        assert_eq!(deadlines.poll(start + 25 * SECOND), Some(Due::Ping));
        assert_eq!(deadlines.next(), Some(start + 33 * SECOND));
        assert_eq!(deadlines.poll(start + 33 * SECOND), Some(Due::Pong));
    }

    #[test]
    fn after_a_stall_of_our_own_a_client_is_read_before_it_is_judged() {
        let start = Instant::now();
        let mut deadlines = connected(start);
        assert_eq!(deadlines.poll(start + 25 * SECOND), Some(Due::Ping));
        let woken = start + 25 * SECOND + 14 * SECOND;
        assert_eq!(deadlines.poll(woken), None);
        assert_eq!(deadlines.poll(woken + GRACE), Some(Due::Pong));
        let mut deadlines = Deadlines::new(&Config::default().client, None, start);
        assert_eq!(deadlines.poll(start + 14 * SECOND), None);
        let judged = start + 14 * SECOND + GRACE;
        assert_eq!(deadlines.poll(judged), Some(Due::Connect));
    }

    #[test]
    fn an_answered_ping_is_followed_by_the_next() {
        let start = Instant::now();
        let mut deadlines = connected(start);
        for turn in 1..5 {
            let now = start + turn * 25 * SECOND;
            assert_eq!(deadlines.next(), Some(now));
            assert_eq!(deadlines.poll(now), Some(Due::Ping));
            deadlines.pong();
        }
    }

    #[test]
    fn a_client_with_heartbeats_may_be_silent_for_one_to_one_and_a_half_times_as_long() {
        let start = Instant::now();
        let heartbeat = Some(60 * SECOND);
        let mut deadlines = Deadlines::new(&Config::default().client, heartbeat, start);
        deadlines.connected(start, 1.0);
        for at in [30, 60, 89] {
            deadlines.pong();
            assert_eq!(deadlines.poll(start + (at - 1) * SECOND), None);
            let due = deadlines.poll(start + at * SECOND);
            assert_eq!(due, (at < 89).then_some(Due::Ping));
        }
        // The last sign of life came at 61 s, and the next one is waited for from 90 s on.
        assert_eq!(deadlines.poll(start + 90 * SECOND), Some(Due::Ping));
        assert_eq!(deadlines.poll(start + 120 * SECOND), Some(Due::Ping));
        assert_eq!(deadlines.poll(start + 150 * SECOND), Some(Due::Pong));
    }

    #[test]
    fn first_pings_are_spread() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(&Config::default().client, None, start);
        deadlines.connected(start, 0.5);
        assert_eq!(deadlines.next(), Some(start + 25 * SECOND / 2));
    }

    #[test]
    fn a_token_of_all_eternity_never_ends() {
        assert_eq!(Instant::now().checked_add(until(u64::MAX)), None);
        assert_eq!(until(0), Duration::ZERO);
    }
}
