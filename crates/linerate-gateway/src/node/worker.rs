//! One thread's part of the node: clients connect, subscribe and leave.

use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
};

use linerate_hub::{ChannelName, ClientId, SubscriptionId, hub::IsChannelEmpty};

use parking_lot::{Mutex, MutexGuard};

use super::{
    Hub, Node,
    accounts::Accounts,
    inbox::Inbox,
    outlet::{Connection, Notice, Outlet},
    shard::{Client, Shard},
    shared_texts::SharedTexts,
    subscription::Delivery,
};
use crate::{channel_map::ChannelMap, protocol::codes::Disconnect};

/// A worker of a [`Node`], used only on its own thread.
///
/// The mutex exists only because handlers must be `Send`; it is never contended. Other threads
/// submit jobs through the inbox.
pub(crate) struct Worker {
    pub(super) node: Arc<Node>,
    pub(crate) index: u16,
    pub(super) inbox: Arc<Inbox>,
    /// True while the worker waits for something to do.
    pub(super) is_idle: AtomicBool,
    accounts: Accounts,
    agents: Mutex<SharedTexts>,
    shard: Mutex<Shard>,
}

/// The entry of a client that has not sent its connect command.
#[derive(Debug)]
pub(crate) struct WaitingClient {
    worker: Arc<Worker>,
    number: u64,
}

impl Worker {
    pub(super) fn new(node: Arc<Node>, index: u16, hub: Hub, accounts: Accounts) -> Self {
        Self {
            inbox: node.inboxes.of(index).clone(),
            node,
            index,
            is_idle: AtomicBool::new(false),
            accounts,
            agents: Mutex::default(),
            shard: Mutex::new(Shard::new(index, hub)),
        }
    }

    /// Registers a client that has not sent its connect command, so that it can be ended when
    /// memory is short. Drop the result on the worker's thread once the client is connected.
    pub(crate) fn expect(self: &Arc<Self>, outlet: &Arc<impl Outlet + 'static>) -> WaitingClient {
        let outlet: Arc<dyn Outlet> = outlet.clone();
        WaitingClient {
            number: self.shard().waiting.add(Arc::downgrade(&outlet)),
            worker: self.clone(),
        }
    }

    /// Registers a client. Its blocks go to `outlet` until [`disconnect`](Self::disconnect) is
    /// called.
    pub(crate) fn connect(
        &self,
        connection: impl Into<Arc<Connection>>,
        outlet: Arc<dyn Outlet>,
    ) -> ClientId {
        let mut shard = self.shard();
        let id = shard.hub.connect();
        let client = Client {
            connection: connection.into(),
            outlet,
            channels: ChannelMap::default(),
        };
        let connection = &client.connection;
        let counts = &self.node.counts;
        counts.client_came(connection.user(), *connection.dialect);
        if shard.turns_away {
            client
                .outlet
                .notify(Notice::Disconnect(Disconnect::SHUTDOWN));
        }
        shard.clients.insert(id, client);
        id
    }

    /// Disconnects new clients at once from now on, so that they connect to another node.
    pub(crate) fn turn_away(&self) {
        self.shard().turns_away = true;
    }

    /// Removes a client and ends its subscriptions. Does nothing if the client is unknown.
    pub(crate) fn disconnect(&self, client: ClientId) {
        let mut shard = self.shard();
        let Some(gone) = shard.clients.remove(&client) else {
            return;
        };
        let entering = shard.entering.get_mut();
        if !entering.is_empty() {
            entering.retain(|(id, _)| *id != client);
        }
        let emptied = shard.hub.disconnect(client);
        self.inbox
            .set_batch_interval(shard.hub.batch_interval_min());
        for channel in gone.channels.keys() {
            shard.unfollow(client, channel);
            self.count_unsubscribed(&shard, channel);
        }
        for channel in &emptied {
            self.forget(&mut shard, channel);
        }
        drop(shard);
        self.tell_disconnected(&gone);
        let (counts, connection) = (&self.node.counts, &gone.connection);
        counts.client_left(connection.user(), *connection.dialect);
        counts.unsubscribed(gone.channels.len());
        for (channel, member) in gone.channels {
            self.node.presence.left(channel, member);
        }
    }

    /// Records that a client that was told to enter a channel has done it, or cannot.
    pub(crate) fn has_entered(&self, client: ClientId, channel: &ChannelName) {
        let mut shard = self.shard();
        let entering = shard.entering.get_mut();
        if !entering.is_empty() {
            entering.remove(&(client, channel.clone()));
        }
    }

    /// Ends a subscription. Returns `false` if there was none.
    pub(crate) fn unsubscribe(&self, client: ClientId, channel: &ChannelName) -> bool {
        let mut shard = self.shard();
        let ended = shard.hub.unsubscribe(client, channel);
        self.inbox
            .set_batch_interval(shard.hub.batch_interval_min());
        let gone = shard.clients.get_mut(&client);
        let member = gone.and_then(|client| client.channels.remove(channel));
        if member.as_ref().is_some_and(|member| member.is_active)
            && let Some(client) = shard.clients.get(&client)
        {
            self.tell_unsubscribed(client, channel);
        }
        shard.unfollow(client, channel);
        if ended.is_some() {
            self.count_unsubscribed(&shard, channel);
        }
        if ended == Some(IsChannelEmpty(true)) {
            self.forget(&mut shard, channel);
        }
        drop(shard);
        if let Some(member) = member {
            self.node.counts.unsubscribed(1);
            self.node.presence.left(channel.clone(), member);
        }
        ended.is_some()
    }

    /// Tells a client from now on who joins and leaves a channel to which it subscribes.
    pub(crate) fn follow(&self, client: ClientId, channel: &ChannelName) {
        if let Some(local) = self.shard().channels.get_mut(channel) {
            local.followers.get_or_insert_default().insert(client);
        }
    }

    /// Replaces the description of a client, whose user may be another one.
    pub(crate) fn identify(&self, client: ClientId, connection: Arc<Connection>) {
        let mut shard = self.shard();
        let Some(known) = shard.clients.get_mut(&client) else {
            return;
        };
        let counts = &self.node.counts;
        counts.client_left(known.connection.user(), *known.connection.dialect);
        counts.client_came(connection.user(), *connection.dialect);
        known.connection = connection;
    }

    /// Returns how publications of a channel are delivered to a client, or `None` if it is not
    /// subscribed.
    pub(crate) fn delivery(&self, client: ClientId, channel: &ChannelName) -> Option<Delivery> {
        let shard = self.shard();
        let member = shard.clients.get(&client)?.channels.get(channel)?;
        let followers = shard
            .channels
            .get(channel)
            .and_then(|local| local.followers.as_ref());
        Some(Delivery {
            options: shard.hub.subscription_options(client, channel)?,
            presence: member.presence.clone(),
            is_announced: member.is_announced,
            follows: followers.is_some_and(|followers| followers.contains(&client)),
        })
    }

    /// Lets a client leave that another process serves from now on. Other clients are not told
    /// that it has left.
    pub(crate) fn hand_over(&self, client: ClientId) {
        if let Some(gone) = self.shard().clients.get_mut(&client) {
            if let Some(tracked) = gone.outlet.tracked() {
                tracked.set_reported(false);
            }
            for (_, member) in gone.channels.iter_mut() {
                member.is_announced = false;
            }
        }
        self.disconnect(client);
    }

    /// Ends this subscription, unless it has already ended.
    pub(super) fn end(&self, client: ClientId, channel: &ChannelName, which: SubscriptionId) {
        let shard = self.shard();
        let known = shard.clients.get(&client);
        let member = known.and_then(|client| client.channels.get(channel));
        let is_there = member.is_some_and(|member| member.subscription == which);
        drop(shard);
        if is_there {
            self.unsubscribe(client, channel);
        }
    }

    /// Resumes delivery to a client whose outlet has room again.
    pub(crate) fn writable(&self, client: ClientId) {
        self.shard().hub.handle_writable(client);
        self.inbox.wake();
    }

    /// Returns the name of a client's software. Clients with the same software share it.
    pub(crate) fn agent(&self, name: &str) -> Arc<str> {
        self.agents.lock().share(name)
    }

    /// Returns the name of a channel as its subscribers on this worker share it.
    pub(crate) fn shared_name(&self, channel: &ChannelName) -> ChannelName {
        let shard = self.shard();
        let known = shard.channels.get_key_value(channel);
        known.map_or(channel, |(name, _)| name).clone()
    }

    /// Returns the channels that a client is subscribed to.
    pub(crate) fn channels_of(&self, client: ClientId) -> Vec<ChannelName> {
        let shard = self.shard();
        let known = shard.clients.get(&client);
        let channels = known.into_iter().flat_map(|client| client.channels.keys());
        channels.cloned().collect()
    }

    /// Returns the memory accounts for this worker's clients.
    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns the node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    pub(crate) fn shard(&self) -> MutexGuard<'_, Shard> {
        self.shard.lock()
    }

    fn count_unsubscribed(&self, shard: &Shard, channel: &ChannelName) {
        let count = shard.hub.subscribers(channel.as_str());
        let counts = &self.node.subscription_counts;
        counts.unsubscribed(channel, self.index, count);
    }

    /// Cleans up after a channel has lost its last subscriber on this worker.
    fn forget(&self, shard: &mut Shard, channel: &ChannelName) {
        self.node.dispatcher.routes.remove(channel, self.index);
        let local = shard.channels.remove(channel);
        if local.is_some_and(|local| local.hold.is_some()) {
            self.node.occupancy.channel_left(channel, self.index);
        }
    }
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        self.worker.shard().waiting.remove(self.number);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
