//! Asynchronous operations of a session: they wait for tokens, the broker and other nodes.

mod phoenix;
mod pusher;
mod socketio;

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_broker::{BrokerError, HistoryRequest, Publish};
use linerate_hub::{ChannelName, ClientId, ClientInfo, StreamPosition, SubscribeError as HubError};
use linerate_kafka::ProduceError;

use super::{
    Authenticated, Gate, Identity, Member, Refusal, SessionOutlet, Subscription, Terms,
    activity::SUBSCRIBES_AT_ONCE, deadlines::until, identity::end_of, plan::Plan,
    renewals::Renewals,
};
use crate::{
    auth::{ConnectionClaims, SubscriptionClaims},
    backend::{Admitted, Backend, ForwardedHeaders, Question, Renewal},
    clock::now,
    node::{
        Connection, Prepared, PublishError, StartPosition, SubscribeError, Trail, fitting, weight,
    },
    producer::Author,
    protocol::{
        centrifuge::compact_id,
        codes::ClientError,
        command::{self, Connect},
        reply::{Answer, HistoryPage, Recovery, Subscribed},
    },
    webhook::{Happened, Publication},
};

pub(crate) use phoenix::PhoenixCompletion;
pub(crate) use pusher::{PusherCandidate, PusherCompletion};
pub(super) use socketio::Returning;
pub(crate) use socketio::{OpenEvent, SocketIoCompletion};

/// An operation that a session waits for. It owns everything it needs, so the session can continue
/// in the meantime.
pub(crate) type Work = Pin<Box<dyn Future<Output = Completion> + Send>>;

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum Completion {
    /// An answer that does not change the session.
    Answered(Result<Answer, Refusal>),
    Connected(Result<ConnectedClient, Refusal>),
    Phoenix(PhoenixCompletion),
    Pusher(PusherCompletion),
    Refreshed(Result<ConnectionClaims, Refusal>),
    /// What a backend says about the connection, or about the subscription to a channel.
    Renewed(Option<ChannelName>, Result<Renewal, Refusal>),
    /// A message of the client was passed on.
    Sent(Result<(), Refusal>),
    SocketIo(SocketIoCompletion),
    SubRefreshed(ChannelName, Result<SubscriptionClaims, Refusal>),
    Subscribed(ChannelName, Result<Box<Candidate>, Refusal>),
}

/// A client that is connected.
#[derive(Debug)]
pub(crate) struct ConnectedClient {
    pub(super) connection: Arc<Connection>,
    pub(super) identity: Arc<Identity>,
    pub(super) member: Member,
    pub(super) standings: Vec<(ChannelName, ActiveSubscription)>,
    /// Data for the client.
    pub(super) data: Option<Bytes>,
}

/// An active subscription.
#[derive(Debug)]
pub(crate) struct ActiveSubscription {
    pub(super) subscription: Subscription,
    pub(super) subscribed: Subscribed,
}

/// A prepared subscription, which becomes active when its turn comes.
#[derive(Debug)]
pub(crate) struct Candidate {
    who: Arc<ClientInfo>,
    prepared: Prepared,
    claims: Option<SubscriptionClaims>,
    ends_with_gap: bool,
    is_positioned: bool,
    is_recoverable: bool,
    was_recovering: bool,
    with_deltas: bool,
    with_channel_id: bool,
    /// Where a journal of the client begins; `None` if the broker says it, or if it cannot begin.
    since: Option<StreamPosition>,
    is_replayable: bool,
    info: Option<Bytes>,
}

/// A subscription to be made: the channel, the parameters, and the claims of the client.
type Wanted = (ChannelName, command::Subscribe, Option<SubscriptionClaims>);

/// What the operations of a session need.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) gate: Arc<Gate>,
    pub(crate) outlet: Arc<dyn SessionOutlet>,
    /// The description of the client, which its worker shares once the client has joined.
    pub(crate) connection: Arc<Connection>,
    /// The headers that are forwarded to backends.
    pub(crate) headers: Option<Arc<ForwardedHeaders>>,
}

impl Context {
    /// Authenticates the client, registers it with the worker, and makes the subscriptions that its
    /// token names.
    pub(super) async fn connect(self, connect: Connect) -> Result<ConnectedClient, Refusal> {
        let admitted = self.visitor().authenticate(&connect).await?;
        self.connect_as(Authenticated { connect, admitted }).await
    }

    /// Registers a client that has been authenticated, and makes the subscriptions that its token
    /// names.
    pub(super) async fn connect_as(
        mut self,
        authenticated: Authenticated,
    ) -> Result<ConnectedClient, Refusal> {
        let Authenticated { connect, admitted } = authenticated;
        let (claims, data) = match admitted {
            Some(Admitted { claims, data }) => (Some(claims), data),
            None => (None, None),
        };
        let identity = Arc::new(Identity::new(&self.connection.who, claims.as_ref()));
        let member = self.join_unrevoked(&identity)?;
        self.gate.worker.tell_connected(member.id());
        let subscriptions = claims.into_iter().flat_map(|claims| claims.subscriptions);
        let subscriptions = self.of_namespace(&connect, subscriptions);
        let wanted = subscriptions.into_iter().map(|(channel, claims)| {
            let before = connect.subscriptions.iter();
            let before = before.clone().find(|one| one.channel == channel.as_str());
            (channel, before.cloned().unwrap_or_default(), Some(claims))
        });
        let standings = self.subscribe_all(&identity, member.id(), wanted).await?;
        Ok(ConnectedClient {
            connection: self.connection,
            identity,
            member,
            standings,
            data,
        })
    }

    /// Registers the client with the worker, unless its token has been revoked or there are too
    /// many connections.
    fn join_unrevoked(&mut self, identity: &Identity) -> Result<Member, Refusal> {
        let member = self.join(identity)?;
        self.gate.check_app()?;
        // From here on, the worker reports revocations.
        self.gate
            .check_revoked(identity.user(), identity.token())
            .map_err(Refusal::of_connection)
            .map_err(Refusal::wanting_another_token)?;
        Ok(member)
    }

    /// Registers the client with the worker, unless its user has too many connections.
    pub(crate) fn join(&mut self, identity: &Identity) -> Result<Member, Refusal> {
        if !Arc::ptr_eq(&self.connection.who, &identity.who) {
            Arc::make_mut(&mut self.connection).who = identity.who.clone();
        }
        let (worker, outlet) = (&self.gate.worker, self.outlet.clone());
        let id = worker.connect(self.connection.clone(), outlet);
        let member = Member::new(self.gate.worker.clone(), id);
        // Count first and check afterwards; otherwise clients that connect at the same time could
        // exceed the limit together.
        self.gate.check_user(identity)?;
        Ok(member)
    }

    /// Makes several subscriptions concurrently and returns them in the order of `wanted`.
    pub(crate) async fn subscribe_all(
        &self,
        identity: &Identity,
        id: ClientId,
        wanted: impl IntoIterator<Item = Wanted>,
    ) -> Result<Vec<(ChannelName, ActiveSubscription)>, Refusal> {
        self.finish_all(self.prepare_all(identity, id, wanted).await?)
    }

    /// Prepares several subscriptions concurrently and returns them in the order of `wanted`.
    async fn prepare_all(
        &self,
        identity: &Identity,
        id: ClientId,
        wanted: impl IntoIterator<Item = Wanted>,
    ) -> Result<Vec<(ChannelName, Candidate)>, Refusal> {
        let prepare = async |(channel, wanted, claims): Wanted| {
            let candidate = self.prepare(identity, id, channel.clone(), &wanted, claims);
            Ok::<_, Refusal>((channel, candidate.await?))
        };
        let candidates = stream::iter(wanted).map(prepare);
        candidates.buffered(SUBSCRIBES_AT_ONCE).try_collect().await
    }

    /// Activates several subscriptions and returns them in the same order.
    fn finish_all(
        &self,
        candidates: Vec<(ChannelName, Candidate)>,
    ) -> Result<Vec<(ChannelName, ActiveSubscription)>, Refusal> {
        // All subscriptions share one reply and its size limit.
        let mut bytes_left = self.reply_bytes_max();
        let candidates = candidates.into_iter();
        let finish = |(channel, candidate): (ChannelName, Candidate)| {
            let standing = candidate.finish(self, &channel, bytes_left)?;
            let recovery = standing.subscribed.recovery.as_ref();
            let told = recovery.map_or(&[][..], |recovery| &recovery.publications);
            bytes_left = bytes_left.saturating_sub(told.iter().map(weight).sum());
            Ok((channel, standing))
        };
        candidates.map(finish).collect()
    }

    /// Prepares a subscription that a client asks for.
    pub(super) async fn prepare_asked(
        self,
        identity: Arc<Identity>,
        id: ClientId,
        channel: ChannelName,
        wanted: command::Subscribe,
    ) -> Result<Box<Candidate>, Refusal> {
        let visitor = self.visitor();
        let claims = visitor.judge_subscription(&identity, &channel, &wanted);
        let claims = claims.await?;
        let candidate = self.prepare(&identity, id, channel, &wanted, claims);
        candidate.await.map(Box::new)
    }

    /// Prepares a subscription of a client whose token, if any, has been verified.
    pub(super) async fn prepare(
        &self,
        identity: &Identity,
        id: ClientId,
        channel: ChannelName,
        wanted: &command::Subscribe,
        claims: Option<SubscriptionClaims>,
    ) -> Result<Candidate, Refusal> {
        let settings = self.gate.shared.settings_full();
        let mut plan = self
            .gate
            .plan(&settings, identity, channel, wanted, claims.as_ref())?;
        let has_journal = self.outlet.journal().is_some();
        plan.subscribe.options.with_positions = has_journal && plan.is_replayable;
        let was_recovering = plan.is_recoverable && wanted.recover.is_some();
        let candidate = self.prepare_plan(identity, id, plan, claims).await?;
        Ok(Candidate {
            was_recovering,
            ..candidate
        })
    }

    /// Prepares a subscription that does not recover, as planned.
    pub(super) async fn prepare_plan(
        &self,
        identity: &Identity,
        id: ClientId,
        plan: Plan,
        claims: Option<SubscriptionClaims>,
    ) -> Result<Candidate, Refusal> {
        let ends_with_gap = plan.subscribe.options.positioned;
        let with_deltas = plan.subscribe.options.with_deltas;
        let with_channel_id = plan.subscribe.options.with_channel_id;
        let since = match &plan.subscribe.from {
            StartPosition::After(since) => Some(since.clone()),
            _ => None,
        };
        let prepared = self.gate.worker.prepare(id, plan.subscribe).await?;
        Ok(Candidate {
            who: identity.who.clone(),
            prepared,
            claims,
            ends_with_gap,
            is_positioned: plan.is_positioned,
            is_recoverable: plan.is_recoverable,
            was_recovering: false,
            with_deltas,
            with_channel_id,
            since,
            is_replayable: plan.is_replayable,
            info: plan.info,
        })
    }

    /// Returns the maximum size of the publications in a reply, in bytes.
    pub(super) fn reply_bytes_max(&self) -> usize {
        self.gate.shared.settings().config.client.reply_bytes_max
    }

    /// Returns the channel's ID if the client needs it: because the dialect has no names of
    /// channels, or because the client has asked for it.
    fn number(&self, channel: &ChannelName, is_compact: bool) -> Option<u32> {
        let has_channel_ids = self.gate.dialect.has_channel_ids();
        if !has_channel_ids && !is_compact {
            return None;
        }
        let id = self.gate.worker.shard().hub.channel_id(channel.as_str())?;
        Some(if has_channel_ids { id } else { compact_id(id) })
    }

    /// Publishes, after asking the backend if there is one.
    pub(super) async fn publish(
        self,
        channel: ChannelName,
        mut publish: Publish,
        asking: Option<(Arc<Backend>, Arc<Identity>)>,
    ) -> Result<Answer, Refusal> {
        if let Some((backend, identity)) = asking {
            let visitor = self.visitor();
            let asked = visitor.publish(backend, &identity, &channel, &publish.payload);
            let published = asked.await?;
            if let Some(data) = published.data {
                publish.payload = data;
            }
            if published.skip_history {
                publish.options.size_max = 0;
            }
        }
        let node = self.gate.worker.node();
        let wants_published = node.webhooks.wants_published();
        let described = wants_published.then(|| {
            // The client as others see it in the channel, if they are told who has published.
            let who = publish.info.clone().map(Arc::new);
            let who = who.unwrap_or_else(|| self.connection.who.clone());
            (who, Publication::new(channel.clone(), &publish))
        });
        let author = Author::Client(&self.connection.who);
        let published = node.publish(&channel, publish, author).await;
        published.map_err(of_publication)?;
        if let Some((who, publication)) = described {
            let happened = Happened::Published(publication);
            node.webhooks.record(Some(&who), &happened);
        }
        Ok(Answer::Publish)
    }

    /// Calls a method of the application.
    pub(super) async fn rpc(
        self,
        backend: Arc<Backend>,
        identity: Arc<Identity>,
        (method, data): (String, Bytes),
    ) -> Result<Answer, Refusal> {
        let question = Question::Rpc {
            method: &method,
            channel: None,
            data: &data,
        };
        let data = self.visitor().call(backend, &identity, &question).await?;
        Ok(Answer::Rpc { data })
    }

    /// Passes a message to the application.
    pub(super) async fn send(
        self,
        backend: Arc<Backend>,
        identity: Arc<Identity>,
        data: Bytes,
    ) -> Result<(), Refusal> {
        let question = Question::Send { data: &data };
        self.visitor()
            .call(backend, &identity, &question)
            .await
            .map(drop)
    }

    pub(super) async fn history(
        self,
        channel: ChannelName,
        wanted: command::History,
    ) -> Result<Answer, Refusal> {
        let stream = self.gate.shared.settings().channel(&channel).stream();
        let since = wanted.since.map(|since| Trail::split(&since).0);
        let since_epoch = since.as_ref().map(|since| since.epoch.clone());
        let request = HistoryRequest {
            since,
            limit: wanted.limit,
            is_reverse: wanted.is_reverse,
        };
        let history = self
            .gate
            .worker
            .node()
            .histories
            .read(&channel, stream, request)
            .await;
        let mut history = history.map_err(of_broker)?;
        let is_other = |epoch: linerate_hub::Epoch| {
            !epoch.as_str().is_empty() && epoch != history.newest.epoch
        };
        if since_epoch.is_some_and(is_other) {
            return Err(ClientError::UNRECOVERABLE_POSITION.into());
        }
        // Return at least one publication, so that a client that pages through the history makes
        // progress.
        let fitting = fitting(&history.publications, self.reply_bytes_max());
        history.publications.truncate(fitting.max(1));
        Ok(Answer::History(HistoryPage {
            publications: history.publications,
            newest: history.newest,
        }))
    }

    pub(super) async fn presence(self, channel: ChannelName) -> Result<Answer, Refusal> {
        let clients = self.clients_in(&channel).await?;
        Ok(Answer::Presence(clients))
    }

    pub(super) async fn presence_stats(self, channel: ChannelName) -> Result<Answer, Refusal> {
        let stats = self
            .gate
            .worker
            .node()
            .all_nodes
            .presence_stats(&channel)
            .await
            .map_err(of_broker)?;
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Answer::PresenceStats {
            clients: count(stats.clients),
            users: count(stats.users),
        })
    }
}

impl Candidate {
    /// Returns whether everything that the client missed will be delivered.
    fn recovers(&self) -> bool {
        self.prepared.recovers()
    }

    /// Activates the subscription. The reply to the client must be queued at once, before any
    /// publication.
    ///
    /// # Errors
    /// The subscription has ended in the meantime, or its token has been revoked.
    pub(super) fn finish(
        self,
        context: &Context,
        channel: &ChannelName,
        reply_bytes_max: usize,
    ) -> Result<ActiveSubscription, Refusal> {
        let token = self.claims.as_ref().and_then(|claims| claims.token.clone());
        let gate = &context.gate;
        gate.check_revoked(&self.who.user, token.as_ref())
            .map_err(Refusal::of_subscription)
            .map_err(Refusal::wanting_another_token)?;
        let shared = &gate.shared;
        let subscribed = self.prepared.finish(reply_bytes_max)?;
        if let Some(journal) = context.outlet.journal() {
            let start = self.since.or_else(|| subscribed.position.clone());
            journal.enter(channel, start.filter(|_| self.is_replayable));
        }
        if self.was_recovering {
            shared.metrics().count_recovery(subscribed.is_recovered);
        }
        let expires_at = self.claims.as_ref().and_then(|claims| claims.expires_at);
        let ttl = expires_at.map(until);
        let grace = gate.grace(Some(channel));
        // The client does not learn of it if a backend renews the subscription.
        let is_renewed = gate.renewing_backend(Some(channel)).is_some();
        Ok(ActiveSubscription {
            subscription: Subscription {
                ends_with_gap: self.ends_with_gap,
                is_of_server: false,
                terms: Terms {
                    expiry: end_of(now(), ttl, grace),
                    token,
                    info: self.info,
                    renewals: Renewals::default(),
                }
                .boxed(),
            },
            subscribed: Subscribed {
                ttl: ttl.filter(|_| !is_renewed),
                position: subscribed.position,
                is_recoverable: self.is_recoverable,
                is_positioned: self.is_positioned,
                data: self.claims.and_then(|claims| claims.data),
                recovery: self.was_recovering.then_some(Recovery {
                    is_recovered: subscribed.is_recovered,
                    publications: subscribed.publications,
                }),
                with_deltas: self.with_deltas,
                channel_id: context.number(channel, self.with_channel_id),
            },
        })
    }
}

impl From<SubscribeError> for Refusal {
    fn from(error: SubscribeError) -> Self {
        Self::Error(match error {
            SubscribeError::Broker(error) => of_broker(error),
            SubscribeError::Hub(HubError::AlreadySubscribed) => ClientError::ALREADY_SUBSCRIBED,
            SubscribeError::Hub(error) => {
                ClientError::LIMIT_EXCEEDED.with_message(format!("limit exceeded: {error}"))
            }
            _ => ClientError::INTERNAL,
        })
    }
}

/// Converts the error of a publication to what a client may know.
fn of_publication(error: PublishError) -> ClientError {
    match error {
        PublishError::Broker(error) => of_broker(error),
        PublishError::Kafka(error @ ProduceError::TooLarge { .. }) => {
            ClientError::LIMIT_EXCEEDED.with_message(format!("limit exceeded: {error}"))
        }
        PublishError::Kafka(error) => {
            tracing::debug!(%error, "publication of a client was not stored");
            ClientError::INTERNAL.with_message("publication was not stored, try again later".into())
        }
    }
}

/// Converts a broker error to what a client may know: which side caused it, and whether to retry.
fn of_broker(error: BrokerError) -> ClientError {
    match error {
        BrokerError::NoHistory => ClientError::NOT_AVAILABLE,
        BrokerError::Overloaded => ClientError::INTERNAL.with_message(error.to_string()),
        BrokerError::PresenceTooLarge { .. } => {
            ClientError::LIMIT_EXCEEDED.with_message(error.to_string())
        }
        BrokerError::PayloadTooLarge { .. } => {
            ClientError::LIMIT_EXCEEDED.with_message(format!("limit exceeded: {error}"))
        }
        error => {
            tracing::debug!(%error, "broker refused or failed a client request");
            ClientError::INTERNAL
        }
    }
}
