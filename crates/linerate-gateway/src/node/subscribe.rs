//! Subscribes a client without missing or repeating anything.
//!
//! The hub buffers what arrives from the first step on. The broker reports from when on nothing is
//! missed, and the history ends at the position after which the buffer continues (G05).

use std::sync::Arc;

use linerate_broker::{BrokerError, History};
use linerate_hub::{
    ChannelName, ClientId, ClientInfo, Publication, Start, StreamPosition, SubscriptionId,
    SubscriptionOptions,
};

use super::{
    Recovery, StartPosition, Subscribe, Worker,
    interest::InterestGuard,
    reads::ReadRequest,
    recovered::{self, Recovered},
    shard::Member,
};
use crate::clock::now;

/// An active subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscribed {
    /// The position after which the subscription continues, if the channel has positions and they
    /// were requested.
    pub position: Option<StreamPosition>,
    /// True if everything after [`StartPosition::After`] is delivered, or if the client has the
    /// newest publication with [`StartPosition::Cached`].
    pub is_recovered: bool,
    /// For [`Recovery::Reply`], the missed publications up to `position`, oldest first.
    pub publications: Vec<Publication>,
}

/// Why a client cannot be subscribed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SubscribeError {
    /// The broker is unavailable or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The client disconnected, or the subscription ended, before the subscription was active.
    #[error("client has disconnected or unsubscribed")]
    Gone,
    /// The hub refuses the subscription.
    #[error(transparent)]
    Hub(#[from] linerate_hub::SubscribeError),
}

/// A subscription that is ready to be activated. It ends if it is dropped instead.
#[derive(Debug)]
pub(crate) struct Prepared {
    worker: Arc<Worker>,
    client: ClientId,
    subscription: SubscriptionId,
    subscribe: Subscribe,
    is_pending: bool,
    found: Option<(InterestGuard, Option<History>)>,
}

impl Prepared {
    /// Returns whether everything after [`StartPosition::After`] will be delivered, unless a source
    /// reports a gap before the subscription is finished.
    pub(crate) fn recovers(&self) -> bool {
        let (StartPosition::After(since), Some((_, Some(history)))) =
            (&self.subscribe.from, &self.found)
        else {
            return false;
        };
        recovered::is_complete(&self.subscribe, history) && !self.is_separated(since, history)
    }

    /// Returns whether a source has reported a gap after a position.
    fn is_separated(&self, since: &StreamPosition, history: &History) -> bool {
        let gaps = &self.worker.node.source_gaps;
        gaps.separate(&self.subscribe.channel, since, &history.newest, now())
    }

    /// Activates the subscription. For [`Recovery::Reply`], up to `reply_bytes_max` bytes of
    /// publications are returned. What was missed beyond that is sent as blocks ahead of live ones,
    /// and the returned position is where these begin.
    ///
    /// Nothing is transmitted before this call, or after it until the caller's task yields, so a
    /// reply that is queued at once is sent first.
    ///
    /// # Errors
    /// The client disconnected, or the subscription was ended.
    pub(crate) fn finish(self, reply_bytes_max: usize) -> Result<Subscribed, SubscribeError> {
        let is_announced = self.subscribe.is_announced;
        let (worker, client) = (self.worker.clone(), self.client);
        let channel = self.subscribe.channel.clone();
        let subscribed = self.activate(reply_bytes_max, is_announced)?;
        worker.tell_subscribed(client, &channel);
        Ok(subscribed)
    }

    /// Activates the subscription. `is_announced` tells whether others are told that the client has
    /// joined.
    fn activate(
        mut self,
        reply_bytes_max: usize,
        is_announced: bool,
    ) -> Result<Subscribed, SubscribeError> {
        let worker = Arc::clone(&self.worker);
        let Some((hold, mut history)) = self.found.take() else {
            return Err(SubscribeError::Gone);
        };
        let subscribe = &self.subscribe;
        if let (Some(history), StartPosition::After(since)) = (&mut history, &subscribe.from)
            && self.is_separated(since, history)
        {
            history.is_contiguous = false;
        }
        let recovered = Recovered::new(subscribe, history, reply_bytes_max);
        let subscribed =
            worker.finish(self.client, self.subscription, subscribe, hold, recovered)?;
        if let Some(info) = &subscribe.presence {
            let channel = subscribe.channel.clone();
            worker.node.presence.came(channel, info, is_announced);
        }
        self.is_pending = false;
        worker.inbox.wake();
        Ok(subscribed)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.is_pending {
            let channel = &self.subscribe.channel;
            self.worker.end(self.client, channel, self.subscription);
        }
    }
}

impl Worker {
    /// Subscribes a client. If the future is dropped early, the subscription ends. As with
    /// [`Prepared::finish`], a reply that is queued at once is sent before everything else.
    ///
    /// # Errors
    /// The client already has the subscription, the broker is unavailable or refuses, or the client
    /// disconnected.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        client: ClientId,
        subscribe: Subscribe,
    ) -> Result<Subscribed, SubscribeError> {
        self.prepare(client, subscribe).await?.finish(usize::MAX)
    }

    /// Continues a subscription of another process. Others are not told that the client has joined.
    ///
    /// # Errors
    /// The same as those of [`subscribe`](Self::subscribe).
    pub(crate) async fn restore(
        self: &Arc<Self>,
        client: ClientId,
        subscribe: Subscribe,
    ) -> Result<(), SubscribeError> {
        let prepared = self.prepare(client, subscribe).await?;
        prepared.activate(usize::MAX, false)?;
        Ok(())
    }

    /// Begins to subscribe a client. Later publications are buffered until the subscription is
    /// finished. Several subscriptions can be prepared concurrently and finished in any order.
    ///
    /// # Errors
    /// The client already has the subscription, the broker is unavailable or refuses, or the client
    /// disconnected.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        client: ClientId,
        subscribe: Subscribe,
    ) -> Result<Prepared, SubscribeError> {
        let mut prepared = Prepared {
            subscription: self.begin(client, &subscribe)?,
            worker: Arc::clone(self),
            client,
            subscribe,
            is_pending: true,
            found: None,
        };
        let subscribe = &prepared.subscribe;
        let interests = &self.node.interests;
        let hold = interests.hold(&subscribe.channel, subscribe.stream).await?;
        let history = self.read_history(subscribe).await?;
        prepared.found = Some((hold, history));
        Ok(prepared)
    }

    /// Registers the subscription with the hub, which starts to buffer.
    fn begin(
        &self,
        client: ClientId,
        subscribe: &Subscribe,
    ) -> Result<SubscriptionId, SubscribeError> {
        let channel = &subscribe.channel;
        let options = SubscriptionOptions {
            label: self.node.namespaces.label_of(channel),
            ..subscribe.options.clone()
        };
        let mut shard = self.shard();
        let shard = &mut *shard;
        let Some(known) = shard.clients.get_mut(&client) else {
            return Err(SubscribeError::Gone);
        };
        let subscription =
            shard
                .hub
                .subscribe(now(), client, channel.clone(), subscribe.ring, options)?;
        self.inbox
            .set_batch_interval(shard.hub.batch_interval_min());
        let member = Member {
            subscription,
            presence: None,
            is_active: false,
            is_announced: false,
            share: self
                .accounts()
                .subscriptions
                .share(footprint(channel, None)),
        };
        // All subscribers of the channel share its name.
        let name = match shard.channels.get_key_value(channel) {
            Some((name, _)) => name.clone(),
            None => {
                shard.channels.insert(channel.clone(), Default::default());
                self.node.dispatcher.routes.add(channel, self.index);
                channel.clone()
            }
        };
        known.channels.insert(name, member);
        self.node.counts.subscribed();
        Ok(subscription)
    }

    /// Reads what the client missed, or only the newest position of the stream.
    async fn read_history(&self, subscribe: &Subscribe) -> Result<Option<History>, BrokerError> {
        let (Recovery::Reply { publications_max } | Recovery::Stream { publications_max }) =
            subscribe.recovery;
        let (since, limit) = match &subscribe.from {
            // Ask for one more, to detect whether there are more.
            StartPosition::After(position) => {
                (Some(position.clone()), publications_max.saturating_add(1))
            }
            // The newest publication may be one that the filter rejects.
            StartPosition::Cached(_) if subscribe.options.filter.is_some() => {
                (None, publications_max)
            }
            StartPosition::Cached(_) => (None, 1),
            StartPosition::Live => return Ok(None),
            StartPosition::Newest => (None, 0),
        };
        let request = ReadRequest {
            stream: subscribe.stream,
            since,
            limit,
        };
        let history = self
            .node
            .histories
            .reads
            .read(&subscribe.channel, request)
            .await;
        match history {
            Ok(history) => Ok(Some(history)),
            Err(BrokerError::NoHistory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends what is in `recovered`, then what was buffered.
    fn finish(
        &self,
        client: ClientId,
        subscription: SubscriptionId,
        subscribe: &Subscribe,
        hold: InterestGuard,
        recovered: Recovered,
    ) -> Result<Subscribed, SubscribeError> {
        let mut shard = self.shard();
        let shard = &mut *shard;
        let channel = &subscribe.channel;
        let member = shard.clients.get_mut(&client);
        let member = member.and_then(|client| client.channels.get_mut(channel));
        let member = member.filter(|member| member.subscription == subscription);
        let (Some(member), Some(local)) = (member, shard.channels.get_mut(channel)) else {
            return Err(SubscribeError::Gone);
        };
        member.presence = subscribe.presence.clone();
        member.is_active = true;
        member.is_announced = subscribe.is_announced;
        let footprint = footprint(channel, member.presence.as_deref());
        member.share.set(footprint);
        if local.hold.is_none() {
            local.hold = Some(hold);
            self.node.occupancy.channel_came(channel, self.index);
        }
        if subscribe.follows {
            local.followers.get_or_insert_default().insert(client);
        }
        let now = now();
        let start = match recovered.newest {
            Some(position) => Start::After(position),
            None => Start::Live,
        };
        if !recovered.streamed.is_empty() {
            shard.hub.replay(subscription, recovered.streamed);
        }
        shard.hub.activate(now, subscription, start);
        let count = shard.hub.subscribers(channel.as_str());
        let counts = &self.node.subscription_counts;
        counts.subscribed(channel, self.index, count);
        Ok(Subscribed {
            position: recovered.position,
            is_recovered: recovered.is_complete,
            publications: recovered.replied,
        })
    }
}

/// The approximate memory of a subscription, in bytes, apart from the strings that the client
/// chose: its entries in the tables of the worker and of its hub.
pub(super) const FOOTPRINT_BYTES: usize = 512;

fn footprint(channel: &ChannelName, presence: Option<&ClientInfo>) -> u64 {
    let texts = channel.as_str().len() + presence.map_or(0, ClientInfo::bytes);
    (FOOTPRINT_BYTES + texts) as u64
}
