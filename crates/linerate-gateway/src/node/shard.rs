//! A worker's part of the fan-out: its hub, and the clients whose connections run on it.

use std::{cell::RefCell, sync::Arc};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use linerate_budget::Share;
use linerate_hub::{ChannelName, ClientId, ClientInfo, ClientMap, SubscriptionId};

use super::{
    Hub,
    interest::InterestGuard,
    occupancy::Occupancy,
    outlet::{Connection, Outlet},
    subscription_counts::SubscriptionCounts,
    waiting::WaitingClients,
};
use crate::{channel_map::ChannelMap, protocol::Transmit};

/// The state of a worker.
pub(crate) struct Shard {
    /// The index of the worker in the node, counted from 0.
    pub(crate) index: u16,
    pub(crate) hub: Hub,
    pub(crate) clients: ClientMap<Client>,
    pub(crate) channels: HashMap<ChannelName, Channel, RandomState>,
    pub(super) waiting: WaitingClients,
    /// The clients that were told to enter a channel, until they have done it or cannot.
    pub(super) entering: RefCell<HashSet<(ClientId, ChannelName), RandomState>>,
    /// True while draining: new clients are disconnected immediately.
    pub(super) turns_away: bool,
}

/// A client whose connection runs on this worker.
#[derive(Debug)]
pub(crate) struct Client {
    /// Shared with the session of the client.
    pub(crate) connection: Arc<Connection>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) channels: ChannelMap<Member>,
}

/// The worker's state for a subscription, in addition to the hub's.
#[derive(Debug)]
pub(crate) struct Member {
    /// The ID of the subscription in the hub.
    pub(crate) subscription: SubscriptionId,
    /// The presence information, if the client is listed as present.
    pub(crate) presence: Option<Arc<ClientInfo>>,
    /// True once the subscription is active.
    pub(super) is_active: bool,
    /// True if other clients are told when this one joins and leaves.
    pub(crate) is_announced: bool,
    /// The part of the memory account that the subscription uses.
    pub(crate) share: Share,
}

/// A channel with subscribers on this worker.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Keeps the channel subscribed at the broker; `None` until the broker has answered.
    pub(crate) hold: Option<InterestGuard>,
    /// The clients that are told who joins and leaves; `None` until the first of them subscribes.
    pub(crate) followers: Option<Box<HashSet<ClientId, RandomState>>>,
}

impl Client {
    /// Returns the channels whose publications the client receives.
    pub(super) fn active_channels(&self) -> impl Iterator<Item = &ChannelName> {
        let channels = self.channels.iter();
        let active = channels.filter(|(_, member)| member.is_active);
        active.map(|(channel, _)| channel)
    }

    /// Hands a block or another item to the outlet, without what this client must not receive.
    pub(super) fn transmit(&self, transmit: Transmit) {
        let own = match &transmit {
            Transmit::Block { block, .. } => {
                block.for_client(self.connection.client(), || self.active_channels())
            }
            _ => None,
        };
        match (transmit, own) {
            (_, Some(own)) if own.bytes().is_empty() => {}
            (Transmit::Block { subscription, .. }, Some(own)) => {
                self.outlet.transmit(Transmit::Block {
                    subscription,
                    messages: u32::try_from(own.messages()).unwrap_or(u32::MAX),
                    block: Arc::new(own),
                });
            }
            (transmit, _) => self.outlet.transmit(transmit),
        }
    }
}

impl Shard {
    pub(super) fn new(index: u16, hub: Hub) -> Self {
        Self {
            index,
            hub,
            clients: ClientMap::default(),
            channels: HashMap::default(),
            waiting: WaitingClients::default(),
            entering: RefCell::default(),
            turns_away: false,
        }
    }

    /// Records again which channels have subscribers on this worker.
    pub(super) fn report_channels(&self, occupancy: &Occupancy) {
        let channels = self.channels.iter();
        for (channel, _) in channels.filter(|(_, local)| local.hold.is_some()) {
            occupancy.channel_came(channel, self.index);
        }
    }

    /// Records again how many subscriptions the channels have on this worker.
    pub(super) fn report_counts(&self, counts: &SubscriptionCounts) {
        for (channel, count) in self.hub.channels() {
            counts.subscribed(channel, self.index, count);
        }
    }

    /// Stops telling a client who joins and leaves a channel.
    pub(super) fn unfollow(&mut self, client: ClientId, channel: &ChannelName) {
        let channel = self.channels.get_mut(channel);
        if let Some(followers) = channel.and_then(|channel| channel.followers.as_mut()) {
            followers.remove(&client);
        }
    }
}
