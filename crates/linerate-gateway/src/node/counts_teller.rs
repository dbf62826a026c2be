//! Tells Pusher clients, webhooks and other nodes how many subscriptions channels have.

use std::sync::Arc;

use futures_util::future::join_all;
use linerate_hub::{ChannelName, ClientId};

use super::{
    Notice,
    cluster::{Cluster, message::Body},
    inboxes::Inboxes,
    shard::Shard,
    subscription_counts::{Due, SubscriptionCounts},
};
use crate::{
    protocol::pusher,
    webhook::{Happened, Webhooks},
};

/// The maximum number of clients of a worker that are told before sockets are served again.
const CLIENTS_AT_ONCE: usize = 1_024;

/// Tells the numbers of subscriptions.
#[derive(Debug)]
pub(super) struct CountsTeller {
    pub(super) cluster: Arc<Cluster>,
    pub(super) counts: Arc<SubscriptionCounts>,
    pub(super) inboxes: Inboxes,
    pub(super) webhooks: Arc<Webhooks>,
}

impl CountsTeller {
    /// Tells the numbers that change. Never returns.
    pub(super) async fn run(self) {
        loop {
            let due = self.counts.due().await;
            self.tell(due).await;
        }
    }

    async fn tell(&self, due: Vec<Due>) {
        let announced = |due: &Due| Some((due.channel.to_string(), due.announced?));
        let announced: Vec<_> = due.iter().filter_map(announced).collect();
        if !announced.is_empty() && self.cluster.nodes_count() > 1 {
            self.cluster.say(Body::SubscriptionCounts(announced)).await;
        }
        for due in due.iter().filter(|due| due.is_reporter) {
            if let Some(count) = due.told {
                let channel = due.channel.clone();
                let happened = Happened::SubscriptionCount { channel, count };
                self.webhooks.record(None, &happened);
            }
        }
        let told = due
            .into_iter()
            .filter_map(|due| Some((due.channel, due.told?)));
        self.tell_clients(told.collect()).await;
    }

    /// Tells the Pusher clients of this node the numbers of channels.
    async fn tell_clients(&self, told: Arc<[(ChannelName, u64)]>) {
        if told.is_empty() {
            return;
        }
        let wanted = told.clone();
        let listeners = self
            .inboxes
            .run(move |shard| (shard.index, shard.listeners(&wanted)))
            .await;
        let by_worker = listeners.into_iter().map(|(worker, listeners)| {
            let told = &told;
            async move {
                for some in listeners.chunks(CLIENTS_AT_ONCE) {
                    let (told, some) = (told.clone(), some.to_vec());
                    let notify = move |shard: &Shard| shard.tell_counts(&told, &some);
                    self.inboxes.run_on(worker, notify).await;
                }
            }
        });
        join_all(by_worker).await;
    }
}

impl Shard {
    /// Returns the Pusher clients in channels, each with the index of its channel.
    fn listeners(&self, channels: &[(ChannelName, u64)]) -> Vec<(ClientId, usize)> {
        let mut listeners = Vec::new();
        for (index, (channel, _)) in channels.iter().enumerate() {
            let clients = self.hub.subscribed_clients(channel.as_str());
            let is_pusher = |client: &ClientId| {
                let client = self.clients.get(client);
                client.is_some_and(|client| client.connection.dialect.0 == pusher::EVENTS.name.0)
            };
            listeners.extend(clients.filter(is_pusher).map(|client| (client, index)));
        }
        listeners
    }

    /// Tells clients the numbers of their channels, of which each client has the index.
    fn tell_counts(&self, told: &[(ChannelName, u64)], clients: &[(ClientId, usize)]) {
        for (client, index) in clients {
            if let Some(client) = self.clients.get(client) {
                let (channel, count) = told[*index].clone();
                client
                    .outlet
                    .notify(Notice::SubscriptionCount { channel, count });
            }
        }
    }
}
