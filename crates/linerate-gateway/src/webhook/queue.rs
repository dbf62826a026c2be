//! The bounded queue of a webhook.

use std::collections::VecDeque;

use linerate_budget::Lease;
use serde::Serialize;

use super::event::Event;

/// The events that wait for delivery. Beyond its limits, the oldest are dropped.
#[derive(Debug)]
pub(super) struct Queue {
    events: VecDeque<Event>,
    /// The number of the first event in `events`; numbers are consecutive.
    first: u64,
    bytes: usize,
    events_max: usize,
    bytes_max: usize,
    lease: Lease,
    dropped: Option<Dropped>,
    dropped_total: u64,
}

/// Events that were dropped since the last batch.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename = "dropped")]
pub(super) struct Dropped {
    pub(super) count: u64,
    pub(super) since_ms: u64,
    pub(super) until_ms: u64,
}

/// The oldest events, taken out of the queue.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) first: u64,
    pub(super) events: Vec<Event>,
    pub(super) dropped: Option<Dropped>,
}

impl Queue {
    pub(super) fn new(events_max: usize, bytes_max: usize, lease: Lease) -> Self {
        Self {
            events: VecDeque::new(),
            first: 1,
            bytes: 0,
            events_max,
            bytes_max,
            lease,
            dropped: None,
            dropped_total: 0,
        }
    }

    /// Adds an event, and drops the oldest ones until the queue is within its limits and the memory
    /// budget.
    pub(super) fn push(&mut self, event: Event) {
        self.bytes += event.bytes();
        self.events.push_back(event);
        while self.events.len() > self.events_max || self.bytes > self.bytes_max || !self.is_paid()
        {
            if !self.drop_oldest() {
                break;
            }
        }
    }

    /// Removes at most `count` of the oldest events, which take at most `bytes_max` bytes unless it
    /// is only one, and what is to be told about dropped ones.
    pub(super) fn take(&mut self, count: usize, bytes_max: usize) -> Batch {
        let mut bytes = 0;
        let fits = |event: &&Event| {
            bytes += event.bytes();
            bytes <= bytes_max
        };
        let fitting = self.events.iter().take(count).take_while(fits).count();
        let count = fitting.max(1).min(self.events.len());
        let first = self.first;
        let events: Vec<_> = self.events.drain(..count).collect();
        self.first += count as u64;
        self.bytes -= events.iter().map(Event::bytes).sum::<usize>();
        self.lease.set(self.bytes as u64);
        Batch {
            first,
            events,
            dropped: self.dropped.take(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of events dropped since the start.
    pub(super) const fn dropped_total(&self) -> u64 {
        self.dropped_total
    }

    /// Returns whether the memory budget has room for the queue.
    fn is_paid(&mut self) -> bool {
        let more = (self.bytes as u64).saturating_sub(self.lease.bytes());
        match more {
            0 => {
                self.lease.set(self.bytes as u64);
                true
            }
            more => self.lease.grow_unless_critical(more).is_ok(),
        }
    }

    fn drop_oldest(&mut self) -> bool {
        let Some(event) = self.events.pop_front() else {
            return false;
        };
        self.first += 1;
        self.bytes -= event.bytes();
        self.dropped_total += 1;
        let at = event.time_ms();
        let dropped = self.dropped.get_or_insert(Dropped {
            count: 0,
            since_ms: at,
            until_ms: at,
        });
        dropped.count += 1;
        dropped.until_ms = at;
        true
    }
}

#[cfg(test)]
mod tests {
    use linerate_budget::{Budget, Consumer};
    use linerate_hub::ChannelName;

    use super::{Batch, Queue};
    use crate::webhook::{Event, Happened};

    fn event() -> Event {
        let channel = ChannelName::new("news").unwrap();
        Event::now(Some(Default::default()), Happened::Subscribed { channel })
    }

    fn queue(events_max: usize, bytes_max: usize, budget: &Budget) -> Queue {
        Queue::new(events_max, bytes_max, budget.lease(Consumer::Messages))
    }

    fn summary(batch: &Batch) -> (u64, usize, u64) {
        let dropped = batch.dropped.map_or(0, |dropped| dropped.count);
        (batch.first, batch.events.len(), dropped)
    }

    #[test]
    fn the_oldest_events_beyond_a_limit_are_dropped_and_told_once() {
        let budget = Budget::unbounded();
        for mut queue in [
            queue(3, usize::MAX, &budget),
            queue(100, 3 * event().bytes(), &budget),
        ] {
            for _ in 0..5 {
                queue.push(event());
            }
            assert_eq!((queue.len(), queue.dropped_total()), (3, 2));
            assert_eq!(summary(&queue.take(2, usize::MAX)), (3, 2, 2));
            assert_eq!(summary(&queue.take(2, usize::MAX)), (5, 1, 0));
            assert_eq!((queue.len(), queue.bytes()), (0, 0));
        }
    }

    #[test]
    fn a_batch_is_limited_in_bytes_but_has_at_least_one_event() {
        let mut queue = queue(100, usize::MAX, &Budget::unbounded());
        for _ in 0..5 {
            queue.push(event());
        }
        let two = 2 * event().bytes();
        assert_eq!(summary(&queue.take(100, two)), (1, 2, 0));
        assert_eq!(summary(&queue.take(100, two - 1)), (3, 1, 0));
        assert_eq!(summary(&queue.take(100, 0)), (4, 1, 0));
        assert_eq!(summary(&queue.take(100, usize::MAX)), (5, 1, 0));
    }

    #[test]
    fn a_flood_takes_no_more_than_the_memory_budget() {
        let budget = Budget::new(1 << 20);
        let mut queue = queue(usize::MAX, usize::MAX, &budget);
        for _ in 0..20_000 {
            queue.push(event());
        }
        assert!(queue.bytes() <= 1 << 20, "{}", queue.bytes());
        assert_eq!(queue.len() as u64 + queue.dropped_total(), 20_000);
        assert!(queue.len() > 1_000, "{}", queue.len());
        queue.take(usize::MAX, usize::MAX);
        drop(queue);
        assert_eq!(budget.used_total(), 0);
    }
}
