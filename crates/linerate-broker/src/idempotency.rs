//! Remembers idempotency keys, for brokers that do not remember them on their own.

use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;
use linerate_hub::ChannelName;
use tokio::time::Instant;

use crate::request::Published;

/// The maximum number of keys; beyond it, the oldest are forgotten early.
const KEYS_MAX: usize = 100_000;

/// The maximum size in bytes of all keys and channel names together.
const BYTES_MAX: usize = 32 << 20;

/// Remembers the answers to publications with an idempotency key, for a bounded time.
#[derive(Debug)]
pub struct IdempotencyKeys {
    ttl: Duration,
    answers: HashMap<(ChannelName, String), Published>,
    /// The keys and when they expire, in that order.
    ends: VecDeque<(Instant, (ChannelName, String))>,
    bytes: usize,
}

impl IdempotencyKeys {
    /// Creates an empty memory that remembers each key for `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            answers: HashMap::default(),
            ends: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Returns the answer to the publication in `channel` that had the same key.
    pub fn find(&mut self, now: Instant, channel: &ChannelName, key: &str) -> Option<Published> {
        self.forget(now);
        self.answers
            .get(&(channel.clone(), key.to_owned()))
            .cloned()
    }

    /// Stores the answer to a publication whose key was not found.
    pub fn insert(&mut self, now: Instant, channel: &ChannelName, key: &str, answer: Published) {
        let key = (channel.clone(), key.to_owned());
        if self.answers.insert(key.clone(), answer).is_none() {
            self.bytes += size(&key);
            self.ends.push_back((now + self.ttl, key));
        }
        self.forget(now);
    }

    fn forget(&mut self, now: Instant) {
        while let Some((end, _)) = self.ends.front() {
            let is_full = self.ends.len() > KEYS_MAX || self.bytes > BYTES_MAX;
            if *end > now && !is_full {
                return;
            }
            if let Some((_, key)) = self.ends.pop_front() {
                self.bytes -= size(&key);
                self.answers.remove(&key);
            }
        }
    }
}

fn size(key: &(ChannelName, String)) -> usize {
    key.0.as_str().len() + key.1.len()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_hub::{ChannelName, Epoch, StreamPosition};
    use tokio::time::Instant;

    use super::{BYTES_MAX, IdempotencyKeys, KEYS_MAX};
    use crate::request::Published;

    const TTL: Duration = Duration::from_secs(60);

    fn answer(offset: u64) -> Published {
        let epoch = Epoch::new("e");
        Published {
            position: Some(StreamPosition { epoch, offset }),
        }
    }

    #[test]
    fn a_key_is_found_in_its_channel_until_its_time_is_over() {
        let (mut keys, now) = (IdempotencyKeys::new(TTL), Instant::now());
        let (a, b) = (
            ChannelName::new("a").unwrap(),
            ChannelName::new("b").unwrap(),
        );
        keys.insert(now, &a, "k", answer(1));
        let almost = now + TTL - Duration::from_millis(1);
        assert_eq!(keys.find(almost, &a, "k"), Some(answer(1)));
        assert_eq!(keys.find(now, &b, "k"), None);
        assert_eq!(keys.find(now, &a, "l"), None);
        assert_eq!(keys.find(now + TTL, &a, "k"), None);
    }

    #[test]
    fn keys_are_bounded_in_number_and_bytes() {
        let (mut keys, now) = (IdempotencyKeys::new(TTL), Instant::now());
        let channel = ChannelName::new("a").unwrap();
        for number in 0..=KEYS_MAX {
            keys.insert(now, &channel, &number.to_string(), answer(1));
        }
        assert_eq!(keys.find(now, &channel, "0"), None);
        assert!(keys.find(now, &channel, "1").is_some());
        keys.insert(now, &channel, &"x".repeat(BYTES_MAX - 1), answer(1));
        assert_eq!(keys.answers.len(), 1);
    }
}
