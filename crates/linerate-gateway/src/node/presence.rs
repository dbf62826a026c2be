//! Presence of clients in channels, and the notices about who joins and leaves.
//!
//! A broker that several nodes share stores who is present. This node then stores its own clients
//! there, and reads those of all nodes with one request.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures_util::FutureExt;
use linerate_broker::{Broker, BrokerError, PresenceChange};
use linerate_hub::{
    ChannelName, ClientInfo,
    presence::{self, Counts},
};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::warn;

use super::{
    Notice,
    cluster::{
        Cluster,
        message::{Body, ClientRecord, PresenceMessage},
    },
    entries::Entries,
    flights::Flights,
    inbox::JobRefusal,
    inboxes::Inboxes,
    occupancy::Occupancy,
    shard::{Member, Shard},
};
use crate::{clock::now, log_limiter::LogLimiter};

/// The maximum number of queued moves. Beyond this, queued moves are dropped without notice to
/// clients; presence itself stays correct.
const MOVES_MAX: usize = 65_536;

/// The maximum number of moves in one message to other nodes.
const MOVES_A_MESSAGE: usize = 256;

/// How long a reader waits until what was recorded before is stored.
const STORED_WAIT_MAX: Duration = Duration::from_secs(1);

static BUSY_WORKERS: LogLimiter = LogLimiter::new();
static FLOODS: LogLimiter = LogLimiter::new();

/// The clients present in each channel. Clients of all nodes are told who joins and leaves.
#[derive(Debug)]
pub(crate) struct Presence {
    here: Mutex<presence::Presence>,
    entries: Arc<Entries>,
    occupancy: Arc<Occupancy>,
    broker: Arc<dyn Broker>,
    lists: Flights<Result<Arc<[ClientInfo]>, BrokerError>>,
    counts: Flights<Result<Counts, BrokerError>>,
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

impl Presence {
    pub(super) fn new(
        broker: Arc<dyn Broker>,
        (entries, occupancy): (Arc<Entries>, Arc<Occupancy>),
        inboxes: Inboxes,
        cluster: Arc<Cluster>,
    ) -> Self {
        Self {
            here: Mutex::default(),
            entries,
            occupancy,
            broker,
            lists: Flights::default(),
            counts: Flights::default(),
            moves: Moves::default(),
            inboxes,
            cluster,
        }
    }

    /// Records that a client has joined a channel.
    pub(super) fn came(&self, channel: ChannelName, info: &Arc<ClientInfo>, is_announced: bool) {
        let mut here = self.here.lock();
        here.join(channel.clone(), info.clone());
        self.occupancy.member_came(&channel, &info.user);
        drop(here);
        let change = PresenceChange {
            channel,
            info: ClientInfo::clone(info),
            is_present: true,
        };
        self.record(change, is_announced);
    }

    /// Records that a client has left a channel.
    pub(super) fn left(&self, channel: ChannelName, member: Member) {
        let Some(info) = member.presence else {
            return;
        };
        let mut here = self.here.lock();
        here.leave(channel.as_str(), &info.client);
        if self.occupancy.wants_members() && here.clients_of(channel.as_str(), &info.user) == 0 {
            self.occupancy.member_left(&channel, &info.user);
        }
        drop(here);
        let change = PresenceChange {
            channel,
            info: Arc::unwrap_or_clone(info),
            is_present: false,
        };
        self.record(change, member.is_announced);
    }

    /// Records again who is a member of channels.
    pub(super) fn report_members(&self) {
        let here = self.here.lock();
        for channel in here.channels() {
            for info in here.members(channel.as_str()) {
                self.occupancy.member_came(channel, &info.user);
            }
        }
    }

    /// Stores nothing at the broker until [`release_entries`](Self::release_entries) is called.
    pub(crate) fn hold_entries(&self) {
        self.entries.hold();
        self.occupancy.hold();
    }

    /// Stores what was recorded since [`hold_entries`](Self::hold_entries).
    pub(crate) fn release_entries(&self) {
        self.entries.release();
        self.occupancy.release();
    }

    /// Waits, but not longer than `wait_max`, until what was recorded is stored at the broker.
    pub(crate) async fn stored(&self, wait_max: Duration) {
        self.entries.stored(wait_max).await;
    }

    fn record(&self, change: PresenceChange, is_announced: bool) {
        if is_announced {
            self.moves.push(change.clone());
        }
        self.entries.push(change);
    }

    /// Returns the clients in a channel, on all nodes.
    ///
    /// # Errors
    /// They would take more than `bytes_max` bytes in an answer, or the broker is unavailable.
    pub(super) async fn clients(
        &self,
        channel: &ChannelName,
        bytes_max: usize,
    ) -> Result<Vec<ClientInfo>, BrokerError> {
        if !self.broker.stores_presence() {
            let here = self.here.lock();
            check_size(here.members(channel.as_str()), bytes_max)?;
            return Ok(here.members(channel.as_str()).cloned().collect());
        }
        let question = self.question(channel).await;
        let list = self.lists.join(question, || {
            let (broker, channel) = (self.broker.clone(), channel.clone());
            async move {
                let clients = broker.presence(&channel, bytes_max).await?;
                check_size(clients.iter(), bytes_max)?;
                Ok(clients.into())
            }
            .boxed()
        });
        Ok(list.await?.to_vec())
    }

    /// Returns how many clients and users are in a channel, on all nodes.
    ///
    /// # Errors
    /// The broker is unavailable.
    pub(super) async fn counts(&self, channel: &ChannelName) -> Result<Counts, BrokerError> {
        if !self.broker.stores_presence() {
            return Ok(self.here.lock().counts(channel.as_str()));
        }
        let question = self.question(channel).await;
        let counts = self.counts.join(question, || {
            let (broker, channel) = (self.broker.clone(), channel.clone());
            async move { broker.presence_counts(&channel).await }.boxed()
        });
        counts.await
    }

    /// Waits until the broker has what was recorded before, so that a client that has joined finds
    /// itself. Returns the key of requests that may share an answer.
    async fn question(&self, channel: &ChannelName) -> String {
        format!("{} {channel}", self.entries.stored(STORED_WAIT_MAX).await)
    }

    /// Stores at the broker who is present on this node. Never returns.
    pub(super) async fn run_entries(self: Arc<Self>) {
        self.entries.run(&self.here).await;
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
                is_present: moved.has_come,
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
                && let Some(times) = BUSY_WORKERS.ask(now())
            {
                warn!(%error, times, "worker is busy; join/leave notifications to its clients dropped");
            }
        }
    }
}

/// Checks that clients take at most `bytes_max` bytes in an answer.
fn check_size<'a>(
    clients: impl Iterator<Item = &'a ClientInfo>,
    bytes_max: usize,
) -> Result<(), BrokerError> {
    let mut bytes_left = bytes_max;
    for info in clients {
        let left = bytes_left.checked_sub(weight(info));
        bytes_left = left.ok_or(BrokerError::PresenceTooLarge { bytes_max })?;
    }
    Ok(())
}

/// Returns the approximate size of a client's entry in an answer, in bytes.
fn weight(info: &ClientInfo) -> usize {
    /// Field names, quotes and commas, and the client ID once more as a key.
    const FRAME_BYTES: usize = 100;
    let optional = [&info.connection, &info.channel];
    let optional = optional
        .into_iter()
        .flatten()
        .map(|json| json.len())
        .sum::<usize>();
    FRAME_BYTES + info.user.len() + info.client.len() + optional
}

impl Moves {
    fn push(&self, moved: PresenceChange) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == MOVES_MAX {
            if let Some(times) = FLOODS.ask(now()) {
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
            for follower in channel.followers.iter().flat_map(|all| all.iter()) {
                if let Some(client) = self.clients.get(follower) {
                    client.outlet.notify(notice(moved));
                }
            }
        }
    }
}

fn notice(moved: &PresenceChange) -> Notice {
    let (channel, info) = (moved.channel.clone(), moved.info.clone());
    match moved.is_present {
        true => Notice::Join { channel, info },
        false => Notice::Leave { channel, info },
    }
}

impl From<&PresenceChange> for PresenceMessage {
    fn from(moved: &PresenceChange) -> Self {
        Self {
            channel: moved.channel.to_string(),
            info: ClientRecord::from(&moved.info),
            has_come: moved.is_present,
        }
    }
}
