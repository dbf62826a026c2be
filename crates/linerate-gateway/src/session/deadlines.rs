//! When something is due in a session: pings, answers to them, tokens that end.

use std::time::{Duration, Instant, SystemTime};

use crate::config::ClientOptions;

/// If something is noticed so much later than it was due, the process was asleep, and the client's answer may be
/// unread.
const LATE: Duration = Duration::from_secs(1);

/// How long it is read then before a client is judged.
const GRACE: Duration = Duration::from_secs(2);

/// What is due in a session, and when.
#[derive(Debug)]
pub(super) struct Deadlines {
    ping_interval: Duration,
    pong_timeout: Duration,
    connect: Option<Instant>,
    ping: Option<Instant>,
    pong: Option<Instant>,
    expiry: Option<Instant>,
}

/// Something that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// The client's first command.
    Connect,
    /// A newer token.
    Expiry,
    /// A ping of ours.
    Ping,
    /// The client's answer to it.
    Pong,
}

impl Deadlines {
    pub(super) fn new(options: &ClientOptions, now: Instant) -> Self {
        Self {
            ping_interval: options.ping_interval,
            pong_timeout: options.pong_timeout,
            connect: Some(now + options.connect_timeout),
            ping: None,
            pong: None,
            expiry: None,
        }
    }

    /// Takes notice that the client is connected. The first ping comes after a `part` of the interval, from 0 to 1,
    /// so that clients that came together are not pinged together.
    pub(super) fn connected(&mut self, now: Instant, part: f32) {
        self.connect = None;
        self.ping = Some(now + self.ping_interval.mul_f32(part.clamp(0.1, 1.0)));
    }

    /// Sets when the session ends for want of a newer token.
    pub(super) fn set_expiry(&mut self, at: Option<Instant>) {
        self.expiry = at;
    }

    /// Takes notice of an answer to a ping.
    pub(super) fn pong(&mut self) {
        self.pong = None;
    }

    /// Returns the next time when something is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let all = [self.connect, self.ping, self.pong, self.expiry];
        all.into_iter().flatten().min()
    }

    /// Returns something that is due, and expects it no more.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Due> {
        for answer in [&mut self.connect, &mut self.pong].into_iter().flatten() {
            if now.saturating_duration_since(*answer) > LATE {
                *answer = now + GRACE;
            }
        }
        let is_due = |at: &mut Option<Instant>| at.take_if(|at| *at <= now).is_some();
        if is_due(&mut self.connect) {
            return Some(Due::Connect);
        }
        if is_due(&mut self.pong) {
            return Some(Due::Pong);
        }
        if is_due(&mut self.expiry) {
            return Some(Due::Expiry);
        }
        if is_due(&mut self.ping) {
            self.ping = Some(now + self.ping_interval);
            self.pong.get_or_insert(now + self.pong_timeout);
            return Some(Due::Ping);
        }
        None
    }
}

/// Returns how long it is until a time in seconds since 1970; zero if it is over.
pub(super) fn until(seconds: u64) -> Duration {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    let left = at.map(|at| at.duration_since(SystemTime::now()).unwrap_or_default());
    // A time that no clock can show is as good as never.
    left.unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn connected(start: Instant) -> Deadlines {
        let mut deadlines = Deadlines::new(&ClientOptions::default(), start);
        deadlines.connected(start, 1.0);
        deadlines
    }

    #[test]
    fn the_first_command_is_due_once() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(&ClientOptions::default(), start);
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
        let mut deadlines = Deadlines::new(&ClientOptions::default(), start);
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
    fn first_pings_are_spread() {
        let start = Instant::now();
        let mut deadlines = Deadlines::new(&ClientOptions::default(), start);
        deadlines.connected(start, 0.5);
        assert_eq!(deadlines.next(), Some(start + 25 * SECOND / 2));
    }

    #[test]
    fn a_token_of_all_eternity_never_ends() {
        assert_eq!(Instant::now().checked_add(until(u64::MAX)), None);
        assert_eq!(until(0), Duration::ZERO);
    }
}
