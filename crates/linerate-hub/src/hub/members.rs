//! The clients of a hub, their subscriptions, and the queue of clients that have output.

use std::collections::VecDeque;

use smallvec::SmallVec;

use crate::{
    ChannelName, ClientId,
    hub::{
        arena::Arena,
        channels::Channels,
        client::{Client, Readiness},
        room,
        subscription::Subscription,
    },
    id::Key,
};

/// The clients and their subscriptions.
#[derive(Debug)]
pub(crate) struct Members {
    pub(crate) clients: Arena<Client>,
    pub(crate) subscriptions: Arena<Subscription>,
    /// The clients that have output and whose owners do not know it yet.
    ready: VecDeque<Key>,
}

impl Members {
    pub(crate) fn new() -> Self {
        Self {
            clients: Arena::new(),
            subscriptions: Arena::new(),
            ready: VecDeque::new(),
        }
    }

    pub(crate) fn connect(&mut self) -> ClientId {
        ClientId(self.clients.insert(Client::default()))
    }

    /// Removes a client and returns the indices of its subscriptions, which still exist.
    pub(crate) fn disconnect(&mut self, client: u32) -> SmallVec<[u32; 4]> {
        let client = self.clients.remove(client);
        let room = room::reduced(self.ready.capacity(), self.clients.len());
        if let Some(room) = room {
            self.ready.shrink_to(room);
        }
        client.subscriptions
    }

    /// Queues a subscription that has something to take, and its client.
    #[inline]
    pub(crate) fn enqueue(&mut self, subscription: u32) {
        let index = self.subscriptions[subscription].client;
        let client = &mut self.clients[index];
        client.enqueue(subscription, &mut self.subscriptions);
        if client.readiness == Readiness::Idle && !client.is_over {
            client.readiness = Readiness::Queued;
            self.ready.push_back(self.clients.key(index));
        }
    }

    /// Records that the client of a subscription is to be disconnected because it is too slow. It
    /// is reported again even if it cannot take more.
    pub(crate) fn end_slow(&mut self, subscription: u32) {
        let index = self.subscriptions[subscription].client;
        let client = &mut self.clients[index];
        if client.slow.is_some() || client.is_over {
            return;
        }
        client.slow = Some(subscription);
        if std::mem::replace(&mut client.readiness, Readiness::Queued) != Readiness::Queued {
            self.ready.push_back(self.clients.key(index));
        }
    }

    /// Records that a client can take more output again.
    #[inline]
    pub(crate) fn handle_writable(&mut self, client: ClientId) {
        let Some(index) = self.find(client) else {
            return;
        };
        let client = &mut self.clients[index];
        if client.readiness != Readiness::Told {
            return;
        }
        client.readiness = Readiness::Idle;
        if client.front().is_some() && !client.is_over {
            client.readiness = Readiness::Queued;
            self.ready.push_back(self.clients.key(index));
        }
    }

    /// Returns the next client that has output.
    #[inline]
    pub(crate) fn poll_ready(&mut self) -> Option<ClientId> {
        while let Some(key) = self.ready.pop_front() {
            let Some(index) = self.clients.find(key) else {
                continue;
            };
            let client = &mut self.clients[index];
            if client.readiness == Readiness::Queued {
                client.readiness = Readiness::Told;
                return Some(ClientId(key));
            }
        }
        None
    }

    #[inline]
    pub(crate) fn find(&self, client: ClientId) -> Option<u32> {
        self.clients.find(client.0)
    }

    /// Returns the subscription of a client to a channel.
    pub(crate) fn find_subscription<B>(
        &self,
        channels: &Channels<B>,
        client: u32,
        channel: &ChannelName,
    ) -> Option<u32> {
        let channel = channels.find(channel.as_str())?;
        let mut subscriptions = self.clients[client].subscriptions.iter().copied();
        subscriptions.find(|index| {
            let group = self.subscriptions[*index].group;
            channels.groups[group].channel == channel
        })
    }
}
