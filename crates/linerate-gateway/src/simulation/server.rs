//! The simulated broker: what Redis and NATS guarantee, and nothing more.
//!
//! Both forget who has subscribed when they stop. Redis also begins new streams, whether it is
//! restarted or replaced by a replica, because the newest publications may be lost. NATS with
//! JetStream keeps its streams, because it acknowledges a publication after a quorum has it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use linerate_broker::{Beat, History, HistoryRequest, registry::LEASE};
use linerate_hub::{ChannelName, Epoch, Publication, StreamPosition};

use super::packet::{Answer, Connection, Message, Request};

/// The number of publications that a stream keeps.
pub(super) const KEPT: usize = 30;

/// A server of a shard.
#[derive(Debug, Default)]
pub(super) struct Server {
    /// Identifies the streams of this server since it last lost them.
    run: u64,
    streams: BTreeMap<ChannelName, Stream>,
    subscribers: BTreeMap<ChannelName, BTreeSet<Connection>>,
    /// The connections, each with the ID of its node once it listens to messages of other nodes.
    connections: BTreeMap<Connection, Option<String>>,
    registry: BTreeMap<String, Lease>,
    /// The number of publications that were sent to nodes.
    pub(super) carried: u64,
    /// How often nodes have renewed their leases.
    pub(super) beats: u64,
}

#[derive(Clone, Debug)]
struct Lease {
    /// When the node last renewed it, in milliseconds.
    renewed: u64,
    details: Bytes,
}

#[derive(Clone, Debug)]
struct Stream {
    run: u64,
    newest: u64,
    kept: VecDeque<Publication>,
}

/// Returns whether a channel has a stream.
pub(super) fn is_durable(channel: &ChannelName) -> bool {
    channel.as_str().starts_with(['d', 't'])
}

/// Returns whether clients recover from the channel's stream, and know their position in it.
pub(super) fn recovers_on_all_nodes(channel: &ChannelName) -> bool {
    channel.as_str().starts_with('d')
}

impl Server {
    pub(super) fn new(run: u64) -> Self {
        let server = Self::default();
        Self { run, ..server }
    }

    /// Ends all connections, as when the process stops. Returns them.
    pub(super) fn close(&mut self) -> Vec<Connection> {
        self.subscribers.clear();
        let connections = std::mem::take(&mut self.connections);
        connections.into_keys().collect()
    }

    /// Forgets what Redis may have lost when it stops.
    pub(super) fn forget(&mut self, run: u64) {
        *self = Self::new(run);
    }

    /// Takes over from another server, whose acknowledged publications this one has.
    pub(super) fn replace(&mut self, other: &Self) {
        self.run = other.run;
        self.streams.clone_from(&other.streams);
        self.registry.clone_from(&other.registry);
    }

    /// Forgets the connections of a node whose process has ended.
    pub(super) fn forget_node(&mut self, node: usize) {
        self.connections
            .retain(|connection, _| connection.node != node);
        for subscribers in self.subscribers.values_mut() {
            subscribers.retain(|connection| connection.node != node);
        }
    }

    /// Returns the run of a channel's stream, and the number of its newest publication.
    pub(super) fn newest_number(&self, channel: &ChannelName) -> (u64, u64) {
        let stream = self.streams.get(channel);
        stream.map_or((self.run, 0), |stream| (stream.run, stream.newest))
    }

    /// Returns the newest position of a channel.
    pub(super) fn newest(&self, channel: &ChannelName) -> StreamPosition {
        let (run, offset) = self.newest_number(channel);
        let epoch = Epoch::new(&run.to_string());
        StreamPosition { epoch, offset }
    }

    /// Publishes in a channel, and passes what subscribers are sent to `send`.
    pub(super) fn publish(
        &mut self,
        channel: &ChannelName,
        send: &mut dyn FnMut(Connection, Message),
    ) {
        let stream = self.streams.entry(channel.clone()).or_insert(Stream {
            run: self.run,
            newest: 0,
            kept: VecDeque::new(),
        });
        stream.newest += 1;
        let (run, offset) = (stream.run, stream.newest);
        let publication = Publication::build(format!("[{run},{offset}]").into());
        let publication = match is_durable(channel) {
            true => {
                let epoch = Epoch::new(&run.to_string());
                let position = StreamPosition { epoch, offset };
                publication.with_position(position).finish()
            }
            false => publication.finish(),
        };
        stream.kept.push_back(publication.clone());
        if stream.kept.len() > KEPT {
            stream.kept.pop_front();
        }
        for connection in self.subscribers.get(channel).into_iter().flatten() {
            self.carried += 1;
            let message = Message::Publication(channel.clone(), publication.clone());
            send(*connection, message);
        }
    }

    /// Handles a request, and passes what nodes are sent to `send`.
    pub(super) fn handle(
        &mut self,
        now: u64,
        from: Connection,
        request: Request,
        call: u64,
        send: &mut dyn FnMut(Connection, Message),
    ) {
        let is_known = match &request {
            Request::Listen { node } => {
                self.connections.insert(from, Some(node.clone()));
                true
            }
            _ => self.connections.contains_key(&from),
        };
        if !is_known {
            return send(from, Message::Closed);
        }
        let answer = match request {
            Request::Beat { node, details } => Answer::Beat(self.beat(now, node, details)),
            Request::Close => {
                self.connections.remove(&from);
                for subscribers in self.subscribers.values_mut() {
                    subscribers.remove(&from);
                }
                return;
            }
            Request::Control { to, message } => {
                for (connection, node) in &self.connections {
                    if node.is_some() && (to.is_none() || *node == to) {
                        send(*connection, Message::Control(message.clone()));
                    }
                }
                Answer::Done
            }
            Request::Deregister { node } => {
                self.registry.remove(&node);
                Answer::Done
            }
            Request::Details => {
                let leases = self.registry.values();
                Answer::Details(leases.map(|lease| lease.details.clone()).collect())
            }
            Request::History(channel, request) => Answer::History(self.history(&channel, &request)),
            Request::Listen { .. } | Request::Ping => Answer::Done,
            Request::Nodes => {
                self.expire(now);
                Answer::Nodes(self.registry.keys().cloned().collect())
            }
            Request::Publish(channel) => {
                self.publish(&channel, send);
                Answer::Position(self.newest(&channel))
            }
            Request::Subscribe(channel) => {
                let newest = self.newest(&channel);
                self.subscribers.entry(channel).or_default().insert(from);
                Answer::Position(newest)
            }
            Request::Unsubscribe(channel) => {
                self.subscribers.entry(channel).or_default().remove(&from);
                Answer::Done
            }
        };
        send(from, Message::Answer(call, answer));
    }

    /// Returns what follows a position, and whether that is complete.
    fn history(&self, channel: &ChannelName, request: &HistoryRequest) -> History {
        let newest = self.newest(channel);
        let kept = self.streams.get(channel).map(|stream| &stream.kept);
        let oldest = kept.and_then(|kept| kept.front()).map(Publication::offset);
        let (since, is_contiguous) = match &request.since {
            None => (0, true),
            Some(since) if since.epoch != newest.epoch => (u64::MAX, false),
            Some(since) => {
                let is_covered = oldest.is_none_or(|oldest| since.offset + 1 >= oldest);
                (since.offset, is_covered && since.offset <= newest.offset)
            }
        };
        let kept = kept.into_iter().flatten();
        let after = kept.filter(|publication| publication.offset() > since);
        let limit = request.limit.unwrap_or(usize::MAX);
        History {
            publications: after.take(limit).cloned().collect(),
            newest,
            is_contiguous,
        }
    }

    fn beat(&mut self, now: u64, node: String, details: Bytes) -> Beat {
        self.expire(now);
        self.beats += 1;
        let renewed = now;
        let before = self.registry.insert(node, Lease { renewed, details });
        Beat {
            nodes: self.registry.len(),
            is_new: before.is_none(),
            has_lost_presence: false,
        }
    }

    fn expire(&mut self, now: u64) {
        let lease = LEASE.as_millis() as u64;
        self.registry.retain(|_, held| held.renewed + lease > now);
    }
}
