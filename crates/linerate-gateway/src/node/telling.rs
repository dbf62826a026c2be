//! Tells webhooks what happens to the clients of a worker.

use linerate_hub::{ChannelName, ClientId};

use super::{shard::Client, worker::Worker};
use crate::webhook::{Happened, Tracked};

impl Worker {
    /// Tells webhooks that a client was admitted, and later what happens to it.
    pub(crate) fn tell_connected(&self, client: ClientId) {
        self.continue_telling(client);
        if let Some(client) = self.shard().clients.get(&client) {
            let (protocol, transport) = *client.connection.dialect;
            let connected = Happened::Connected {
                protocol,
                transport,
            };
            self.tell(client, |_| connected);
        }
    }

    /// Tells webhooks what happens to a client that another process has admitted.
    pub(crate) fn continue_telling(&self, client: ClientId) {
        let shard = self.shard();
        let client = shard.clients.get(&client);
        if let Some(tracked) = client.and_then(|client| client.outlet.tracked()) {
            tracked.set_reported(true);
        }
    }

    pub(super) fn tell_subscribed(&self, client: ClientId, channel: &ChannelName) {
        if let Some(client) = self.shard().clients.get(&client) {
            let channel = channel.clone();
            self.tell(client, |_| Happened::Subscribed { channel });
        }
    }

    pub(super) fn tell_unsubscribed(&self, client: &Client, channel: &ChannelName) {
        let channel = channel.clone();
        self.tell(client, |_| Happened::Unsubscribed { channel });
    }

    pub(super) fn tell_disconnected(&self, gone: &Client) {
        let active = gone.channels.iter().filter(|(_, member)| member.is_active);
        for (channel, _) in active {
            self.tell_unsubscribed(gone, channel);
        }
        self.tell(gone, |tracked| Happened::Disconnected(tracked.parting()));
    }

    /// Tells webhooks what happened to a client, if they have been told of it before.
    fn tell(&self, client: &Client, happened: impl FnOnce(&Tracked) -> Happened) {
        let tracked = client.outlet.tracked();
        if let Some(tracked) = tracked.filter(|tracked| tracked.is_reported()) {
            let who = &client.connection.who;
            self.node.webhooks.record(Some(who), &happened(tracked));
        }
    }
}
