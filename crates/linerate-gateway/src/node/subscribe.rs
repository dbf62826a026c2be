//! How a client comes to be subscribed without missing or repeating anything.
//!
//! The hub buffers what arrives from the first step on, the broker says from when on nothing is missed, and
//! the history ends at the position after which the buffer goes on (G05).

use std::{sync::Arc, time::Instant};

use linerate_broker::{BrokerError, History, StreamOptions};
use linerate_hub::{
    ChannelName, ChannelOptions, ClientId, ClientInfo, Publication, Start, StreamPosition,
    SubscriptionId, SubscriptionOptions,
};

use super::{Worker, interest::Hold, reads::Wish, recovered::Recovered, worker::Member};

/// A subscription that a client wants.
#[derive(Clone, Debug)]
pub struct Subscribe {
    /// The channel, or a pattern if the channel's options allow it.
    pub channel: ChannelName,
    /// What the broker keeps of the channel.
    pub stream: StreamOptions,
    /// What the worker keeps of it.
    pub ring: ChannelOptions,
    /// How the subscriber wants it.
    pub options: SubscriptionOptions,
    /// Where it begins.
    pub from: From,
    /// How publications that were missed get to the client.
    pub recovery: Recovery,
    /// Who is present in the channel from then on; `None` if nobody is to know.
    pub presence: Option<ClientInfo>,
    /// Whether the others are told of `presence`, if they ask for it.
    pub is_announced: bool,
    /// Whether the client is told who comes and goes.
    pub follows: bool,
}

/// Where a subscription begins.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum From {
    /// After this position, which the client has seen.
    After(StreamPosition),
    /// With what comes next.
    #[default]
    Live,
    /// With what comes next, and the client is told at which position that is.
    Newest,
}

/// How publications that were missed get to the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Recovery {
    /// In the reply as far as they fit there, at most so many in all: if there are more, nothing is recovered.
    Reply {
        /// The most.
        publications_max: usize,
    },
    /// As blocks ahead of live ones.
    Stream {
        /// The most.
        publications_max: usize,
    },
}

/// A subscription that stands.
#[derive(Clone, Debug)]
pub struct Subscribed {
    /// Names it in blocks.
    pub subscription: SubscriptionId,
    /// Stands for the channel in native blocks of this worker.
    pub channel_id: u32,
    /// After which position it goes on, if the channel has positions and they were asked for.
    pub position: Option<StreamPosition>,
    /// Whether everything after [`From::After`] arrives.
    pub is_recovered: bool,
    /// What was missed up to `position`, for [`Recovery::Reply`], the oldest first.
    pub publications: Vec<Publication>,
}

/// Why a client is not subscribed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The broker is away or refuses.
    #[error(transparent)]
    Broker(#[from] BrokerError),
    /// The client was disconnected, or the subscription ended, before it stood.
    #[error("client has left")]
    Gone,
    /// The hub refuses.
    #[error(transparent)]
    Hub(#[from] linerate_hub::SubscribeError),
}

/// A subscription that lacks only that its history is given out. Ends when it is dropped instead.
#[derive(Debug)]
pub struct Prepared {
    worker: Arc<Worker>,
    client: ClientId,
    subscription: SubscriptionId,
    subscribe: Subscribe,
    is_pending: bool,
    found: Option<(Hold, Option<History>)>,
}

impl Prepared {
    /// Lets the subscription stand. For [`Recovery::Reply`] at most so many bytes of publications are handed back;
    /// what was missed beyond that comes as blocks ahead of live ones, and the position is where they begin.
    ///
    /// Nothing is transmitted before, and nothing after until the caller's task yields: a reply that is queued at
    /// once goes out first.
    ///
    /// # Errors
    /// The client left, or the subscription was ended.
    pub fn finish(mut self, reply_bytes_max: usize) -> Result<Subscribed, SubscribeError> {
        let worker = Arc::clone(&self.worker);
        let Some((hold, history)) = self.found.take() else {
            return Err(SubscribeError::Gone);
        };
        let subscribe = &self.subscribe;
        let recovered = Recovered::new(subscribe, history, reply_bytes_max);
        let subscribed =
            worker.finish(self.client, self.subscription, subscribe, hold, recovered)?;
        if let Some(info) = &subscribe.presence {
            let channel = subscribe.channel.clone();
            let is_announced = subscribe.is_announced;
            worker.node.member_came(channel, info, is_announced);
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
    /// Subscribes a client. When the future is dropped early, the subscription is ended. As with
    /// [`Prepared::finish`], a reply that is queued at once goes out before everything else.
    ///
    /// # Errors
    /// The client has the subscription already, the broker is away or refuses, or the client left.
    pub async fn subscribe(
        self: &Arc<Self>,
        client: ClientId,
        subscribe: Subscribe,
    ) -> Result<Subscribed, SubscribeError> {
        self.prepare(client, subscribe).await?.finish(usize::MAX)
    }

    /// Begins to subscribe a client: what is published from now on waits until the subscription is finished. Several
    /// can be prepared at the same time, and finished in any order.
    ///
    /// # Errors
    /// The client has the subscription already, or the broker is away or refuses.
    pub async fn prepare(
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
        let interests = self.node.interests();
        let hold = interests.hold(&subscribe.channel, subscribe.stream).await?;
        let history = self.read_history(subscribe).await?;
        prepared.found = Some((hold, history));
        Ok(prepared)
    }

    /// Starts to buffer.
    fn begin(
        &self,
        client: ClientId,
        subscribe: &Subscribe,
    ) -> Result<SubscriptionId, SubscribeError> {
        let channel = &subscribe.channel;
        let options = SubscriptionOptions {
            label: self.node.label_of(channel),
            ..subscribe.options.clone()
        };
        let mut state = self.state();
        let state = &mut *state;
        let Some(known) = state.clients.get_mut(&client) else {
            return Err(SubscribeError::Gone);
        };
        let subscription = state.hub.subscribe(
            Instant::now(),
            client,
            channel.clone(),
            subscribe.ring,
            options,
        )?;
        self.inbox
            .set_batch_interval(state.hub.batch_interval_min());
        let member = Member {
            subscription,
            presence: None,
            is_announced: false,
            share: self
                .accounts()
                .subscriptions
                .share(footprint(channel, None)),
        };
        known.channels.insert(channel.clone(), member);
        self.node.counts().subscribed();
        if !state.channels.contains_key(channel) {
            state.channels.insert(channel.clone(), Default::default());
            self.node.dispatcher().routes.add(channel, self.index);
        }
        Ok(subscription)
    }

    /// Reads what the client missed, or only where the stream is.
    async fn read_history(&self, subscribe: &Subscribe) -> Result<Option<History>, BrokerError> {
        let since = match &subscribe.from {
            From::After(position) => Some(position.clone()),
            From::Live => return Ok(None),
            From::Newest => None,
        };
        let (Recovery::Reply { publications_max } | Recovery::Stream { publications_max }) =
            subscribe.recovery;
        let wish = Wish {
            stream: subscribe.stream,
            since,
            // One more, to see whether there are more.
            limit: publications_max.saturating_add(1),
        };
        let history = self.node.reads().read(&subscribe.channel, wish).await;
        match history {
            Ok(history) => Ok(Some(history)),
            Err(BrokerError::NoHistory) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets go what was buffered, after what is `recovered`.
    fn finish(
        &self,
        client: ClientId,
        subscription: SubscriptionId,
        subscribe: &Subscribe,
        hold: Hold,
        recovered: Recovered,
    ) -> Result<Subscribed, SubscribeError> {
        let mut state = self.state();
        let state = &mut *state;
        let channel = &subscribe.channel;
        let member = state.clients.get_mut(&client);
        let member = member.and_then(|client| client.channels.get_mut(channel));
        let member = member.filter(|member| member.subscription == subscription);
        let (Some(member), Some(local)) = (member, state.channels.get_mut(channel)) else {
            return Err(SubscribeError::Gone);
        };
        member.presence.clone_from(&subscribe.presence);
        member.is_announced = subscribe.is_announced;
        let footprint = footprint(channel, member.presence.as_ref());
        member.share.set(footprint);
        local.hold.get_or_insert(hold);
        if subscribe.follows {
            local.followers.insert(client);
        }
        let now = Instant::now();
        let start = match recovered.newest {
            Some(position) => Start::After(position),
            None => Start::Live,
        };
        if !recovered.streamed.is_empty() {
            state.hub.replay(subscription, recovered.streamed);
        }
        state.hub.activate(now, subscription, start);
        Ok(Subscribed {
            subscription,
            channel_id: state.hub.channel_id(channel.as_str()).unwrap_or_default(),
            position: recovered.position,
            is_recovered: recovered.is_complete,
            publications: recovered.replied,
        })
    }
}

/// What a subscription takes beside the names and texts that the client chose: its places in tables of the worker and
/// of its hub.
pub(super) const FOOTPRINT_BYTES: usize = 512;

fn footprint(channel: &ChannelName, presence: Option<&ClientInfo>) -> u64 {
    let texts = channel.as_str().len() + presence.map_or(0, ClientInfo::bytes);
    (FOOTPRINT_BYTES + texts) as u64
}
