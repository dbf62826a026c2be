//! Attempts to connect that wait: for their turn, for a delay, or for a name lookup.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use linerate_proto::handshake::ClientHandshake;

use super::{destination::Destination, error::ConnectError};

/// A requested connection.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) destination: Destination,
    /// The route whose handler the connection belongs to.
    pub(crate) route: u16,
}

/// An attempt to connect that has begun.
pub(crate) struct Attempt {
    pub(crate) pending: Pending,
    pub(crate) handshake: ClientHandshake,
    /// The addresses of the host; those before `next` have been tried.
    pub(crate) addresses: Arc<[SocketAddr]>,
    pub(crate) next: usize,
    /// When the time for the current address is over.
    pub(crate) address_due: Duration,
    pub(crate) due: Duration,
    pub(crate) time_max: Duration,
    /// The reason for the failure, once the attempt has failed.
    pub(crate) failure: Option<ConnectError>,
}

/// The attempts of one worker that have not begun, and the number of those in progress.
#[derive(Debug, Default)]
pub(crate) struct Dialer {
    waiting: VecDeque<Pending>,
    /// Delayed attempts, ordered by the time at which they are due.
    delayed: BTreeMap<(Duration, u64), Pending>,
    /// Attempts that wait for a lookup, by the number of the lookup.
    lookups: BTreeMap<u64, Pending>,
    next_number: u64,
    /// The number of attempts that have begun and not ended.
    pub(crate) under_way: usize,
}

impl Dialer {
    /// Adds an attempt.
    pub(crate) fn push(&mut self, pending: Pending, now: Duration) {
        match pending.destination.delay() {
            Duration::ZERO => self.waiting.push_back(pending),
            delay => {
                let due = (now.saturating_add(delay), self.number());
                self.delayed.insert(due, pending);
            }
        }
    }

    /// Returns a unique number.
    pub(crate) fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    /// Queues the attempts whose delay has passed by `now`; returns how many attempts are queued
    /// then.
    pub(crate) fn wake(&mut self, now: Duration) -> usize {
        while let Some(entry) = self.delayed.first_entry()
            && entry.key().0 <= now
        {
            self.waiting.push_back(entry.remove());
        }
        self.waiting.len()
    }

    /// Removes and returns the next queued attempt, if fewer than `max` are in progress.
    pub(crate) fn next(&mut self, max: usize) -> Option<Pending> {
        if self.under_way < max.max(1) {
            self.waiting.pop_front()
        } else {
            None
        }
    }

    /// Keeps an attempt until the lookup with this number has a result. It counts as in progress.
    pub(crate) fn await_lookup(&mut self, number: u64, pending: Pending) {
        self.under_way += 1;
        self.lookups.insert(number, pending);
    }

    /// Removes and returns the attempt that waits for this lookup; `None` if it was cancelled.
    pub(crate) fn end_lookup(&mut self, number: u64) -> Option<Pending> {
        let pending = self.lookups.remove(&number)?;
        self.under_way -= 1;
        Some(pending)
    }

    /// Returns whether an attempt could begin now.
    pub(crate) fn is_ready(&self, max: usize) -> bool {
        !self.waiting.is_empty() && self.under_way < max.max(1)
    }

    /// Returns whether an attempt waits for a delay to pass.
    pub(crate) fn has_delayed(&self) -> bool {
        !self.delayed.is_empty()
    }

    /// Removes and returns one of the attempts that have not begun, to cancel it.
    pub(crate) fn cancel(&mut self) -> Option<Pending> {
        if let Some((_, pending)) = self.lookups.pop_first() {
            self.under_way -= 1;
            return Some(pending);
        }
        let delayed = || self.delayed.pop_first().map(|(_, pending)| pending);
        self.waiting.pop_front().or_else(delayed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(tag: u64, delay_ms: u64) -> Pending {
        let destination = Destination::parse("ws://127.0.0.1").unwrap().with_tag(tag);
        Pending {
            destination: destination.with_delay(Duration::from_millis(delay_ms)),
            route: 0,
        }
    }

    fn tag(pending: Option<Pending>) -> Option<u64> {
        pending.map(|pending| pending.destination.tag())
    }

    #[test]
    fn attempts_begin_in_order_once_their_delay_has_passed() {
        let mut dialer = Dialer::default();
        let at = Duration::from_millis;
        dialer.push(pending(1, 20), at(0));
        dialer.push(pending(2, 10), at(0));
        dialer.push(pending(3, 0), at(0));
        assert_eq!(dialer.wake(at(9)), 1);
        assert_eq!(tag(dialer.next(8)), Some(3));
        assert_eq!(dialer.wake(at(20)), 2);
        assert_eq!(
            [tag(dialer.next(8)), tag(dialer.next(8))],
            [Some(2), Some(1)]
        );
        assert!(dialer.next(8).is_none() && !dialer.has_delayed());
    }

    #[test]
    fn no_more_are_under_way_than_may_be_and_all_can_be_cancelled() {
        let mut dialer = Dialer::default();
        (0..4).for_each(|tag| dialer.push(pending(tag, 0), Duration::ZERO));
        dialer.push(pending(4, 1), Duration::ZERO);
        let first = dialer.next(1).unwrap();
        dialer.await_lookup(7, first);
        assert!(!dialer.is_ready(1) && dialer.next(1).is_none());
        assert!(dialer.is_ready(2));
        assert_eq!(tag(dialer.end_lookup(7)), Some(0));
        assert_eq!(tag(dialer.end_lookup(7)), None);
        let second = dialer.next(1).unwrap();
        dialer.await_lookup(8, second);
        let mut cancelled: Vec<_> = std::iter::from_fn(|| tag(dialer.cancel())).collect();
        cancelled.sort_unstable();
        assert_eq!(cancelled, [1, 2, 3, 4]);
        assert_eq!(dialer.under_way, 0);
    }
}
