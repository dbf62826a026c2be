//! Tests of nodes on an in-memory broker, with outlets that record what they are given.

mod cluster;
mod counts;
mod fan_out;
mod interest;
mod memory;
mod polling;
mod subscribe;
mod writes;

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use linerate_broker::{
    Beat, BoxFuture, Broker, BrokerError, Event, History, HistoryRequest, Ingest, LinkState,
    PresenceChange, Publish, Published, StreamOptions,
};
use linerate_budget::Budget;
use linerate_hub::{
    Batch, ChannelName, ChannelOptions, ClientId, ClientInfo, Encode, EncodingId, Place,
    Publication, SubscriptionOptions, Unencodable, presence::Counts,
};
use linerate_testkit::PATIENCE;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Notify, time::timeout};

use super::{
    Connection, Dispatcher, Node, NodeOptions, Notice, Outlet, Recovery, StartPosition, Subscribe,
    Trail, Worker,
};
use crate::{
    admin::TailEncoding,
    config::{Config, Namespaces},
    protocol::{Block, Transmit, dialect::DialectName},
};

pub(crate) const PLAIN: StreamOptions = StreamOptions {
    is_durable: false,
    size_max: 100,
    ttl: Duration::from_secs(60),
};

pub(crate) fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

/// Encodes payloads one after the other, each on its own line.
#[derive(Debug)]
struct Lines;

impl Encode for Lines {
    type Block = Arc<Block>;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for publication in batch.publications {
            out.extend_from_slice(publication.payload());
            out.push(b'\n');
        }
        Ok(())
    }

    fn seal(&self, bytes: Bytes, batch: &Batch<'_>, _: Option<Place<'_>>) -> Arc<Block> {
        Arc::new(Block::new(bytes, batch.publications.len() as u64))
    }
}

/// An in-memory broker for several nodes; it keeps no history.
#[derive(Debug, Default)]
pub(crate) struct Bus {
    nodes: Mutex<Vec<(String, Arc<Dispatcher>)>>,
    registered: Mutex<BTreeMap<String, Bytes>>,
    /// The clients that are present, by channel and client, each with its node.
    present: Mutex<BTreeMap<(ChannelName, String), (String, ClientInfo)>>,
    calls: Mutex<Vec<String>>,
    /// If set, subscribing waits for this notification.
    pub(crate) gate: Mutex<Option<Arc<Notify>>>,
    pub(crate) is_away: AtomicBool,
    pub(crate) refuses: AtomicBool,
    is_up: AtomicBool,
    kept: Mutex<Vec<(String, Bytes)>>,
}

impl Bus {
    pub(crate) async fn tell(&self, events: Vec<Event>) {
        self.tell_one(None, events).await;
    }

    async fn tell_one(&self, to: Option<&str>, events: Vec<Event>) {
        let nodes = self.nodes.lock().clone();
        for (id, node) in nodes {
            if to.is_none_or(|to| to == id) {
                node.ingest(events.clone()).await;
            }
        }
    }

    /// Returns the number of nodes in the registry.
    pub(crate) fn registered(&self) -> usize {
        self.registered.lock().len()
    }

    /// Removes a node from the registry, as if its lease had ended.
    pub(crate) fn end_lease(&self, node: &str) {
        self.registered.lock().remove(node);
        self.present.lock().retain(|_, (of, _)| of != node);
    }

    fn present(&self, channel: &ChannelName) -> Vec<ClientInfo> {
        let present = self.present.lock();
        let present = present.iter().filter(|((of, _), _)| of == channel);
        present.map(|(_, (_, info))| info.clone()).collect()
    }

    /// Stores a revocation without notifying any node.
    pub(crate) fn keep_for_test(&self, revocation: &crate::auth::Revocation) {
        let value = serde_json::to_vec(revocation).unwrap();
        self.kept.lock().push(("test".to_owned(), value.into()));
    }

    pub(crate) fn set_link(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::SeqCst);
    }

    fn note(&self, call: String) {
        self.calls.lock().push(call);
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls.lock().clone()
    }

    fn check(&self) -> Result<(), BrokerError> {
        if self.refuses.load(Ordering::SeqCst) {
            let reason = "test".to_owned();
            return Err(BrokerError::Refused { reason });
        }
        match self.is_away.load(Ordering::SeqCst) {
            true => Err(BrokerError::Away {
                reason: "test".to_owned(),
            }),
            false => Ok(()),
        }
    }
}

/// The connection of a node to its bus.
#[derive(Debug)]
struct Seat {
    bus: Arc<Bus>,
    node: String,
}

impl Broker for Seat {
    fn publish<'a>(
        &'a self,
        channel: &'a ChannelName,
        publish: Publish,
    ) -> BoxFuture<'a, Result<Published, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            let publication = Publication::new(publish.payload);
            let channel = channel.clone();
            self.bus
                .tell(vec![Event::Publication {
                    channel,
                    publication,
                }])
                .await;
            Ok(Published::default())
        })
    }

    fn subscribe<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.bus.note(format!("+{channel}"));
            let gate = self.bus.gate.lock().clone();
            if let Some(gate) = gate {
                gate.notified().await;
            }
            self.bus.check()
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let gate = self.bus.gate.lock().clone();
            if let Some(gate) = gate {
                gate.notified().await;
            }
            self.bus.note(format!("-{channel}"));
        })
    }

    fn history<'a>(
        &'a self,
        _: &'a ChannelName,
        _: StreamOptions,
        _: HistoryRequest,
    ) -> BoxFuture<'a, Result<History, BrokerError>> {
        Box::pin(async { Err(BrokerError::NoHistory) })
    }

    fn remove_history<'a>(
        &'a self,
        _: &'a ChannelName,
        _: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async { Err(BrokerError::NoHistory) })
    }

    fn send_control<'a>(
        &'a self,
        to: Option<&'a str>,
        message: Bytes,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            self.bus.tell_one(to, vec![Event::Control(message)]).await;
            Ok(())
        })
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn beat(&self, details: Bytes) -> BoxFuture<'_, Result<Beat, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            let mut registered = self.bus.registered.lock();
            let is_new = registered.insert(self.node.clone(), details).is_none();
            Ok(Beat {
                nodes: registered.len(),
                is_new,
                has_lost_presence: is_new,
            })
        })
    }

    fn deregister(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            self.bus.end_lease(&self.node);
            self.bus.check()
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
            self.bus.check()?;
            if !self.bus.registered.lock().contains_key(&self.node) {
                return Err(BrokerError::LeaseEnded);
            }
            let mut present = self.bus.present.lock();
            for change in changes {
                let key = (change.channel.clone(), change.info.client.to_string());
                let entry = (self.node.clone(), change.info.clone());
                match change.is_present {
                    true => _ = present.insert(key, entry),
                    false => _ = present.remove(&key),
                }
            }
            Ok(())
        })
    }

    fn reset_presence(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async move {
            let mut present = self.bus.present.lock();
            present.retain(|_, (of, _)| *of != self.node);
            Ok(())
        })
    }

    fn presence<'a>(
        &'a self,
        channel: &'a ChannelName,
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<ClientInfo>, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            Ok(self.bus.present(channel))
        })
    }

    fn presence_counts<'a>(
        &'a self,
        channel: &'a ChannelName,
    ) -> BoxFuture<'a, Result<Counts, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            let present = self.bus.present(channel);
            let users: HashSet<_> = present.iter().map(|info| &info.user).collect();
            Ok(Counts {
                clients: present.len(),
                users: users.len(),
            })
        })
    }

    fn nodes(&self) -> BoxFuture<'_, Result<Vec<String>, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            Ok(self.bus.registered.lock().keys().cloned().collect())
        })
    }

    fn node_details(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            Ok(self.bus.registered.lock().values().cloned().collect())
        })
    }

    fn is_pattern(&self, _: &ChannelName) -> bool {
        false
    }

    fn name(&self) -> &'static str {
        "bus"
    }

    fn probe_write(&self) -> BoxFuture<'_, Result<(), BrokerError>> {
        Box::pin(async { self.bus.check() })
    }

    fn keep<'a>(
        &'a self,
        id: &'a str,
        value: Bytes,
        _: Option<u64>,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            self.bus.kept.lock().push((id.to_owned(), value));
            Ok(())
        })
    }

    fn kept(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(async move {
            self.bus.check()?;
            let kept = self.bus.kept.lock();
            Ok(kept.iter().map(|(_, value)| value.clone()).collect())
        })
    }

    fn link(&self) -> LinkState {
        match self.bus.is_up.load(Ordering::SeqCst) {
            false => LinkState::Deaf,
            true => LinkState::Up {
                round_trip: Duration::ZERO,
            },
        }
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// Starts a node on `bus` whose workers run in tasks of the test.
pub(crate) fn node_on(bus: &Arc<Bus>, workers: u16) -> (Arc<Node>, Vec<Arc<Worker>>) {
    let parts = Dispatcher::new(workers);
    let id = linerate_broker::incarnation::random();
    bus.nodes.lock().push((id.clone(), parts.0.clone()));
    let (bus, node) = (bus.clone(), id);
    let broker = Arc::new(Seat { bus, node });
    let node = Node::start(options(), parts, broker, Handle::current());
    (node.clone(), run(&node, workers))
}

/// Starts a node on the embedded broker.
pub(crate) fn node_in_memory() -> (Arc<Node>, Arc<Worker>) {
    node_within(Budget::unbounded())
}

/// Starts a node on the embedded broker whose memory is counted in `budget`.
pub(crate) fn node_within(budget: Budget) -> (Arc<Node>, Arc<Worker>) {
    let parts = Dispatcher::within(budget, 1);
    let options_of_broker = linerate_broker::options::BrokerOptions::default();
    let broker = linerate_broker::memory::Memory::new(&options_of_broker, parts.0.clone()).unwrap();
    let node = Node::start(options(), parts, Arc::new(broker), Handle::current());
    let worker = run(&node, 1).remove(0);
    (node, worker)
}

pub(crate) fn options() -> NodeOptions {
    NodeOptions {
        name: "test".to_owned(),
        encodings: vec![Arc::new(Lines)],
        tail_encoding: Arc::new(TailEncoding),
        namespaces: Namespaces::new(&Config::default()),
        seed: 0,
        linger: Duration::from_secs(5),
        revocations_max: 100,
        filter: Config::default().filter,
    }
}

pub(crate) fn run(node: &Arc<Node>, workers: u16) -> Vec<Arc<Worker>> {
    let workers: Vec<_> = (0..workers)
        .map(|index| Arc::new(node.worker(index)))
        .collect();
    for worker in workers.clone() {
        tokio::spawn(async move { worker.run().await });
    }
    workers
}

/// An outlet that records what it is given.
#[derive(Debug, Default)]
pub(crate) struct Memo {
    given: Mutex<VecDeque<Transmit>>,
    notices: Mutex<VecDeque<Notice>>,
    is_full: AtomicBool,
    arrived: Notify,
}

impl Outlet for Memo {
    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::SeqCst)
    }

    fn transmit(&self, transmit: Transmit) {
        self.given.lock().push_back(transmit);
        self.arrived.notify_one();
    }

    fn flush(&self) {}

    fn notify(&self, notice: Notice) {
        self.notices.lock().push_back(notice);
        self.arrived.notify_one();
    }

    fn pending_bytes(&self) -> usize {
        0
    }
}

impl Memo {
    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
    }

    pub(crate) async fn next(&self) -> Transmit {
        self.wait(|memo| memo.given.lock().pop_front()).await
    }

    pub(crate) async fn notice(&self) -> Notice {
        self.wait(|memo| memo.notices.lock().pop_front()).await
    }

    pub(crate) fn has_no_notice(&self) -> bool {
        self.notices.lock().is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.given.lock().is_empty()
    }

    /// Waits for at least `count` payloads.
    pub(crate) async fn payloads(&self, count: usize) -> Vec<String> {
        let mut payloads = Vec::new();
        while payloads.len() < count {
            match self.next().await {
                Transmit::Block { block, .. } => {
                    let text = std::str::from_utf8(block.bytes()).unwrap();
                    payloads.extend(text.lines().map(str::to_owned));
                }
                other => panic!("{other:?} after {payloads:?}"),
            }
        }
        payloads
    }

    async fn wait<T>(&self, take: impl Fn(&Self) -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(taken) = take(self) {
                    return taken;
                }
                self.arrived.notified().await;
            }
        };
        timeout(PATIENCE, waiting)
            .await
            .expect("nothing arrived in time")
    }
}

/// Connects a client whose outlet records what it is given.
pub(crate) fn connect(worker: &Worker, user: &str, client: &str) -> (ClientId, Arc<Memo>) {
    connect_with(worker, (user, client), &("lines", "memory"))
}

/// Like [`connect`], with a protocol.
pub(crate) fn connect_with(
    worker: &Worker,
    (user, client): (&str, &str),
    dialect: &'static DialectName,
) -> (ClientId, Arc<Memo>) {
    let memo = Arc::new(Memo::default());
    let connection = Connection {
        who: Arc::new(ClientInfo {
            user: user.into(),
            client: client.into(),
            ..ClientInfo::default()
        }),
        dialect,
        peer: None,
        agent: "".into(),
        since_ms: 0,
    };
    (worker.connect(connection, memo.clone()), memo)
}

pub(crate) fn subscription(name: &str) -> Subscribe {
    Subscribe {
        channel: channel(name),
        stream: PLAIN,
        ring: ChannelOptions::default(),
        options: SubscriptionOptions::new(EncodingId(0)),
        from: StartPosition::Live,
        trail: Trail::default(),
        recovery: Recovery::Reply {
            publications_max: 100,
        },
        presence: None,
        is_announced: false,
        follows: false,
    }
}

pub(crate) fn present(name: &str, user: &str, client: &str) -> Subscribe {
    Subscribe {
        presence: Some(Arc::new(ClientInfo {
            user: user.into(),
            client: client.into(),
            connection: None,
            channel: None,
        })),
        is_announced: true,
        follows: true,
        ..subscription(name)
    }
}

pub(crate) async fn publish(node: &Node, name: &str, payload: &str) {
    let publish = Publish {
        payload: payload.to_owned().into(),
        info: None,
        tags: Vec::new(),
        idempotency_key: None,
        options: PLAIN,
    };
    node.publisher
        .publish(&channel(name), publish)
        .await
        .unwrap();
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, holds: impl Fn() -> bool) {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, looking)
        .await
        .unwrap_or_else(|_| panic!("{what}"));
}
