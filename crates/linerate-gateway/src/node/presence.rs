//! Presence of clients in the channels of this node, and the notices about who joins and leaves.

use std::{collections::VecDeque, hash::BuildHasher, sync::Arc, time::Instant};

use bytes::Bytes;
use foldhash::quality::FixedState;
use linerate_hub::{ChannelName, ClientInfo, presence};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::{
    Notice,
    cluster::{
        Cluster,
        message::{Body, ClientRecord, PresenceMessage},
    },
    inbox::JobRefusal,
    inboxes::Inboxes,
    shard::{Member, Shard},
};
use crate::log_limiter::LogLimiter;

/// The maximum number of queued moves. Beyond this, queued moves are dropped without notice to
/// clients; presence itself stays correct.
const MOVES_MAX: usize = 65_536;

/// The maximum number of moves in one message to other nodes.
const MOVES_A_MESSAGE: usize = 256;

static BUSY_WORKERS: LogLimiter = LogLimiter::new();
static FLOODS: LogLimiter = LogLimiter::new();

/// The clients present in each channel of this node. Clients of all nodes are told who joins and
/// leaves.
#[derive(Debug)]
pub(crate) struct Presence {
    here: Mutex<presence::Presence>,
    moves: Moves,
    inboxes: Inboxes,
    cluster: Arc<Cluster>,
}

/// Queued join and leave events.
#[derive(Debug, Default)]
struct Moves {
    waiting: Mutex<VecDeque<PresenceChange>>,
    arrived: Notify,
}

/// A client has joined or left a channel.
#[derive(Clone, Debug)]
struct PresenceChange {
    channel: ChannelName,
    info: ClientInfo,
    has_come: bool,
}

impl Presence {
    pub(super) fn new(inboxes: Inboxes, cluster: Arc<Cluster>) -> Self {
        Self {
            here: Mutex::default(),
            moves: Moves::default(),
            inboxes,
            cluster,
        }
    }

    /// Records that a client has joined a channel.
    pub(super) fn came(&self, channel: ChannelName, info: &ClientInfo, is_announced: bool) {
        self.here.lock().join(channel.clone(), info.clone());
        if is_announced {
            self.moves.push(PresenceChange {
                channel,
                info: info.clone(),
                has_come: true,
            });
        }
    }

    /// Records that a client has left a channel.
    pub(super) fn left(&self, channel: ChannelName, member: Member) {
        let Some(info) = member.presence else {
            return;
        };
        self.here.lock().leave(channel.as_str(), &info.client);
        if member.is_announced {
            self.moves.push(PresenceChange {
                channel,
                info: *info,
                has_come: false,
            });
        }
    }

    /// Returns the clients in a channel; `None` if they would take more than `bytes_max` bytes in
    /// an answer.
    pub(super) fn clients(&self, channel: &str, bytes_max: usize) -> Option<Vec<ClientInfo>> {
        let here = self.here.lock();
        let mut bytes_left = bytes_max;
        for info in here.members(channel) {
            bytes_left = bytes_left.checked_sub(weight(info))?;
        }
        Some(here.members(channel).cloned().collect())
    }

    /// Returns the number of clients in a channel, and a hash for each distinct user that is the
    /// same on all nodes.
    pub(super) fn stats(&self, channel: &str) -> (u64, Vec<u64>) {
        let (here, hashes) = (self.here.lock(), FixedState::default());
        let users = here.users(channel).map(|user| hashes.hash_one(user));
        (here.counts(channel).clients as u64, users.collect())
    }

    /// Reports who joins and leaves to clients and to other nodes. Never returns.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let moves = self.moves.take().await;
            let said = moves.iter().map(PresenceMessage::from).collect();
            self.tell(moves.into());
            if self.cluster.nodes_count() > 1 {
                self.cluster.say(Body::Moves(said)).await;
            }
        }
    }

    /// Tells the clients of this node who joined or left on other nodes.
    pub(super) fn moved_elsewhere(&self, moves: Vec<PresenceMessage>) {
        let known = |moved: PresenceMessage| {
            let channel = ChannelName::new(&moved.channel).ok()?;
            Some(PresenceChange {
                channel,
                info: moved.info.into(),
                has_come: moved.has_come,
            })
        };
        self.tell(moves.into_iter().filter_map(known).collect());
    }

    fn tell(&self, moves: Arc<[PresenceChange]>) {
        for inbox in self.inboxes.iter() {
            let moves = moves.clone();
            let told = inbox.submit(Box::new(move |shard| shard.tell_moves(&moves)));
            // A worker that has ended, as in a shutdown, has no clients.
            if let Err(error @ JobRefusal::Busy) = told
                && let Some(times) = BUSY_WORKERS.ask(Instant::now())
            {
                warn!(%error, times, "worker is busy; join/leave notifications to its clients dropped");
            }
        }
    }
}

/// Returns the approximate size of a client's entry in an answer, in bytes.
pub(super) fn weight(info: &ClientInfo) -> usize {
    /// Field names, quotes and commas, and the client ID once more as a key.
    const FRAME_BYTES: usize = 100;
    let optional = [&info.connection, &info.channel];
    let optional = optional
        .into_iter()
        .flatten()
        .map(Bytes::len)
        .sum::<usize>();
    FRAME_BYTES + info.user.len() + info.client.len() + optional
}

impl Moves {
    fn push(&self, moved: PresenceChange) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MOVES_MAX {
            if let Some(times) = FLOODS.ask(Instant::now()) {
                warn!(
                    times,
                    moves_max = MOVES_MAX,
                    "join/leave rate exceeds the limit; queued notifications dropped"
                );
            }
            waiting.clear();
        }
        waiting.push_back(moved);
        drop(waiting);
        self.arrived.notify_one();
    }

    async fn take(&self) -> Vec<PresenceChange> {
        loop {
            let moves = self.take_waiting();
            if !moves.is_empty() {
                return moves;
            }
            self.arrived.notified().await;
        }
    }

    fn take_waiting(&self) -> Vec<PresenceChange> {
        let mut waiting = self.waiting.lock();
        let count = waiting.len().min(MOVES_A_MESSAGE);
        waiting.drain(..count).collect()
    }
}

impl Shard {
    fn tell_moves(&self, moves: &[PresenceChange]) {
        for moved in moves {
            let Some(channel) = self.channels.get(&moved.channel) else {
                continue;
            };
            for follower in &channel.followers {
                if let Some(client) = self.clients.get(follower) {
                    client.outlet.notify(moved.notice());
                }
            }
        }
    }
}

impl PresenceChange {
    fn notice(&self) -> Notice {
        let (channel, info) = (self.channel.clone(), self.info.clone());
        match self.has_come {
            true => Notice::Join { channel, info },
            false => Notice::Leave { channel, info },
        }
    }
}

impl From<&PresenceChange> for PresenceMessage {
    fn from(moved: &PresenceChange) -> Self {
        Self {
            channel: moved.channel.to_string(),
            info: ClientRecord::from(&moved.info),
            has_come: moved.has_come,
        }
    }
}
