//! Carries out what arrives from a feed, in order.

use std::{borrow::Cow, sync::Arc};

use bytes::Bytes;
use linerate_broker::{
    BoxFuture, Event, Gap, GapReason, Ingest,
    redis::{FeedEvent, FeedSink},
};
use linerate_hub::ChannelName;
use tokio::sync::Mutex;

use super::{
    packet::{self, PacketError, Recipients, Wish},
    setup::{ChannelKind, RedisSetup},
    status::FeedStatus,
};
use crate::{
    clock::now,
    log_limiter::LogLimiter,
    node::{Audience, Direction, Emission, Moves, Node, Notice},
    protocol::{
        codes::Disconnect,
        event_name,
        socketio::{EVENTS, namespace},
    },
};

static REFUSED: LogLimiter = LogLimiter::new();

/// Receives what a feed reads, for the clients of a node.
#[derive(Debug)]
pub(super) struct Intake {
    node: Arc<Node>,
    setup: Arc<RedisSetup>,
    status: Arc<FeedStatus>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    emissions: Emissions,
    moves: Moves,
    /// True if events may be missed until the feed is up again.
    is_lost: bool,
}

/// Events that have been decoded.
#[derive(Debug, Default)]
struct Emissions {
    /// They have not been passed to the workers.
    waiting: Vec<Emission>,
    /// True if some were passed to the workers, which may not have delivered them.
    are_under_way: bool,
}

/// Why something is left out.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("packet has {bytes} bytes; at most {bytes_max} are allowed")]
    Bytes { bytes: usize, bytes_max: usize },
    #[error(transparent)]
    Packet(#[from] PacketError),
}

impl FeedSink for Intake {
    fn take(&self, events: Vec<FeedEvent>) -> BoxFuture<'_, ()> {
        Box::pin(self.take_all(events))
    }
}

impl Intake {
    pub(super) fn new(node: Arc<Node>, setup: Arc<RedisSetup>, status: Arc<FeedStatus>) -> Self {
        let moves = Moves::new(node.inboxes.clone());
        Self {
            node,
            setup,
            status,
            state: Mutex::new(State {
                emissions: Emissions::default(),
                moves,
                is_lost: false,
            }),
        }
    }

    async fn take_all(&self, events: Vec<FeedEvent>) {
        let mut state = self.state.lock().await;
        let state = &mut *state;
        for event in events {
            match event {
                FeedEvent::Message { channel, payload } => {
                    let message = self.read_message(&state.moves, &channel, &payload);
                    if let Some((namespace, wish)) = message {
                        self.fulfil(state, &namespace, wish).await;
                    }
                }
                FeedEvent::Entry { fields } => {
                    if let Some((namespace, wish)) = self.read_entry(&fields) {
                        self.fulfil(state, &namespace, wish).await;
                    }
                }
                FeedEvent::Oversized { bytes } => self.refuse(&Refused::Bytes {
                    bytes,
                    bytes_max: self.setup.packet_bytes_max(),
                }),
                FeedEvent::Gap => self.report_gap(state).await,
                FeedEvent::Up { is_complete } => {
                    self.status.set_up(true);
                    if std::mem::take(&mut state.is_lost) && !is_complete {
                        self.report_gap(state).await;
                    }
                }
                FeedEvent::Down { reason } => {
                    state.is_lost |= self.status.is_up();
                    self.status.set_up(false);
                    tracing::warn!(reason, "not connected to the Redis of socketio.redis");
                }
                // An event of a newer broker crate that this version does not know.
                _ => {}
            }
        }
        state.emissions.pass_on(&self.node).await;
    }

    /// Decodes what was published in a channel, unless no client of this node is concerned.
    fn read_message<'a>(
        &'a self,
        moves: &Moves,
        channel: &'a [u8],
        payload: &[u8],
    ) -> Option<(Cow<'a, str>, Wish)> {
        let channel = std::str::from_utf8(channel).ok()?;
        let (namespace, kind) = self.setup.route(channel)?;
        let rooms_max = self.setup.rooms_max();
        let wish = match kind {
            ChannelKind::Events { room } => {
                if let Some(room) = room
                    && !self.is_in_use(moves, namespace, room)
                {
                    return None;
                }
                packet::broadcast(payload, namespace, rooms_max)
            }
            ChannelKind::Requests => packet::request(payload, rooms_max),
        };
        self.accepted(wish).map(|wish| (namespace.into(), wish))
    }

    /// Decodes an entry of a stream, unless it is for a namespace that clients cannot connect to.
    fn read_entry(&self, fields: &[(String, Bytes)]) -> Option<(Cow<'_, str>, Wish)> {
        let field = |name: &str| {
            let found = fields.iter().find(|(field, _)| field == name);
            found.map_or(&[][..], |(_, value)| &value[..])
        };
        let namespaces = self.setup.namespaces();
        let own = |one: &&String| one.as_bytes() == field("nsp");
        let namespace = namespaces.iter().find(own)?;
        let wish = packet::entry(field("type"), field("data"), self.setup.rooms_max());
        let wish = self.accepted(wish)?;
        Some((namespace.into(), wish))
    }

    fn accepted(&self, wish: Result<Wish, PacketError>) -> Option<Wish> {
        wish.map_err(|error| self.refuse(&error.into())).ok()
    }

    fn refuse(&self, refused: &Refused) {
        self.status.count_refused();
        if let Some(count) = REFUSED.ask(now()) {
            tracing::warn!(count, error = %refused, "packet of Socket.IO in Redis left out");
        }
    }

    /// Returns whether clients of this node are in a room, or are joining it.
    fn is_in_use(&self, moves: &Moves, namespace: &str, room: &str) -> bool {
        let channel = namespace::channel(namespace, room);
        channel.is_some_and(|channel| {
            moves.has(&channel) || self.node.dispatcher.has_subscribers(&channel)
        })
    }

    async fn fulfil(&self, state: &mut State, namespace: &str, wish: Wish) {
        match wish {
            Wish::Emit { to, event } => {
                let to = audience(namespace, to);
                if state.moves.concern(&to, &[]) {
                    state.emissions.pass_on(&self.node).await;
                    state.moves.settle().await;
                }
                self.status.count_event();
                state.emissions.waiting.push(Emission {
                    to,
                    tags: event_name::tags(&event.name, None),
                    payload: event.payload.into(),
                });
                return;
            }
            Wish::Other => return self.status.count_ignored(),
            _ => {}
        }
        // What was emitted before is for the clients as they were then.
        state.emissions.deliver(&self.node).await;
        self.status.count_request();
        match wish {
            Wish::Join { whom, rooms } => {
                self.relocate(state, namespace, (whom, rooms), Direction::Enter)
                    .await;
            }
            Wish::Leave { whom, rooms } => {
                self.relocate(state, namespace, (whom, rooms), Direction::Leave)
                    .await;
            }
            Wish::Disconnect {
                whom,
                is_connection,
            } => {
                let notice = match is_connection {
                    true => Notice::Disconnect(Disconnect::FORCE_NO_RECONNECT),
                    false => Notice::LeaveNamespace {
                        namespace: namespace.to_owned(),
                    },
                };
                let whom = audience(namespace, whom);
                state.moves.settle_for(&whom, &[]).await;
                let (protocol, _) = EVENTS.name;
                self.node.notify_audience(whom, protocol, notice).await;
            }
            Wish::Emit { .. } | Wish::Other => {}
        }
    }

    async fn relocate(
        &self,
        state: &mut State,
        namespace: &str,
        (whom, rooms): (Recipients, Vec<String>),
        direction: Direction,
    ) {
        let rooms = channels(namespace, &rooms);
        let (whom, (protocol, _)) = (audience(namespace, whom), EVENTS.name);
        state.moves.start((whom, protocol), rooms, direction).await;
    }

    /// Tells all clients that they may have missed events.
    async fn report_gap(&self, state: &mut State) {
        state.emissions.pass_on(&self.node).await;
        self.status.count_gap();
        let namespaces = self.setup.namespaces().iter();
        let channels =
            namespaces.filter_map(|one| ChannelName::new(&namespace::everyone(one)).ok());
        let gap = Gap {
            channels: Some(channels.collect()),
            lasted: std::time::Duration::ZERO,
            reason: GapReason::Source,
        };
        self.node.dispatcher.ingest(vec![Event::Gap(gap)]).await;
    }
}

impl Emissions {
    /// Passes them to the workers.
    async fn pass_on(&mut self, node: &Node) {
        if !self.waiting.is_empty() {
            self.are_under_way = true;
            let emissions = std::mem::take(&mut self.waiting);
            node.dispatcher.emit(emissions).await;
        }
    }

    /// Passes them to the workers, and waits until they are delivered.
    async fn deliver(&mut self, node: &Node) {
        self.pass_on(node).await;
        if std::mem::take(&mut self.are_under_way) {
            node.dispatcher.delivered().await;
        }
    }
}

/// Returns the subscribers that an application means.
fn audience(namespace: &str, recipients: Recipients) -> Audience {
    let Recipients { rooms, except } = recipients;
    Audience {
        channels: match rooms.is_empty() {
            true => ChannelName::new(&namespace::everyone(namespace))
                .into_iter()
                .collect(),
            false => channels(namespace, &rooms),
        },
        except: channels(namespace, &except),
    }
}

/// Returns the channels of rooms, without rooms that no client can be in.
fn channels(namespace: &str, rooms: &[String]) -> Vec<ChannelName> {
    let channels = rooms.iter();
    channels
        .filter_map(|room| namespace::channel(namespace, room))
        .collect()
}
