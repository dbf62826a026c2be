//! The sequence of simulated events.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    ops::AddAssign,
    sync::Arc,
    time::Duration,
};

use linerate_broker::{Event, Ingest, StreamOptions};
use linerate_hub::{ChannelOptions, EncodingId, SubscriptionOptions};
use linerate_testkit::Rng;
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::sleep};

use super::{
    client::{Client, Seat},
    link::Link,
    server::{KEPT, LIVE, Server},
};
use crate::{
    config::Config,
    node::{
        Dispatcher, Node, Recovery, StartPosition, Subscribe, Worker,
        tests::{channel, connect, options, run, subscription},
    },
    protocol::{centrifuge::stream, command},
    session::{Identity, Requester, Settings},
};

const CHANNELS: [&str; 3] = ["a", "b", LIVE];
const CLIENTS: usize = 6;
const NODES: usize = 2;

const DURABLE: StreamOptions = StreamOptions {
    is_durable: true,
    size_max: KEPT,
    ttl: Duration::from_secs(60),
};

/// Small enough that a client falls behind if it does not read for a while.
const RING: ChannelOptions = ChannelOptions {
    ring_messages_max: 6,
    ring_bytes_max: 1 << 20,
};

/// Longer than everything that the test does not wait for explicitly.
const LONG: Duration = Duration::from_secs(2);

/// Counts of what has happened.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) publications: u64,
    pub(super) gaps: u64,
    pub(super) recovered: u64,
    pub(super) unrecovered: u64,
    /// Subscriptions of SDKs that a gap has ended.
    pub(super) ended: u64,
    /// Publications of a new epoch in answers that could not recover everything.
    pub(super) followed: u64,
    /// A digest of everything that clients have seen, in order.
    pub(super) digest: u64,
}

impl Seen {
    /// Adds to the digest what a client has seen.
    pub(super) fn record(&mut self, what: impl Hash) {
        let mut hasher = DefaultHasher::new();
        (self.digest, what).hash(&mut hasher);
        self.digest = hasher.finish();
    }
}

impl AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.publications += other.publications;
        self.gaps += other.gaps;
        self.recovered += other.recovered;
        self.unrecovered += other.unrecovered;
        self.ended += other.ended;
        self.followed += other.followed;
        self.digest ^= other.digest;
    }
}

/// A node and its link.
struct Place {
    link: Arc<Link>,
    dispatcher: Arc<Dispatcher>,
    workers: Vec<Arc<Worker>>,
    /// Keeps the node alive.
    _node: Arc<Node>,
}

pub(super) struct Play {
    rng: Rng,
    server: Arc<Mutex<Server>>,
    places: Vec<Place>,
    clients: Vec<Client>,
    seen: Seen,
}

impl Play {
    pub(super) fn new(seed: u64) -> Self {
        let clients = (0..CLIENTS).map(|index| Client {
            channel: index % CHANNELS.len(),
            live: (CHANNELS[index % CHANNELS.len()] == LIVE).then(|| channel(LIVE)),
            ..Client::default()
        });
        Self {
            rng: Rng::new(seed),
            server: Arc::new(Mutex::new(Server::new())),
            places: Vec::new(),
            clients: clients.collect(),
            seen: Seen::default(),
        }
    }

    /// Runs `steps` random steps, then repairs everything, and checks that each subscribed client
    /// has reached the newest position.
    pub(super) async fn run(mut self, steps: usize) -> Seen {
        self.places = (0..NODES).map(|_| self.place()).collect();
        for _ in 0..steps {
            self.step().await;
            self.look().await;
        }
        self.heal().await;
        self.seen
    }

    fn place(&self) -> Place {
        let link = Link::new(self.server.clone());
        let parts = Dispatcher::new(2);
        let dispatcher = parts.0.clone();
        let node = Node::start(options(), parts, link.clone(), Handle::current());
        Place {
            link,
            dispatcher,
            workers: run(&node, 2),
            _node: node,
        }
    }

    async fn step(&mut self) {
        match self.rng.below(100) {
            0..30 => self.publish(),
            30..55 => self.arrive().await,
            55..59 => self.cut().await,
            59..66 => self.mend().await,
            66..67 => self.restart().await,
            67..82 => self.join(),
            82..86 => self.leave(),
            86..92 => self.stall_or_go_on(),
            92..94 => self.slow_down(),
            94..98 => sleep(Duration::from_millis(self.rng.below(20) as u64)).await,
            _ => sleep(Duration::from_millis(self.rng.below(8_000) as u64)).await,
        }
    }

    /// Lets a random part of the clients read what they were given.
    async fn look(&mut self) {
        tokio::task::yield_now().await;
        for client in &mut self.clients {
            client.settle_joining(&mut self.seen).await;
            if self.rng.below(2) == 0 {
                client.read(&mut self.seen);
            }
        }
    }

    fn publish(&mut self) {
        let channel = channel(CHANNELS[self.rng.below(CHANNELS.len())]);
        for _ in 0..*self.rng.pick(&[1, 1, 2, 5]) {
            let event = self.server.lock().publish(&channel);
            for place in &self.places {
                place.link.send(&event);
            }
        }
    }

    async fn arrive(&mut self) {
        let place = self.rng.below(NODES);
        let count = *self.rng.pick(&[1, 2, 4, 100]);
        self.ingest(place, count).await;
    }

    async fn ingest(&self, place: usize, count: usize) {
        let place = &self.places[place];
        let events = place.link.arrive(count);
        if !events.is_empty() {
            place.dispatcher.ingest(events).await;
        }
    }

    async fn cut(&mut self) {
        let place = self.rng.below(NODES);
        self.cut_one(place).await;
    }

    async fn cut_one(&self, place: usize) {
        let place = &self.places[place];
        let event: Event = place.link.cut();
        place.dispatcher.ingest(vec![event]).await;
    }

    async fn mend(&mut self) {
        let place = self.rng.below(NODES);
        self.mend_one(place).await;
    }

    async fn mend_one(&self, place: usize) {
        let place = &self.places[place];
        if let Some(event) = place.link.mend() {
            place.dispatcher.ingest(vec![event]).await;
        }
    }

    /// Restarts the server, which loses its streams, and cuts every link to it.
    async fn restart(&mut self) {
        self.server.lock().restart();
        for place in 0..NODES {
            self.cut_one(place).await;
        }
    }

    /// Lets a client connect, or try again to subscribe.
    fn join(&mut self) {
        let client = self.rng.below(CLIENTS);
        let worker = self.rng.pick(&self.places).workers[self.rng.below(2)].clone();
        let is_streamed = self.rng.below(2) == 0;
        let client = &mut self.clients[client];
        let seat = client.seat.get_or_insert_with(|| {
            let (id, memo) = connect(&worker, "", "c");
            Seat {
                worker,
                id,
                memo,
                joining: None,
                is_subscribed: false,
                is_streamed,
                ends_with_gap: false,
            }
        });
        if seat.is_subscribed || seat.joining.is_some() {
            return;
        }
        let wanted = match client.live {
            Some(_) => as_an_sdk(seat.worker.node()),
            None => with_recovery(client, is_streamed),
        };
        let Some(seat) = &mut client.seat else { return };
        seat.is_streamed = is_streamed;
        seat.ends_with_gap = wanted.options.positioned;
        let (worker, id) = (seat.worker.clone(), seat.id);
        seat.joining = Some(tokio::spawn(
            async move { worker.subscribe(id, wanted).await },
        ));
    }

    /// Disconnects a client, which loses what it has not read.
    fn leave(&mut self) {
        let client = self.rng.below(CLIENTS);
        if let Some(seat) = self.clients[client].seat.take() {
            if let Some(joining) = seat.joining {
                joining.abort();
            }
            seat.worker.disconnect(seat.id);
            self.clients[client].forget_gaps();
        }
    }

    fn stall_or_go_on(&mut self) {
        let client = self.rng.below(CLIENTS);
        let is_full = self.rng.below(2) == 0;
        if let Some(seat) = &self.clients[client].seat {
            seat.memo.set_full(is_full);
            if !is_full {
                seat.worker.writable(seat.id);
            }
        }
    }

    fn slow_down(&mut self) {
        let delay = *self.rng.pick(&[0, 2, 50]);
        self.rng.pick(&self.places).link.set_delay(delay);
    }

    async fn heal(&mut self) {
        for place in 0..NODES {
            self.mend_one(place).await;
        }
        for client in 0..CLIENTS {
            if let Some(seat) = &self.clients[client].seat {
                seat.memo.set_full(false);
                seat.worker.writable(seat.id);
            }
        }
        self.settle().await;
        // Losses at the end of a stream are detected with the next publication.
        for name in CHANNELS {
            let event = self.server.lock().publish(&channel(name));
            for place in &self.places {
                place.link.send(&event);
            }
        }
        self.settle().await;
        for client in &self.clients {
            let newest = self
                .server
                .lock()
                .newest(&channel(CHANNELS[client.channel]));
            let is_there = client.seat.as_ref().is_some_and(|seat| seat.is_subscribed);
            assert!(!is_there || client.newest == Some(newest), "{client:?}");
        }
    }

    /// Lets everything arrive and be read.
    async fn settle(&mut self) {
        for place in 0..NODES {
            self.ingest(place, usize::MAX).await;
        }
        sleep(LONG).await;
        for client in &mut self.clients {
            client.settle_joining(&mut self.seen).await;
            client.read(&mut self.seen);
        }
    }
}

/// Subscribes to a durable channel from the client's last position.
fn with_recovery(client: &Client, is_streamed: bool) -> Subscribe {
    let publications_max = 100;
    Subscribe {
        stream: DURABLE,
        ring: RING,
        from: client
            .newest
            .clone()
            .map_or(StartPosition::Newest, StartPosition::After),
        recovery: match is_streamed {
            true => Recovery::Stream { publications_max },
            false => Recovery::Reply { publications_max },
        },
        ..subscription(CHANNELS[client.channel])
    }
}

/// Subscribes to the channel without a stream as a session does for an SDK, with default channel
/// options.
fn as_an_sdk(node: &Arc<Node>) -> Subscribe {
    let mut config = Config::default();
    config.channel.allow_subscribe = true;
    config.channel.allow_anonymous = true;
    let settings = Settings::new(config, None).unwrap();
    let requester = Requester {
        settings: &settings,
        node,
        identity: &Identity::new("c", None),
        dialect: &stream::EVENTS,
    };
    let plan = requester.plan(channel(LIVE), &command::Subscribe::default(), None);
    let wanted = plan.unwrap().subscribe;
    assert_eq!(wanted.from, StartPosition::Live);
    Subscribe {
        ring: RING,
        options: SubscriptionOptions {
            encoding: EncodingId(0),
            ..wanted.options
        },
        ..wanted
    }
}
