//! All clients of a server: receives, checks and times their messages.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::message::headers;
use super::subscriber::{Subscriber, SubscriptionRequest};
use super::{Cell, Peer, StoryError, system};
use crate::load::{Latencies, Watch};
use crate::record::Latency;

/// Number of bytes to read at a time.
const READ_BYTES: usize = 256 << 10;

/// Subscribers of one server, each of which asks for one source.
#[derive(Debug)]
pub struct Audience {
    subscriptions: Vec<Subscription>,
    /// Connections that are open but never read.
    _stalled: Vec<Subscriber>,
    watch: Watch,
    start: Instant,
    buffer: Vec<u8>,
    trial: u32,
    received: Received,
    latencies: Latencies,
}

#[derive(Debug)]
struct Subscription {
    subscriber: Subscriber,
    source: u32,
    /// The number that the next message must have.
    next: u64,
    is_open: bool,
}

/// What the subscribers received in a trial.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Received {
    /// Number of messages that arrived in order, over all subscribers.
    pub delivered: u64,
    /// Payload bytes of all data frames, including whatever surrounds the messages in them.
    pub bytes: u64,
    /// Number of messages that were skipped or never arrived, out of `delivered + lost`.
    pub lost: u64,
    /// Number of messages that arrived again, or too late to be in order.
    pub repeated: u64,
    /// Number of messages that differ from what was published, or are not for this subscriber.
    pub wrong: u64,
    /// Number of connections that ended.
    pub ended: u64,
    /// How the last of these connections ended.
    pub end: Option<String>,
}

impl Audience {
    /// Connects and subscribes the clients of a cell to a peer at `address`. Due times count from
    /// `start`.
    ///
    /// # Errors
    ///
    /// Returns an error if a client was not subscribed.
    pub fn open(
        address: SocketAddr,
        peer: &Peer,
        cell: Cell,
        start: Instant,
    ) -> Result<Self, StoryError> {
        let request = |number: u32| SubscriptionRequest {
            address,
            dialect: peer.dialect,
            transport: peer.transport,
            source: number % cell.sources,
            batch_ms: cell.batch_ms,
        };
        let subscriptions = (0..cell.subscribers).map(|number| {
            let request = request(number);
            Ok(Subscription {
                subscriber: Subscriber::open(request)?,
                source: request.source,
                next: 0,
                is_open: true,
            })
        });
        let subscriptions = subscriptions.collect::<Result<Vec<_>, StoryError>>()?;
        let stalled = 0..cell.stalled.unwrap_or_default();
        let stalled = stalled.map(|number| Subscriber::open_slow(request(number)));
        let stalled = stalled.collect::<Result<Vec<_>, StoryError>>()?;
        let watch = Watch::new(
            subscriptions
                .iter()
                .map(|subscription| &subscription.subscriber),
        );
        Ok(Self {
            watch: watch
                .map_err(io::Error::other)
                .map_err(system("cannot watch the sockets"))?,
            subscriptions,
            _stalled: stalled,
            start,
            buffer: vec![0; READ_BYTES],
            trial: 0,
            received: Received::default(),
            latencies: Latencies::new(),
        })
    }

    /// Begins a trial. Messages of earlier trials that still arrive do not count.
    pub fn begin(&mut self, trial: u32) {
        self.trial = trial;
        self.received = Received::default();
        self.latencies.clear();
        for subscription in &mut self.subscriptions {
            subscription.next = 0;
        }
    }

    /// Receives messages for at most `time`. Returns whether anything arrived.
    ///
    /// # Errors
    ///
    /// Returns an error if the system cannot wait.
    pub fn listen(&mut self, time: Duration) -> Result<bool, StoryError> {
        let (mut any, mut moved) = (false, Vec::new());
        let ready = self.watch.wait(time).map_err(io::Error::other);
        let ready = ready.map_err(system("cannot wait for the sockets"))?;
        for place in ready {
            any = true;
            let subscription = &mut self.subscriptions[place];
            if subscription.is_open {
                let received = (&mut self.received, &mut self.latencies);
                subscription.take(&mut self.buffer, self.start, self.trial, received);
                if subscription.subscriber.has_moved() {
                    moved.push(place);
                }
            }
        }
        for place in moved {
            let added = self.watch.add(place, &self.subscriptions[place].subscriber);
            added
                .map_err(io::Error::other)
                .map_err(system("cannot watch a socket"))?;
        }
        Ok(any)
    }

    /// Returns the number of subscribers that have not yet received everything that was published
    /// by their source.
    pub fn waiting(&self, published: &[u64]) -> usize {
        let waits = |subscription: &&Subscription| {
            subscription.is_open && subscription.next < published[subscription.source as usize]
        };
        self.subscriptions.iter().filter(waits).count()
    }

    /// Returns the number of messages that should have been delivered.
    pub fn expected(&self, published: &[u64]) -> u64 {
        self.subscriptions
            .iter()
            .map(|subscription| published[subscription.source as usize])
            .sum()
    }

    /// Returns what was received since the trial began. Messages that were published and never
    /// arrived count as lost.
    pub fn received(&mut self, published: &[u64]) -> &Received {
        for subscription in &mut self.subscriptions {
            let published = published[subscription.source as usize];
            self.received.lost += published.saturating_sub(subscription.next);
            subscription.next = subscription.next.max(published);
        }
        &self.received
    }

    /// Returns how long deliveries took, counted from when the messages were due.
    pub fn latency(&self) -> Option<Latency> {
        self.latencies.percentiles()
    }
}

impl Subscription {
    fn take(
        &mut self,
        buffer: &mut [u8],
        start: Instant,
        trial: u32,
        (received, latencies): (&mut Received, &mut Latencies),
    ) {
        let (source, next) = (self.source, &mut self.next);
        let result = self.subscriber.receive(buffer, |payload| {
            let now = start.elapsed();
            received.bytes += payload.len() as u64;
            for header in headers(payload) {
                match header {
                    Some(header) if header.trial < trial => {}
                    Some(header) if header.trial == trial && header.source == source => {
                        if received.record(header.number, next) {
                            latencies.record(now.saturating_sub(header.due));
                        }
                    }
                    _ => received.wrong += 1,
                }
            }
        });
        if let Err(error) = result {
            self.is_open = false;
            received.ended += 1;
            received.end = Some(error.to_string());
        }
    }
}

impl Received {
    /// Counts a message, and returns whether it arrived in order. `next` is the number that the
    /// next message must have.
    fn record(&mut self, number: u64, next: &mut u64) -> bool {
        if number < *next {
            self.repeated += 1;
            return false;
        }
        self.lost += number - *next;
        *next = number + 1;
        self.delivered += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_passed_over_is_lost_and_what_comes_again_is_repeated() {
        let (mut received, mut next) = (Received::default(), 0);
        for number in [0, 1, 4, 4, 3, 5] {
            received.record(number, &mut next);
        }
        assert_eq!(
            (received.delivered, received.lost, received.repeated),
            (4, 2, 2)
        );
        assert_eq!(next, 6);
    }
}
