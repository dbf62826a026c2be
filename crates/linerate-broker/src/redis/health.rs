//! Tracks, by loopback publications, whether the links of a node still receive anything.

use std::{collections::VecDeque, sync::Mutex, time::Duration};

use foldhash::HashMap;
use tokio::time::Instant;

use crate::{event::LinkState, lock::lock, options::BrokerOptions};

/// The maximum number of loopback publications that are awaited at a time.
const SENT_MAX: usize = 64;

/// The loopback publications of one link.
#[derive(Debug, Default)]
pub(super) struct Probe {
    sent: VecDeque<(u64, Instant)>,
    number: u64,
}

impl Probe {
    /// Returns the number to publish now.
    pub(super) fn send(&mut self, now: Instant) -> u64 {
        self.number += 1;
        if self.sent.len() < SENT_MAX {
            self.sent.push_back((self.number, now));
        }
        self.number
    }

    /// Handles a loopback publication that came back. Returns how long it took, unless it is no
    /// longer awaited.
    pub(super) fn receive(&mut self, now: Instant, number: u64) -> Option<Duration> {
        let at = self.sent.iter().position(|(sent, _)| *sent == number)?;
        let (_, sent) = self.sent[at];
        self.sent.drain(..=at);
        Some(now.duration_since(sent))
    }

    /// Returns the oldest loopback publication that has not come back, and when it was sent.
    pub(super) fn oldest(&self) -> Option<(u64, Instant)> {
        self.sent.front().copied()
    }

    /// Excludes the time that this process has slept: each send time moves forward by `slept`.
    pub(super) fn postpone(&mut self, now: Instant, slept: Duration) {
        for (_, sent) in &mut self.sent {
            *sent = (*sent + slept).min(now);
        }
    }

    /// Forgets all loopback publications that have not come back, because the connection is a new
    /// one.
    pub(super) fn clear(&mut self) {
        self.sent.clear();
    }
}

/// The state of all links.
#[derive(Debug)]
pub(super) struct Health {
    links: Mutex<HashMap<u64, LinkReport>>,
    /// How old the newest report of a link may be.
    age_max: Duration,
}

#[derive(Clone, Copy, Debug)]
struct LinkReport {
    state: LinkState,
    at: Instant,
    /// When the link was last up.
    up: Option<Instant>,
}

impl Health {
    pub(super) fn new(options: &BrokerOptions) -> Self {
        Self {
            links: Mutex::default(),
            age_max: options.probe_interval + options.probe_timeout,
        }
    }

    /// Stores the state of a link. Returns the combined state of all links if it has changed.
    pub(super) fn report(&self, link: u64, state: LinkState) -> Option<LinkState> {
        let mut links = lock(&self.links);
        let before = reported(&links);
        let at = Instant::now();
        let up = match state {
            LinkState::Deaf => links.get(&link).and_then(|heard| heard.up),
            LinkState::Up { .. } => Some(at),
        };
        links.insert(link, LinkReport { state, at, up });
        changed(before, reported(&links))
    }

    /// Returns when a link was last up.
    pub(super) fn up(&self, link: u64) -> Option<Instant> {
        lock(&self.links).get(&link)?.up
    }

    /// Removes a link that is no longer needed. Returns the combined state of the others if it has
    /// changed.
    pub(super) fn remove(&self, link: u64) -> Option<LinkState> {
        let mut links = lock(&self.links);
        let before = reported(&links);
        links.remove(&link);
        changed(before, reported(&links))
    }

    /// Returns the combined state of the links. It is deaf if a link is deaf or has not reported
    /// for too long, which also happens when the node does not accept events.
    pub(super) fn state(&self) -> LinkState {
        let links = lock(&self.links);
        let is_late = |heard: &LinkReport| heard.at.elapsed() > self.age_max;
        match links.values().any(is_late) {
            true => LinkState::Deaf,
            false => reported(&links),
        }
    }
}

fn reported(links: &HashMap<u64, LinkReport>) -> LinkState {
    let states = links.values().map(|heard| heard.state);
    let slowest = states.reduce(|one, other| match (one, other) {
        (LinkState::Up { round_trip: one }, LinkState::Up { round_trip: other }) => LinkState::Up {
            round_trip: one.max(other),
        },
        _ => LinkState::Deaf,
    });
    slowest.unwrap_or(LinkState::Deaf)
}

fn changed(before: LinkState, after: LinkState) -> Option<LinkState> {
    let is_up = |state| matches!(state, LinkState::Up { .. });
    (is_up(before) != is_up(after)).then_some(after)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::{Health, Probe};
    use crate::{event::LinkState, options::BrokerOptions};

    const UP: LinkState = LinkState::Up {
        round_trip: Duration::from_millis(1),
    };

    #[test]
    fn a_returned_probe_gives_the_round_trip_time() {
        let (mut probe, now) = (Probe::default(), Instant::now());
        let later = now + Duration::from_millis(7);
        let first = probe.send(now);
        let second = probe.send(now);
        assert_eq!(probe.oldest(), Some((first, now)));
        assert_eq!(probe.receive(later, 99), None);
        assert_eq!(probe.receive(later, second), Some(later - now));
        assert_eq!(probe.receive(later, first), None);
        assert_eq!(probe.oldest(), None);
    }

    #[test]
    fn suspended_time_does_not_count() {
        let (mut probe, start) = (Probe::default(), Instant::now());
        let (second, slept) = (Duration::from_secs(1), Duration::from_secs(13));
        let first = probe.send(start);
        let woken = start + second + slept;
        let last = probe.send(woken);
        probe.postpone(woken, slept);
        assert_eq!(probe.oldest(), Some((first, woken - second)));
        assert_eq!(probe.receive(woken, first), Some(second));
        assert_eq!(probe.oldest(), Some((last, woken)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_state_is_up_only_if_all_links_are_up() {
        let health = Health::new(&BrokerOptions::default());
        assert_eq!(health.state(), LinkState::Deaf);
        assert_eq!(health.report(1, UP), Some(UP));
        assert_eq!(health.report(2, LinkState::Deaf), Some(LinkState::Deaf));
        assert_eq!(health.report(2, LinkState::Deaf), None);
        assert_eq!(health.remove(2), Some(UP));
        assert_eq!(health.state(), UP);
    }

    #[tokio::test(start_paused = true)]
    async fn a_link_that_has_not_reported_is_deaf() {
        let health = Health::new(&BrokerOptions::default());
        health.report(1, UP);
        advance(Duration::from_millis(3_001)).await;
        assert_eq!(health.state(), LinkState::Deaf);
    }
}
