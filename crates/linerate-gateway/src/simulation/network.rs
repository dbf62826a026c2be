//! The simulated network between nodes and brokers: connections that keep the order of what they
//! carry, and that partitions stall.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
};

use linerate_hub::ChannelName;
use linerate_testkit::Rng;
use parking_lot::Mutex;

use super::packet::{Connection, Packet};

/// Where a node or a server is, and whether others can reach it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) zone: usize,
    pub(super) is_cut_off: bool,
}

/// The packets that are on their way.
#[derive(Debug)]
pub(super) struct Network {
    /// The time, in milliseconds.
    pub(super) now: u64,
    pub(super) nodes: Vec<Place>,
    pub(super) servers: Vec<Place>,
    /// The zone that is cut off from all others.
    pub(super) isolated: Option<usize>,
    /// The server of each shard that nodes should use.
    pub(super) primaries: Vec<usize>,
    /// The servers that accept connections: primaries that run, and former ones that have not
    /// noticed that they were replaced.
    pub(super) serving: BTreeSet<usize>,
    rng: Rng,
    sent: u64,
    connections: u64,
    underway: BTreeMap<(u64, u64), (Connection, Packet)>,
    /// What waits for the end of a partition, in order.
    stalled: Vec<(Connection, Packet)>,
    /// When the newest packet of a connection arrives, in each direction.
    newest: BTreeMap<(Connection, bool), u64>,
}

/// The network as nodes and the world share it, all on one thread.
pub(super) type SharedNetwork = Arc<Mutex<Network>>;

/// Returns the shard of a channel.
pub(super) fn shard_of(channel: &ChannelName, shards: usize) -> usize {
    let sum: usize = channel.as_str().bytes().map(usize::from).sum();
    sum % shards
}

impl Network {
    pub(super) fn new(seed: u64, servers: Vec<Place>, primaries: Vec<usize>) -> Self {
        Self {
            now: 0,
            nodes: Vec::new(),
            serving: primaries.iter().copied().collect(),
            servers,
            isolated: None,
            primaries,
            rng: Rng::new(seed),
            sent: 0,
            connections: 0,
            underway: BTreeMap::new(),
            stalled: Vec::new(),
            newest: BTreeMap::new(),
        }
    }

    /// Returns a connection to the server that a node finds for a shard: the primary, or another
    /// one that is isolated together with the node and still believes to be the primary.
    pub(super) fn dial(&mut self, node: usize, shard: usize) -> Option<Connection> {
        let shards = self.primaries.len();
        let primary = self.primaries[shard];
        let others = (0..self.servers.len()).filter(|server| server % shards == shard);
        let mut servers = std::iter::once(primary).chain(others);
        let server = servers
            .find(|server| self.serving.contains(server) && self.is_connected(node, *server))?;
        self.connections += 1;
        Some(Connection {
            number: self.connections,
            node,
            server,
        })
    }

    /// Sends a packet, which arrives after all earlier ones of its connection and direction.
    pub(super) fn send(&mut self, connection: Connection, packet: Packet) {
        let is_request = matches!(packet, Packet::ToServer { .. });
        let latency = 1 + *self.rng.pick(&[0, 0, 1, 2, 10]);
        let newest = self.newest.entry((connection, is_request)).or_default();
        *newest = (*newest).max(self.now + latency);
        let at = *newest;
        self.insert(at, connection, packet);
    }

    /// Returns when the next packet arrives.
    pub(super) fn next_at(&self) -> Option<u64> {
        self.underway.keys().next().map(|(at, _)| *at)
    }

    /// Returns the next packet that has arrived by now.
    pub(super) fn receive(&mut self) -> Option<(Connection, Packet)> {
        loop {
            let next = self.underway.first_entry()?;
            if next.key().0 > self.now {
                return None;
            }
            let (connection, packet) = next.remove();
            if self.is_connected(connection.node, connection.server) {
                return Some((connection, packet));
            }
            self.stalled.push((connection, packet));
        }
    }

    /// Lets what was stalled continue, after a partition has ended.
    pub(super) fn resume(&mut self) {
        for (connection, packet) in mem::take(&mut self.stalled) {
            // Before everything that was sent later on the same connection.
            self.insert(self.now, connection, packet);
        }
    }

    /// Drops what is on its way to or from a node or server that has ended.
    pub(super) fn drop_packets(&mut self, is_lost: impl Fn(&Connection) -> bool) {
        self.underway
            .retain(|_, (connection, _)| !is_lost(connection));
        self.stalled.retain(|(connection, _)| !is_lost(connection));
        self.newest
            .retain(|(connection, _), _| !is_lost(connection));
    }

    fn insert(&mut self, at: u64, connection: Connection, packet: Packet) {
        self.sent += 1;
        self.underway.insert((at, self.sent), (connection, packet));
    }

    fn is_connected(&self, node: usize, server: usize) -> bool {
        let (node, server) = (self.nodes[node], self.servers[server]);
        let is_split = (self.isolated == Some(node.zone)) != (self.isolated == Some(server.zone));
        !node.is_cut_off && !server.is_cut_off && !is_split
    }
}

#[test]
fn copies_accept_no_connections() {
    let place = Place {
        zone: 0,
        is_cut_off: false,
    };
    let mut network = Network::new(1, vec![place; 2], vec![0]);
    network.nodes.push(place);
    let dial = |network: &mut Network| network.dial(0, 0).map(|it| it.server);
    assert_eq!(dial(&mut network), Some(0));
    network.servers[0].is_cut_off = true;
    assert_eq!(dial(&mut network), None);
    network.serving.insert(1);
    assert_eq!(dial(&mut network), Some(1));
}
