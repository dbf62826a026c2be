//! The simulated world: time, nodes, the broker, clients, and what happens to them.

mod faults;

use std::sync::Arc;

use linerate_hub::ChannelName;
use linerate_testkit::Rng;
use parking_lot::Mutex;

use super::{
    client::Client,
    machine::{Machine, WORKERS},
    network::{Network, Place, SharedNetwork, shard_of},
    packet::{Connection, Message, Packet},
    pipe::Pipe,
    seen::Seen,
    server::Server,
};
use crate::session::SessionEnvironment;

/// The longest time that a process runs without looking at the network, in milliseconds.
const ROUND_MAX_MS: u64 = 500;

/// The longest time after which clients connect again, in milliseconds.
const RECONNECT_MAX_MS: usize = 4_000;

/// The zones over which nodes and servers are spread.
const ZONES: usize = 3;

/// The servers of each shard: a primary and one that can replace it.
const COPIES: usize = 2;

/// The number of nodes, clients and so on in a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    nodes: usize,
    clients: usize,
    /// The number of clients for which each stands.
    weight: u32,
    channels: usize,
    shards: usize,
    steps: usize,
}

/// What stops, and what it keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Nats,
    Redis,
}

/// What happens to a world.
#[derive(Clone, Copy, Debug)]
enum Mix {
    Everything,
    /// Partitions and failovers, between which clients have the time to move to other nodes.
    TwoMasters,
}

/// A place for a node.
#[derive(Debug)]
struct Slot {
    zone: usize,
    machine: Option<Machine>,
    /// Until when the node is frozen, in milliseconds.
    frozen_until: Option<u64>,
    /// When the node is started, if it is not running.
    starts_at: u64,
    /// When the node is shut down.
    ends_at: Option<u64>,
}

/// A simulated world.
#[derive(Debug)]
pub(super) struct World {
    rng: Rng,
    scale: Scale,
    kind: Kind,
    mix: Mix,
    now: u64,
    network: SharedNetwork,
    servers: Vec<Server>,
    /// The servers that are stopped, each with the time at which it starts again.
    stopped: Vec<(usize, u64)>,
    runs: u64,
    slots: Vec<Slot>,
    /// The slots whose nodes are still to be replaced in a rolling deploy.
    to_deploy: Vec<usize>,
    clients: Vec<Client>,
    channels: Vec<ChannelName>,
    environment: Arc<SessionEnvironment>,
    seen: Seen,
}

/// What nodes cost their broker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traffic {
    /// The average number of nodes that a publication has reached.
    pub(super) reached: f64,
    /// The number that it reaches if the subscribers of a channel are on random nodes.
    pub(super) expected: f64,
    /// How often a node has renewed its lease, in a second.
    pub(super) beats: f64,
}

impl Scale {
    const MEDIUM: Self = Self {
        nodes: 30,
        clients: 300,
        weight: 1,
        channels: 24,
        shards: 1,
        steps: 0,
    };

    /// Most seeds are small; a few have as many nodes as a large service.
    fn of(seed: u64) -> Self {
        match seed % 500 {
            499 => Self {
                nodes: 200,
                clients: 400,
                weight: 13_000,
                channels: 40,
                shards: 3,
                steps: 20,
            },
            place => Self {
                nodes: 1 + place as usize % 4,
                clients: 6,
                weight: [1, 1, 100][place as usize % 3],
                channels: 4,
                shards: 1 + place as usize % 2,
                steps: 100,
            },
        }
    }
}

impl World {
    pub(super) fn new(seed: u64, environment: &Arc<SessionEnvironment>) -> Self {
        Self::with_scale(seed, Scale::of(seed), environment)
    }

    /// Creates a world in which Redis often has two masters at once.
    pub(super) fn with_two_masters(seed: u64, environment: &Arc<SessionEnvironment>) -> Self {
        Self {
            kind: Kind::Redis,
            mix: Mix::TwoMasters,
            ..Self::new(seed, environment)
        }
    }

    /// Creates a world to [measure](Self::measure).
    pub(super) fn medium(environment: &Arc<SessionEnvironment>) -> Self {
        Self::with_scale(0, Scale::MEDIUM, environment)
    }

    fn with_scale(seed: u64, scale: Scale, environment: &Arc<SessionEnvironment>) -> Self {
        let mut rng = Rng::new(seed);
        let place = |zone| Place {
            zone,
            is_cut_off: false,
        };
        // The servers of a shard are in different zones.
        let servers = (0..scale.shards * COPIES).map(|server| place(server % ZONES));
        let primaries = (0..scale.shards).collect();
        let network = Network::new(rng.next_u64(), servers.collect(), primaries);
        let names = (0..scale.channels)
            .map(|number| format!("{}:{number}", ["d", "p", "t", "l"][number % 4]));
        let names = names.map(|name| ChannelName::new(&name).expect("a valid name"));
        let channels: Vec<ChannelName> = names.collect();
        let clients = (0..scale.clients).map(|number| {
            let first = rng.below(channels.len());
            let count = 1 + rng.below(3);
            let followed =
                (first..first + count).map(|index| channels[index % channels.len()].clone());
            Client::new(number, scale.weight, followed.collect())
        });
        let clients: Vec<Client> = clients.collect();
        let subscriptions = clients
            .iter()
            .map(|it| it.follows.len() as u64 * u64::from(it.weight));
        let seen = Seen {
            subscriptions_max: subscriptions.sum(),
            ..Seen::default()
        };
        let slots = (0..scale.nodes).map(|number| Slot {
            zone: number % ZONES,
            machine: None,
            frozen_until: None,
            starts_at: number as u64,
            ends_at: None,
        });
        let servers = (0..scale.shards * COPIES).map(|server| Server::new(server as u64 + 1));
        Self {
            kind: *rng.pick(&[Kind::Nats, Kind::Redis]),
            mix: Mix::Everything,
            now: 0,
            network: Arc::new(Mutex::new(network)),
            runs: (scale.shards * COPIES) as u64,
            servers: servers.collect(),
            stopped: Vec::new(),
            slots: slots.collect(),
            to_deploy: Vec::new(),
            clients,
            channels,
            environment: environment.clone(),
            seen,
            rng,
            scale,
        }
    }

    /// Lets random things happen, then repairs everything, and checks that each client has the
    /// newest publication of each of its channels.
    pub(super) fn run(mut self) -> Seen {
        self.pass(1_000);
        for _ in 0..self.scale.steps {
            self.step();
            let wait = match (self.rng.below(50), self.mix) {
                (0, _) => 8_000,
                (_, Mix::Everything) => 20,
                (_, Mix::TwoMasters) => 1_500,
            };
            let wait = 1 + self.rng.below(wait) as u64;
            self.pass(wait);
        }
        self.heal();
        self.check();
        self.seen
    }

    /// Publishes without faults, and returns what that costs the broker.
    pub(super) fn measure(mut self) -> Traffic {
        self.pass(6_000);
        let (start, beats) = (self.now, self.servers[0].beats);
        let before = self.servers[0].carried;
        for channel in 0..self.channels.len() {
            self.publish_once(channel, true);
            self.pass(500);
        }
        let nodes = self.slots.len() as f64;
        let reach = |channel: &ChannelName| {
            let clients = self.clients.iter();
            let follows = clients.flat_map(|client| &client.follows);
            let subscribers = follows.filter(|it| it.channel == *channel).count();
            nodes * (1.0 - (1.0 - 1.0 / nodes).powf(subscribers as f64))
        };
        let published = self.channels.len() as f64;
        let seconds = (self.now - start) as f64 / 1_000.0;
        Traffic {
            reached: (self.servers[0].carried - before) as f64 / published,
            expected: self.channels.iter().map(reach).sum::<f64>() / published,
            beats: (self.servers[0].beats - beats) as f64 / seconds / nodes,
        }
    }

    /// Repairs everything, and lets everything settle.
    fn heal(&mut self) {
        self.end_partitions();
        for client in &mut self.clients {
            client.is_stalled = false;
        }
        self.to_deploy.clear();
        // Long enough for nodes that are busy, for links that are dead, and for leases.
        self.pass(20_000);
        // Losses at the end of a stream are detected with the next publication.
        for channel in 0..self.channels.len() {
            self.publish_once(channel, true);
        }
        self.pass(3_000);
    }

    fn check(&self) {
        for client in &self.clients {
            assert!(client.is_subscribed(), "{} ms: {client:?}", self.now);
            for follow in &client.follows {
                let primary = self.network.lock().primaries[self.shard_of(&follow.channel)];
                let newest = self.servers[primary].newest_number(&follow.channel);
                assert_eq!(follow.newest, Some(newest), "{client:?}");
            }
        }
        for slot in &self.slots {
            let machine = slot.machine.as_ref().expect("all nodes run");
            assert_eq!(
                machine.known_nodes(),
                self.slots.len(),
                "node {}",
                machine.number
            );
        }
    }

    /// Lets time pass.
    fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while self.now < end {
            let next = self.network.lock().next_at().unwrap_or(end);
            let round_end = end.min(self.now + ROUND_MAX_MS);
            self.now = next.clamp(self.now + 1, round_end.max(self.now + 1));
            self.network.lock().now = self.now;
            self.start_what_is_due();
            self.carry();
            self.run_machines();
            self.run_clients();
        }
    }

    fn start_what_is_due(&mut self) {
        let now = self.now;
        let due: Vec<usize> = {
            let due = self
                .stopped
                .extract_if(.., |(_, starts_at)| *starts_at <= now);
            due.map(|(server, _)| server).collect()
        };
        for server in due {
            let mut network = self.network.lock();
            if network.primaries.contains(&server) {
                network.serving.insert(server);
            }
        }
        self.continue_deploy();
        for slot in 0..self.slots.len() {
            let is_due = self.slots[slot].starts_at <= now;
            if is_due && self.slots[slot].machine.is_none() {
                self.start(slot);
            }
        }
    }

    fn start(&mut self, slot: usize) {
        let number = {
            let mut network = self.network.lock();
            network.nodes.push(Place {
                zone: self.slots[slot].zone,
                is_cut_off: false,
            });
            network.nodes.len() - 1
        };
        let machine = Machine::start(number, &self.network, &self.environment);
        self.slots[slot].machine = Some(machine);
    }

    /// Replaces the next node of a rolling deploy: it sends its clients away, and ends a second
    /// later.
    fn continue_deploy(&mut self) {
        let is_ending = self.slots.iter().any(|slot| slot.ends_at.is_some());
        if !is_ending && let Some(slot) = self.to_deploy.pop() {
            let slot = &mut self.slots[slot];
            if let (Some(machine), None) = (&mut slot.machine, slot.frozen_until) {
                machine.drain();
                slot.ends_at = Some(self.now + 1_000);
            }
        }
        for slot in 0..self.slots.len() {
            let Some(ends_at) = self.slots[slot].ends_at else {
                continue;
            };
            let Some(machine) = &mut self.slots[slot].machine else {
                continue;
            };
            // A node that cannot say goodbye in time is killed.
            if machine.has_ended() || self.now >= ends_at + 5_000 {
                self.end(slot, 100, true);
            } else if self.now >= ends_at && !machine.is_ending() {
                machine.shut_down();
            }
        }
    }

    /// Delivers the packets that have arrived.
    fn carry(&mut self) {
        loop {
            let received = self.network.lock().receive();
            let Some((connection, packet)) = received else {
                return;
            };
            match packet {
                Packet::ToNode(message) => {
                    if let Some(machine) = machine_of(&mut self.slots, connection.node) {
                        machine.link.receive(connection, message);
                        machine.is_due = true;
                    }
                }
                Packet::ToServer { call, request } => {
                    let mut sent = Vec::new();
                    let mut send = |to, message| sent.push((to, message));
                    let is_serving = self.network.lock().serving.contains(&connection.server);
                    match is_serving {
                        true => {
                            let server = &mut self.servers[connection.server];
                            server.handle(self.now, connection, request, call, &mut send);
                        }
                        false => send(connection, Message::Closed),
                    }
                    self.send(sent);
                }
            }
        }
    }

    fn send(&self, messages: Vec<(Connection, Message)>) {
        let mut network = self.network.lock();
        for (connection, message) in messages {
            network.send(connection, Packet::ToNode(message));
        }
    }

    fn run_machines(&mut self) {
        for slot in &mut self.slots {
            let Some(machine) = &mut slot.machine else {
                continue;
            };
            if let Some(until) = slot.frozen_until {
                if self.now < until {
                    continue;
                }
                slot.frozen_until = None;
                machine.thaw(self.now);
            }
            if machine.is_due || machine.has_slept(self.now, ROUND_MAX_MS) {
                machine.run_until(self.now);
            }
        }
    }

    fn run_clients(&mut self) {
        for index in 0..self.clients.len() {
            let client = &mut self.clients[index];
            match &client.seat {
                Some(seat) => {
                    let node = seat.node;
                    let must_run = client.act(self.now, &mut self.seen);
                    if must_run && let Some(machine) = machine_of(&mut self.slots, node) {
                        machine.is_due = true;
                    }
                }
                None if client.retry_at <= self.now => self.connect(index),
                None => {}
            }
        }
    }

    /// Connects a client to a random node, as a load balancer does.
    fn connect(&mut self, index: usize) {
        let (slot, worker) = (
            self.rng.below(self.slots.len()),
            self.rng.below(WORKERS.into()),
        );
        let client = &mut self.clients[index];
        let Some(machine) = &mut self.slots[slot].machine else {
            client.retry_at = self.now + self.rng.below(RECONNECT_MAX_MS) as u64;
            return;
        };
        let pipe = Pipe::new(client.weight);
        let name = format!("client-{index}-{}", client.connections);
        let commands = machine.accept(worker, client.dialect(), name, pipe.clone());
        client.sit(self.now, machine.number, pipe, commands);
    }

    fn shard_of(&self, channel: &ChannelName) -> usize {
        shard_of(channel, self.scale.shards)
    }
}

/// Returns the running process of a node.
fn machine_of(slots: &mut [Slot], node: usize) -> Option<&mut Machine> {
    let mut machines = slots.iter_mut().filter_map(|slot| slot.machine.as_mut());
    machines.find(|machine| machine.number == node)
}
