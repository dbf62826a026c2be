//! Values that wait to be taken once, for brokers that end with the process.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use foldhash::HashMap;
use tokio::time::Instant;

/// The maximum number of values; beyond it, the oldest are dropped.
const VALUES_MAX: usize = 1_000_000;

/// The maximum size in bytes of all keys and values together; beyond it, the oldest are dropped.
const BYTES_MAX: usize = 64 << 20;

/// Values that wait to be taken once, for a bounded time.
#[derive(Debug, Default)]
pub(crate) struct Deposits {
    values: HashMap<String, Deposit>,
    /// The keys in the order in which they were stored, with the numbers of their values.
    order: VecDeque<(u64, String)>,
    bytes: usize,
    next_number: u64,
}

#[derive(Debug)]
struct Deposit {
    number: u64,
    expires_at: Instant,
    value: Bytes,
}

impl Deposits {
    /// Stores a value for `ttl`, and replaces the one with the same key.
    pub(crate) fn put(&mut self, now: Instant, key: &str, value: Bytes, ttl: Duration) {
        let number = self.next_number;
        self.next_number += 1;
        self.bytes += key.len() + value.len();
        let deposit = Deposit {
            number,
            expires_at: now + ttl,
            value,
        };
        if let Some(replaced) = self.values.insert(key.to_owned(), deposit) {
            self.bytes -= key.len() + replaced.value.len();
        }
        self.order.push_back((number, key.to_owned()));
        self.tidy(now);
    }

    /// Removes a value and returns it, unless it has expired.
    pub(crate) fn take(&mut self, now: Instant, key: &str) -> Option<Bytes> {
        let found = self.values.remove(key)?;
        self.bytes -= key.len() + found.value.len();
        (found.expires_at > now).then_some(found.value)
    }

    /// Drops the oldest values while they have expired, were taken or exceed the limits.
    fn tidy(&mut self, now: Instant) {
        while let Some((number, key)) = self.order.front() {
            let current = self.values.get(key).filter(|one| one.number == *number);
            let is_full = self.bytes > BYTES_MAX || self.order.len() > VALUES_MAX;
            if current.is_some_and(|one| one.expires_at > now) && !is_full {
                return;
            }
            if let Some(dropped) = current {
                self.bytes -= key.len() + dropped.value.len();
                self.values.remove(key);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    #[test]
    fn a_value_is_taken_once() {
        let (mut deposits, now) = (Deposits::default(), Instant::now());
        deposits.put(now, "a", "old".into(), TTL);
        deposits.put(now, "a", "new".into(), TTL);
        assert_eq!(deposits.take(now, "a"), Some("new".into()));
        assert_eq!(deposits.take(now, "a"), None);
        assert_eq!(deposits.bytes, 0);
    }

    #[test]
    fn a_value_expires() {
        let (mut deposits, now) = (Deposits::default(), Instant::now());
        deposits.put(now, "a", "1".into(), TTL);
        assert_eq!(deposits.take(now + TTL, "a"), None);
        deposits.put(now, "b", "1".into(), TTL);
        deposits.put(now + TTL, "c", "1".into(), TTL);
        assert_eq!((deposits.values.len(), deposits.order.len()), (1, 1));
        assert_eq!(deposits.bytes, 2);
    }

    #[test]
    fn the_oldest_values_are_dropped_beyond_the_limit() {
        let (mut deposits, now) = (Deposits::default(), Instant::now());
        let value = Bytes::from(vec![0; BYTES_MAX / 2 - 1]);
        for key in ["a", "b"] {
            deposits.put(now, key, value.clone(), TTL);
        }
        assert_eq!(deposits.bytes, BYTES_MAX);
        deposits.put(now, "c", value, TTL);
        assert_eq!(deposits.take(now, "a"), None);
        assert!(deposits.take(now, "b").is_some() && deposits.take(now, "c").is_some());
    }
}
