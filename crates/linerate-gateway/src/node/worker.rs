//! One thread's part of the node: its hub, and the clients whose connections run on it.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use linerate_budget::Share;
use linerate_hub::{ChannelName, ClientId, ClientInfo, SubscriptionId, hub::IsChannelEmpty};

use super::{
    Hub, Node,
    accounts::Accounts,
    inbox::Inbox,
    interest::Hold,
    outlet::{Connection, Notice, Outlet},
};
use crate::protocol::codes::Disconnect;

/// A worker of a [`Node`], used only on its own thread.
///
/// The mutex exists only because handlers must be `Send`; it is never contended. Other threads
/// submit jobs through the inbox.
pub(crate) struct Worker {
    pub(super) node: Arc<Node>,
    pub(super) index: u16,
    pub(super) inbox: Arc<Inbox>,
    accounts: Accounts,
    state: Mutex<State>,
}

/// The state of a worker.
pub(crate) struct State {
    pub(crate) hub: Hub,
    pub(crate) clients: HashMap<ClientId, Client, RandomState>,
    pub(crate) channels: HashMap<ChannelName, Channel, RandomState>,
    /// True while draining: new clients are disconnected immediately.
    turns_away: bool,
}

/// A client whose connection runs on this worker.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) channels: HashMap<ChannelName, Member, RandomState>,
}

/// The worker's state for a subscription, in addition to the hub's.
#[derive(Debug)]
pub(crate) struct Member {
    /// The ID of the subscription in the hub.
    pub(crate) subscription: SubscriptionId,
    /// The presence information, if the client is listed as present.
    pub(crate) presence: Option<ClientInfo>,
    /// True if other clients are told when this one joins and leaves.
    pub(crate) is_announced: bool,
    /// The part of the memory account that the subscription uses.
    pub(crate) share: Share,
}

/// A channel with subscribers on this worker.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    /// Keeps the channel subscribed at the broker; `None` until the broker has answered.
    pub(crate) hold: Option<Hold>,
    /// The clients that are told who joins and leaves.
    pub(crate) followers: HashSet<ClientId, RandomState>,
}

impl Worker {
    pub(super) fn new(node: Arc<Node>, index: u16, hub: Hub, accounts: Accounts) -> Self {
        let inbox = node.dispatcher().inboxes[usize::from(index)].clone();
        let state = State {
            hub,
            clients: HashMap::default(),
            channels: HashMap::default(),
            turns_away: false,
        };
        Self {
            node,
            index,
            inbox,
            accounts,
            state: Mutex::new(state),
        }
    }

    /// Registers a client. Its blocks go to `outlet` until [`disconnect`](Self::disconnect) is
    /// called.
    pub(crate) fn connect(&self, connection: Connection, outlet: Arc<dyn Outlet>) -> ClientId {
        let mut state = self.state();
        let id = state.hub.connect();
        let client = Client {
            connection,
            outlet,
            channels: HashMap::default(),
        };
        let connection = &client.connection;
        let counts = self.node.counts();
        counts.client_came(&connection.user, connection.dialect());
        if state.turns_away {
            client
                .outlet
                .notify(Notice::Disconnect(Disconnect::SHUTDOWN));
        }
        state.clients.insert(id, client);
        id
    }

    /// Disconnects new clients at once from now on, so that they connect to another node.
    pub(crate) fn turn_away(&self) {
        self.state().turns_away = true;
    }

    /// Removes a client and ends its subscriptions. Does nothing if the client is unknown.
    pub(crate) fn disconnect(&self, client: ClientId) {
        let mut state = self.state();
        let Some(gone) = state.clients.remove(&client) else {
            return;
        };
        let emptied = state.hub.disconnect(client);
        self.inbox
            .set_batch_interval(state.hub.batch_interval_min());
        for channel in gone.channels.keys() {
            state.unfollow(client, channel);
        }
        for channel in &emptied {
            self.forget(&mut state, channel);
        }
        drop(state);
        let (counts, connection) = (self.node.counts(), &gone.connection);
        counts.client_left(&connection.user, connection.dialect());
        counts.unsubscribed(gone.channels.len());
        for (channel, member) in gone.channels {
            self.node.member_left(channel, member);
        }
    }

    /// Ends a subscription. Returns `false` if there was none.
    pub(crate) fn unsubscribe(&self, client: ClientId, channel: &ChannelName) -> bool {
        let mut state = self.state();
        let ended = state.hub.unsubscribe(client, channel);
        self.inbox
            .set_batch_interval(state.hub.batch_interval_min());
        let gone = state.clients.get_mut(&client);
        let member = gone.and_then(|client| client.channels.remove(channel));
        state.unfollow(client, channel);
        if ended == Some(IsChannelEmpty(true)) {
            self.forget(&mut state, channel);
        }
        drop(state);
        if let Some(member) = member {
            self.node.counts().unsubscribed(1);
            self.node.member_left(channel.clone(), member);
        }
        ended.is_some()
    }

    /// Ends this subscription, unless it has already ended.
    pub(super) fn end(&self, client: ClientId, channel: &ChannelName, which: SubscriptionId) {
        let state = self.state();
        let known = state.clients.get(&client);
        let member = known.and_then(|client| client.channels.get(channel));
        let is_there = member.is_some_and(|member| member.subscription == which);
        drop(state);
        if is_there {
            self.unsubscribe(client, channel);
        }
    }

    /// Resumes delivery to a client whose outlet has room again.
    pub(crate) fn writable(&self, client: ClientId) {
        self.state().hub.handle_writable(client);
        self.inbox.wake();
    }

    /// Returns the memory accounts for this worker's clients.
    pub(crate) const fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    /// Returns the node.
    pub(crate) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the index of this worker in the node, counted from 0.
    pub(crate) const fn index(&self) -> u16 {
        self.index
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cleans up after a channel has lost its last subscriber on this worker.
    fn forget(&self, state: &mut State, channel: &ChannelName) {
        self.node.dispatcher().routes.remove(channel, self.index);
        state.channels.remove(channel);
    }
}

impl State {
    fn unfollow(&mut self, client: ClientId, channel: &ChannelName) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.followers.remove(&client);
        }
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
