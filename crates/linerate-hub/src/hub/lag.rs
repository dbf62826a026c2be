//! How far behind clients are.

use std::time::{Duration, Instant};

use crate::hub::{
    channels::Channels,
    members::Members,
    ring::weight,
    subscription::{State, Subscription},
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

impl Lag {
    pub(crate) fn of<B>(
        now: Instant,
        channels: &Channels<B>,
        members: &Members,
        client: u32,
    ) -> Self {
        let mut lag = Self::default();
        for index in &members.clients[client].subscriptions {
            lag.add(now, channels, &members.subscriptions[*index]);
        }
        lag
    }

    fn add<B>(&mut self, now: Instant, channels: &Channels<B>, subscription: &Subscription) {
        let group = &channels.groups[subscription.group];
        let (from, to) = (subscription.cursor, group.limit);
        if subscription.state != State::Live || from >= to || group.is_idle(subscription) {
            return;
        }
        let stream = &channels.streams[group.channel];
        let class = &stream.classes[group.class];
        let ring = &stream.ring;
        let held_from = from.max(class.base());
        let oldest = ring.published(class.ring_number(held_from, ring));
        let age = oldest.map(|oldest| now.saturating_duration_since(oldest));
        self.oldest = self.oldest.max(age);
        self.messages += to - from;
        self.bytes += match class.is_all() {
            true => ring.bytes_before(to) - ring.bytes_before(held_from),
            false => {
                let held = class.iter(ring, held_from, to);
                held.map(|(_, publication)| weight(publication) as u64)
                    .sum()
            }
        };
    }
}
