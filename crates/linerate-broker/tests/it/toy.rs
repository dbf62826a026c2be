//! A broker that is written as `docs/internals/adding-a-broker.md` explains: `hub:NAME` connects
//! all nodes of this process that use the same name.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use linerate_broker::{
    BROKERS, Beat, BoxFuture, Broker, BrokerError, BrokerKind, BrokerOptions, ConnectError, Event,
    Gap, GapReason, History, HistoryRequest, Ingest, LinkState, OccupancyChange, PresenceChange,
    Publish, Published, SetupError, StreamOptions, idempotency::IdempotencyKeys, incarnation,
    registry::LEASE, runtime::BrokerThread, sequencer::Sequencer,
};
use linerate_hub::{ChannelName, ClientInfo, Publication, presence::Counts};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::Instant,
};

use crate::{
    contract::{Service, contract},
    recorder::Recorder,
};

const KIND: BrokerKind = BrokerKind {
    name: "hub",
    schemes: &["hub:"],
    is_embedded: true,
    start,
};

/// The number of events that may wait for a node; beyond it, the node misses the oldest.
const EVENTS_MAX: usize = 4_096;

/// The number of hubs of a process.
const HUBS_MAX: usize = 1_000;

static HUBS: LazyLock<Mutex<HashMap<String, Arc<Hub>>>> = LazyLock::new(Mutex::default);

/// What the nodes share: in a real broker, the server.
struct Hub {
    state: Mutex<State>,
    /// The events, and for which node they are if not for all.
    events: broadcast::Sender<(Option<String>, Event)>,
}

#[derive(Debug)]
struct State {
    /// The values that can be taken, and when they expire.
    deposits: BTreeMap<String, (Instant, Bytes)>,
    sequencer: Sequencer,
    keys: IdempotencyKeys,
    kept: BTreeMap<String, Bytes>,
    /// The last beat of each node, and its details.
    nodes: BTreeMap<String, (Instant, Bytes)>,
    /// The clients that are present, by channel and client, each with its node.
    present: BTreeMap<(ChannelName, String), (String, ClientInfo)>,
    /// The nodes that occupy each name.
    occupied: BTreeMap<String, BTreeMap<String, IsFirst>>,
}

/// True for the node that made a name occupied.
type IsFirst = bool;

impl State {
    /// Returns the registered nodes.
    fn nodes(&mut self) -> &mut BTreeMap<String, (Instant, Bytes)> {
        self.nodes.retain(|_, (at, _)| at.elapsed() < LEASE);
        let nodes = &self.nodes;
        self.present.retain(|_, (node, _)| nodes.contains_key(node));
        &mut self.nodes
    }

    /// Returns the names that became vacant because a node that occupied them has ended.
    fn vacate(&mut self) -> Vec<String> {
        self.nodes();
        let nodes = &self.nodes;
        for occupants in self.occupied.values_mut() {
            occupants.retain(|node, _| nodes.contains_key(node));
        }
        let is_vacant = |_: &String, occupants: &mut BTreeMap<_, _>| occupants.is_empty();
        let vacated = self.occupied.extract_if(.., is_vacant);
        vacated.map(|(name, _)| name).collect()
    }

    /// Changes whether a node occupies a name. Returns whether the name became occupied or vacant.
    fn occupy(&mut self, node: &str, change: &OccupancyChange) -> bool {
        let occupants = self.occupied.entry(change.name.clone()).or_default();
        let is_first = occupants.is_empty();
        if change.is_occupied {
            return *occupants.entry(node.to_owned()).or_insert(is_first);
        }
        occupants.remove(node);
        let is_vacant = occupants.is_empty();
        if is_vacant {
            self.occupied.remove(&change.name);
        }
        is_vacant
    }

    /// Returns the clients in a channel.
    fn present(&mut self, channel: &ChannelName) -> Vec<ClientInfo> {
        self.nodes();
        let present = self.present.iter().filter(|((of, _), _)| of == channel);
        present.map(|(_, (_, info))| info.clone()).collect()
    }
}

/// The connection of a node to its hub.
struct Toy {
    hub: Arc<Hub>,
    node: String,
    channels: Arc<Mutex<HashSet<ChannelName>>>,
    payload_bytes_max: usize,
    is_shut_down: AtomicBool,
    thread: BrokerThread,
}

fn start(
    url: &str,
    options: BrokerOptions,
    ingest: Arc<dyn Ingest>,
) -> Result<Arc<dyn Broker>, SetupError> {
    let name = url.strip_prefix("hub:").filter(|name| !name.is_empty());
    let hub = Hub::named(name.ok_or("the URL names no hub")?, &options)?;
    let (node, channels) = (incarnation::random(), Arc::default());
    let runtime = BrokerThread::runtime()?;
    let events = hub.events.subscribe();
    let forward = forward(events, node.clone(), Arc::clone(&channels), ingest);
    Ok(Arc::new(Toy {
        hub,
        node,
        channels,
        payload_bytes_max: options.payload_bytes_max,
        is_shut_down: AtomicBool::new(false),
        thread: BrokerThread::spawn("broker-hub", runtime, forward)?,
    }))
}

/// Passes what arrives to the node: publications of subscribed channels, control messages, gaps.
async fn forward(
    mut events: broadcast::Receiver<(Option<String>, Event)>,
    node: String,
    channels: Arc<Mutex<HashSet<ChannelName>>>,
    ingest: Arc<dyn Ingest>,
) {
    ingest.ingest(vec![Event::Link(UP)]).await;
    let is_wanted = |event: &Event| match event {
        Event::Publication { channel, .. } => channels.lock().unwrap().contains(channel),
        _ => true,
    };
    loop {
        match events.recv().await {
            Ok((Some(to), _)) if to != node => {}
            Ok((_, event)) if is_wanted(&event) => ingest.ingest(vec![event]).await,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => ingest.ingest(vec![Event::Gap(MISSED)]).await,
            Err(RecvError::Closed) => return,
        }
    }
}

const UP: LinkState = LinkState::Up {
    round_trip: Duration::ZERO,
};

const MISSED: Gap = Gap {
    channels: None,
    lasted: Duration::ZERO,
    reason: GapReason::Overflow,
};

impl Hub {
    fn named(name: &str, options: &BrokerOptions) -> Result<Arc<Self>, SetupError> {
        let mut hubs = HUBS.lock().unwrap();
        if hubs.len() >= HUBS_MAX && !hubs.contains_key(name) {
            return Err(format!("there are {HUBS_MAX} hubs already").into());
        }
        let hub = || Self {
            state: Mutex::new(State {
                sequencer: Sequencer::new(options.sequencer, &incarnation::random()),
                keys: IdempotencyKeys::new(options.idempotency_ttl),
                deposits: BTreeMap::new(),
                kept: BTreeMap::new(),
                nodes: BTreeMap::new(),
                present: BTreeMap::new(),
                occupied: BTreeMap::new(),
            }),
            events: broadcast::Sender::new(EVENTS_MAX),
        };
        let hub = hubs
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(hub()));
        Ok(Arc::clone(hub))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Publishes under the lock, so that events have the same order as positions.
    fn publish(&self, channel: &ChannelName, publish: Publish) -> Published {
        let (mut state, now) = (self.state(), Instant::now());
        let key = publish.idempotency_key;
        let earlier = key
            .as_deref()
            .and_then(|key| state.keys.find(now, channel, key));
        if let Some(answer) = earlier {
            return answer;
        }
        let publication = Publication::build(publish.payload)
            .with_info(publish.info)
            .with_tags(publish.tags);
        let publication = state
            .sequencer
            .publish(now, channel, publish.options, publication);
        let answer = Published {
            position: publication.position().cloned(),
        };
        if let Some(key) = key {
            state.keys.insert(now, channel, &key, answer.clone());
        }
        let channel = channel.clone();
        let event = Event::Publication {
            channel,
            publication,
        };
        self.send(None, event);
        answer
    }

    fn send(&self, to: Option<String>, event: Event) {
        // This fails only if all nodes have been shut down.
        _ = self.events.send((to, event));
    }
}

impl Toy {
    fn check(&self, bytes: usize) -> Result<(), BrokerError> {
        if self.is_shut_down.load(Ordering::Relaxed) {
            let reason = "it was shut down".to_owned();
            return Err(BrokerError::Away { reason });
        }
        let bytes_max = self.payload_bytes_max;
        match bytes > bytes_max {
            true => Err(BrokerError::PayloadTooLarge { bytes, bytes_max }),
            false => Ok(()),
        }
    }
}

impl std::fmt::Debug for Toy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toy").finish_non_exhaustive()
    }
}

impl Broker for Toy {
    fn publish<'a>(
        &'a self,
        channel: &'a ChannelName,
        publish: Publish,
    ) -> BoxFuture<'a, Result<Published, BrokerError>> {
        Box::pin(async move {
            self.check(publish.payload.len())?;
            Ok(self.hub.publish(channel, publish))
        })
    }

    fn subscribe<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            self.channels.lock().unwrap().insert(channel.clone());
            Ok(())
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.channels.lock().unwrap().remove(channel);
        })
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> BoxFuture<'a, Result<History, BrokerError>> {
        Box::pin(async move {
            if options.size_max == 0 {
                return Err(BrokerError::NoHistory);
            }
            let (mut state, now) = (self.hub.state(), Instant::now());
            state.sequencer.touch(now, channel);
            Ok(state.sequencer.history(now, channel.as_str(), &request))
        })
    }

    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            if options.size_max == 0 {
                return Err(BrokerError::NoHistory);
            }
            self.hub.state().sequencer.remove_history(channel.as_str());
            Ok(())
        })
    }

    fn send_control<'a>(
        &'a self,
        to: Option<&'a str>,
        message: Bytes,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            self.hub
                .send(to.map(str::to_owned), Event::Control(message));
            Ok(())
        })
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn beat(&self, details: Bytes) -> BoxFuture<'_, Result<Beat, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let mut state = self.hub.state();
            let beat = (Instant::now(), details);
            let is_new = state.nodes().insert(self.node.clone(), beat).is_none();
            let vacated = state.vacate();
            if !vacated.is_empty() {
                self.hub
                    .send(Some(self.node.clone()), Event::Vacated(vacated));
            }
            Ok(Beat {
                nodes: state.nodes.len(),
                is_new,
                has_lost_presence: is_new,
            })
        })
    }

    fn deregister(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            self.hub.state().nodes.remove(&self.node);
            Ok(())
        })
    }

    fn stores_presence(&self) -> bool {
        true
    }

    fn set_presence<'a>(
        &'a self,
        changes: &'a [PresenceChange],
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let mut state = self.hub.state();
            if !state.nodes().contains_key(&self.node) {
                return Err(BrokerError::LeaseEnded);
            }
            for change in changes {
                let key = (change.channel.clone(), change.info.client.to_string());
                let entry = (self.node.clone(), change.info.clone());
                match change.is_present {
                    true => _ = state.present.insert(key, entry),
                    false => _ = state.present.remove(&key),
                }
            }
            Ok(())
        })
    }

    fn reset_presence(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let present = &mut self.hub.state().present;
            present.retain(|_, (node, _)| *node != self.node);
            Ok(())
        })
    }

    fn set_occupancy<'a>(
        &'a self,
        changes: &'a [OccupancyChange],
    ) -> BoxFuture<'a, Result<Vec<bool>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let mut state = self.hub.state();
            if !state.nodes().contains_key(&self.node) {
                return Err(BrokerError::LeaseEnded);
            }
            let changes = changes.iter();
            Ok(changes
                .map(|change| state.occupy(&self.node, change))
                .collect())
        })
    }

    fn reset_occupancy(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            for occupants in self.hub.state().occupied.values_mut() {
                occupants.remove(&self.node);
            }
            Ok(())
        })
    }

    fn presence<'a>(
        &'a self,
        channel: &'a ChannelName,
        bytes_max: usize,
    ) -> BoxFuture<'a, Result<Vec<ClientInfo>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let present = self.hub.state().present(channel);
            match present.iter().map(ClientInfo::bytes).sum::<usize>() > bytes_max {
                true => Err(BrokerError::PresenceTooLarge { bytes_max }),
                false => Ok(present),
            }
        })
    }

    fn presence_counts<'a>(
        &'a self,
        channel: &'a ChannelName,
    ) -> BoxFuture<'a, Result<Counts, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let present = self.hub.state().present(channel);
            let users: HashSet<_> = present.iter().map(|info| &info.user).collect();
            Ok(Counts {
                clients: present.len(),
                users: users.len(),
            })
        })
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            Ok(self.hub.state().nodes().keys().cloned().collect())
        })
    }

    fn node_details(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let mut state = self.hub.state();
            let nodes = state.nodes().values();
            Ok(nodes.map(|(_, details)| details.clone()).collect())
        })
    }

    fn keep<'a>(
        &'a self,
        id: &'a str,
        value: Bytes,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            self.hub.state().kept.insert(id.to_owned(), value);
            Ok(())
        })
    }

    fn kept(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            Ok(self.hub.state().kept.values().cloned().collect())
        })
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: Bytes,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.check(value.len())?;
            let deposit = (Instant::now() + ttl, value);
            let mut state = self.hub.state();
            state.deposits.insert(key.to_owned(), deposit);
            Ok(())
        })
    }

    fn take<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Bytes>, BrokerError>> {
        Box::pin(async move {
            self.check(0)?;
            let found = self.hub.state().deposits.remove(key);
            let current = found.filter(|(expires_at, _)| *expires_at > Instant::now());
            Ok(current.map(|(_, value)| value))
        })
    }

    fn is_pattern(&self, _: &ChannelName) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn probe_write(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move { self.check(0) })
    }

    fn link(&self) -> LinkState {
        match self.is_shut_down.load(Ordering::Relaxed) {
            true => LinkState::Deaf,
            false => UP,
        }
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.is_shut_down.store(true, Ordering::Relaxed);
            self.thread.stop();
        })
    }
}

contract!(Hubs::new());

/// A hub to which nodes are attached.
struct Hubs {
    url: String,
}

impl Hubs {
    fn new() -> Option<Self> {
        let url = format!("hub:{}", incarnation::random());
        Some(Self { url })
    }
}

impl Service for Hubs {
    const IS_SHARED: bool = true;
    const PATTERN: (&'static str, &'static str, &'static str) = ("", "", "");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        let kinds = [BROKERS, &[KIND]].concat();
        let kind = BrokerKind::find(&kinds, &self.url).unwrap();
        kind.connect(&self.url, options, recorder).unwrap()
    }
}

#[test]
fn a_url_that_cannot_be_used_is_an_error_of_its_broker() {
    let refused = KIND.connect("hub:", BrokerOptions::default(), Recorder::new());
    let error = refused.err().unwrap();
    assert!(matches!(error, ConnectError::Setup { name: "hub", .. }));
    assert_eq!(error.to_string(), "cannot set up the hub broker");
}

#[test]
fn the_guide_shows_the_code_of_this_file() {
    let guide = include_str!("../../../../docs/internals/adding-a-broker.md");
    let code = include_str!("toy.rs");
    let blocks: Vec<&str> = guide.split("```rust\n").skip(1).collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        let block = block.split("```").next().unwrap();
        assert!(code.contains(block), "not in toy.rs:\n{block}");
    }
}
