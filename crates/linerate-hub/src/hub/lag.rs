//! How far behind clients are.

use std::time::{Duration, Instant};

use crate::{
    ClientId,
    hub::{Hub, ring::weight, subscription::State},
};

/// Publications that were released to a client and not taken yet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Lag {
    /// How long the oldest publication that is still held has been waiting.
    pub oldest: Option<Duration>,
    /// The number of waiting publications, including those that the ring has already lost.
    pub messages: u64,
    /// The size of their payloads in bytes, without those that the ring has already lost.
    pub bytes: u64,
}

impl<B: Clone> Hub<B> {
    /// Returns how far behind a client is; `None` if it is not connected.
    pub fn lag(&self, now: Instant, client: ClientId) -> Option<Lag> {
        let index = self.clients.find(client.0)?;
        let mut lag = Lag::default();
        for subscription in &self.clients[index].subscriptions {
            self.add_lag(now, *subscription, &mut lag);
        }
        Some(lag)
    }

    fn add_lag(&self, now: Instant, index: u32, lag: &mut Lag) {
        let subscription = &self.subscriptions[index];
        let group = &self.groups[subscription.group];
        let (from, to) = (subscription.cursor, group.limit);
        if subscription.state != State::Live || from >= to || group.is_idle(subscription) {
            return;
        }
        let stream = &self.streams[group.channel];
        let class = &stream.classes[group.class];
        let ring = &stream.ring;
        let held_from = from.max(class.base());
        let oldest = ring.published(class.ring_number(held_from, ring));
        let age = oldest.map(|oldest| now.saturating_duration_since(oldest));
        lag.oldest = lag.oldest.max(age);
        lag.messages += to - from;
        lag.bytes += match class.is_all() {
            true => ring.bytes_before(to) - ring.bytes_before(held_from),
            false => {
                let held = class.iter(ring, held_from, to);
                held.map(|(_, publication)| weight(publication) as u64)
                    .sum()
            }
        };
    }
}
