//! Lets the clients of an audience enter and leave channels, in the order of events.
//!
//! A session enters a channel on its own, because the broker may have to be asked. An application
//! that adds clients to a room and emits an event there next expects them to receive it. So events
//! that concern a channel wait until the clients have entered it or left it.

use std::{collections::HashSet, time::Duration};

use linerate_hub::{ChannelName, ClientId};
use tokio::time::sleep;

use super::{Notice, emission::Audience, inboxes::Inboxes, shard::Shard};
use crate::{clock::now, protocol::codes::Unsubscribe};

/// The maximum time that events wait, if the broker does not answer.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// How often to look whether the clients have moved.
const SETTLE_INTERVAL: Duration = Duration::from_millis(1);

/// The maximum number of requests under way. A further one waits.
const MOVES_MAX: usize = 256;

/// What clients do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Direction {
    /// They enter channels.
    Enter,
    /// They leave channels.
    Leave,
}

/// Clients that are entering channels or leaving them.
#[derive(Debug)]
pub(crate) struct Moves {
    inboxes: Inboxes,
    channels: HashSet<ChannelName>,
    moves: Vec<Move>,
}

/// Clients of a worker that enter or leave channels.
#[derive(Clone, Debug)]
struct Move {
    worker: u16,
    clients: Vec<ClientId>,
    channels: Vec<ChannelName>,
    direction: Direction,
}

impl Moves {
    /// Prepares to move clients of these workers.
    pub(crate) fn new(inboxes: Inboxes) -> Self {
        Self {
            inboxes,
            channels: HashSet::default(),
            moves: Vec::new(),
        }
    }

    /// Returns whether clients are entering this channel or leaving it.
    pub(crate) fn has(&self, channel: &ChannelName) -> bool {
        self.channels.contains(channel)
    }

    /// Returns whether clients are moving that an audience or one of `channels` depends on.
    pub(crate) fn concern(&self, audience: &Audience, channels: &[ChannelName]) -> bool {
        let mut names = audience.names().chain(channels);
        !self.moves.is_empty() && names.any(|name| self.has(name))
    }

    /// Waits until the clients have moved, if an audience or one of `channels` depends on it.
    pub(crate) async fn settle_for(&mut self, audience: &Audience, channels: &[ChannelName]) {
        if self.moves.len() >= MOVES_MAX || self.concern(audience, channels) {
            self.settle().await;
        }
    }

    /// Tells the clients of a protocol that belong to an audience to move.
    pub(crate) async fn start(
        &mut self,
        (audience, protocol): (Audience, &'static str),
        channels: Vec<ChannelName>,
        direction: Direction,
    ) {
        self.settle_for(&audience, &channels).await;
        let wanted = channels.clone();
        let notified = self.inboxes.run(move |shard| {
            let mut clients = Vec::new();
            for (id, client) in shard.audience(&audience, protocol) {
                for channel in &wanted {
                    if direction == Direction::Enter {
                        shard.entering.borrow_mut().insert((id, channel.clone()));
                    }
                    client.outlet.notify(direction.notice(channel.clone()));
                }
                clients.push(id);
            }
            (shard.index, clients)
        });
        for (worker, clients) in notified.await {
            if !clients.is_empty() {
                self.channels.extend(channels.iter().cloned());
                self.moves.push(Move {
                    worker,
                    clients,
                    channels: channels.clone(),
                    direction,
                });
            }
        }
    }

    /// Waits until all clients have moved or cannot, but at most for [`SETTLE_MAX`].
    pub(crate) async fn settle(&mut self) {
        let until = now() + SETTLE_MAX;
        while !self.moves.is_empty() && now() < until {
            let moves = self.moves.clone();
            let left = self.inboxes.run(move |shard| shard.unsettled(&moves));
            self.moves = left.await.into_iter().flatten().collect();
            if !self.moves.is_empty() {
                sleep(SETTLE_INTERVAL).await;
            }
        }
        self.moves.clear();
        self.channels.clear();
    }
}

impl Direction {
    fn notice(self, channel: ChannelName) -> Notice {
        match self {
            Self::Enter => Notice::Subscribe {
                channel,
                info: None,
            },
            Self::Leave => Notice::Unsubscribe {
                channel,
                why: Unsubscribe::SERVER,
            },
        }
    }
}

impl Shard {
    /// Returns those of `moves` that clients of this worker have not completed.
    fn unsettled(&self, moves: &[Move]) -> Vec<Move> {
        let own = moves.iter().filter(|one| one.worker == self.index);
        own.filter(|one| !self.has_settled(one)).cloned().collect()
    }

    fn has_settled(&self, one: &Move) -> bool {
        let entering = self.entering.borrow();
        let mut places = one.clients.iter().flat_map(|id| {
            let channels = one.channels.iter();
            channels.map(move |channel| (*id, channel))
        });
        match one.direction {
            Direction::Enter => {
                entering.is_empty()
                    || places.all(|(id, channel)| !entering.contains(&(id, channel.clone())))
            }
            Direction::Leave => places.all(|(id, channel)| {
                let client = self.clients.get(&id);
                client.is_none_or(|client| !client.channels.contains_key(channel))
            }),
        }
    }
}
