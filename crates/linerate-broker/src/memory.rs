//! The embedded broker: channels in the memory of this process, for a single node.
//!
//! Publications get their positions when they are published. Durable and plain channels are the
//! same here, and both end with the process. A `*` in the name of a subscription makes it a pattern
//! and matches any text.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use foldhash::HashSet;
use linerate_hub::{ChannelName, Publication};
use tokio::{sync::mpsc, time::Instant};

use crate::{
    broker::{Answer, BoxFuture, Broker, BrokerError, check_history, check_payload},
    deposits::Deposits,
    event::{Event, LinkState},
    idempotency::IdempotencyKeys,
    incarnation,
    ingest::Ingest,
    kind::BrokerKind,
    lock::lock,
    options::BrokerOptions,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
    runtime::BrokerThread,
    sequencer::Sequencer,
};

mod pattern;

/// The number of publications that may wait for the node before publishers have to wait.
const EVENTS_MAX: usize = 4_096;

/// The embedded broker, which `memory:` names.
pub const KIND: BrokerKind = BrokerKind {
    name: "memory",
    schemes: &["memory:"],
    is_embedded: true,
    start: |_, options, ingest| Ok(Arc::new(Memory::new(&options, ingest)?)),
};

/// The embedded broker.
pub struct Memory {
    state: Mutex<State>,
    ingest: Arc<dyn Ingest>,
    events: mpsc::Sender<Vec<Event>>,
    node: String,
    payload_bytes_max: usize,
    is_shut_down: AtomicBool,
    thread: BrokerThread,
}

#[derive(Debug)]
struct State {
    deposits: Deposits,
    sequencer: Sequencer,
    keys: IdempotencyKeys,
    /// The subscribed channels.
    channels: HashSet<ChannelName>,
    /// The subscribed patterns.
    patterns: Vec<ChannelName>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Memory {
    /// Starts a broker that hands publications to `ingest`, on its own thread.
    ///
    /// It uses only the limits of the sequencer, the maximum payload size and `idempotency_ttl` of
    /// `options`.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread.
    pub fn new(options: &BrokerOptions, ingest: Arc<dyn Ingest>) -> std::io::Result<Self> {
        let (events, queue) = mpsc::channel(EVENTS_MAX);
        let node = incarnation::random();
        let runtime = BrokerThread::runtime()?;
        let forward = forward(queue, ingest.clone());
        let thread = BrokerThread::spawn("broker-memory", runtime, forward)?;
        Ok(Self {
            ingest,
            state: Mutex::new(State {
                deposits: Deposits::default(),
                sequencer: Sequencer::new(options.sequencer, &node),
                keys: IdempotencyKeys::new(options.idempotency_ttl),
                channels: HashSet::default(),
                patterns: Vec::new(),
            }),
            events,
            node,
            payload_bytes_max: options.payload_bytes_max,
            is_shut_down: AtomicBool::new(false),
            thread,
        })
    }

    fn check(&self, bytes: usize) -> Result<(), BrokerError> {
        match self.is_shut_down.load(Ordering::Relaxed) {
            true => Err(BrokerError::shut_down()),
            false => check_payload(bytes, self.payload_bytes_max),
        }
    }
}

impl State {
    fn events(&self, channel: &ChannelName, publication: &Publication) -> Vec<Event> {
        let event = |channel: &ChannelName, publication| Event::Publication {
            channel: channel.clone(),
            publication,
        };
        let mut events = Vec::new();
        if self.channels.contains(channel) {
            events.push(event(channel, publication.clone()));
        }
        for pattern in &self.patterns {
            if pattern::matches(pattern.as_str(), channel.as_str()) {
                events.push(event(pattern, of_pattern(channel, publication)));
            }
        }
        events
    }
}

impl Broker for Memory {
    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published> {
        Box::pin(async move {
            self.check(publish.payload.len())?;
            // Reserve a place in the queue first, so that events have the same order as offsets,
            // and so that a future that is dropped has either published completely or not at all.
            let place = self.events.reserve().await;
            let place = place.map_err(|_| BrokerError::shut_down())?;
            let now = Instant::now();
            let mut state = lock(&self.state);
            if let Some(key) = &publish.idempotency_key
                && let Some(answer) = state.keys.find(now, channel, key)
            {
                return Ok(answer);
            }
            let publication = Publication::build(publish.payload)
                .with_info(publish.info)
                .with_tags(publish.tags);
            let options = publish.options;
            let publication = state.sequencer.publish(now, channel, options, publication);
            if publication.position().is_some() {
                self.ingest.keep(&publication);
            }
            let answer = Published {
                position: publication.position().cloned(),
            };
            if let Some(key) = &publish.idempotency_key {
                state.keys.insert(now, channel, key, answer.clone());
            }
            place.send(state.events(channel, &publication));
            Ok(answer)
        })
    }

    fn subscribe<'a>(&'a self, channel: &'a ChannelName, _: StreamOptions) -> Answer<'a, ()> {
        Box::pin(async move {
            self.check(0)?;
            let mut state = lock(&self.state);
            if !self.is_pattern(channel) {
                state.channels.insert(channel.clone());
            } else if !state.patterns.contains(channel) {
                state.patterns.push(channel.clone());
            }
            Ok(())
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut state = lock(&self.state);
            state.channels.remove(channel);
            state.patterns.retain(|pattern| pattern != channel);
        })
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            let (mut state, now) = (lock(&self.state), Instant::now());
            // A channel without publications still has a position, from which clients can recover
            // later.
            state.sequencer.touch(now, channel);
            Ok(state.sequencer.history(now, channel.as_str(), &request))
        })
    }

    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            lock(&self.state).sequencer.remove_history(channel.as_str());
            Ok(())
        })
    }

    fn send_control<'a>(&'a self, to: Option<&'a str>, message: Bytes) -> Answer<'a, ()> {
        Box::pin(async move {
            self.check(0)?;
            if to.is_some_and(|to| to != self.node) {
                return Ok(());
            }
            let sent = self.events.send(vec![Event::Control(message)]).await;
            sent.map_err(|_| BrokerError::shut_down())
        })
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn put<'a>(&'a self, key: &'a str, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(async move {
            self.check(value.len())?;
            let mut state = lock(&self.state);
            state.deposits.put(Instant::now(), key, value, ttl);
            Ok(())
        })
    }

    fn take<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(async move {
            self.check(0)?;
            Ok(lock(&self.state).deposits.take(Instant::now(), key))
        })
    }

    fn is_pattern(&self, channel: &ChannelName) -> bool {
        channel.as_str().contains('*')
    }

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn probe_write(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(self.check(0)))
    }

    fn link(&self) -> LinkState {
        match self.is_shut_down.load(Ordering::Relaxed) {
            true => LinkState::Deaf,
            false => LinkState::Up {
                round_trip: Duration::ZERO,
            },
        }
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        self.is_shut_down.store(true, Ordering::Relaxed);
        self.thread.stop();
        Box::pin(std::future::ready(()))
    }
}

/// Hands events to the node, all that are waiting at once.
async fn forward(mut queue: mpsc::Receiver<Vec<Event>>, ingest: Arc<dyn Ingest>) {
    let link = LinkState::Up {
        round_trip: Duration::ZERO,
    };
    ingest.ingest(vec![Event::Link(link)]).await;
    let mut bursts = Vec::new();
    while queue.recv_many(&mut bursts, EVENTS_MAX).await > 0 {
        let events: Vec<_> = bursts.drain(..).flatten().collect();
        if !events.is_empty() {
            ingest.ingest(events).await;
        }
    }
}

/// Converts a publication for a pattern. A pattern is not a stream, so the result has no position,
/// but it names the channel in which it was published.
fn of_pattern(channel: &ChannelName, publication: &Publication) -> Publication {
    Publication::build(publication.payload().clone())
        .with_info(publication.info().cloned())
        .with_tags(publication.tags().to_vec())
        .with_source(channel.clone())
        .finish()
}
