//! Handles each command.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_broker::Publish;
use linerate_hub::{ChannelName, ClientId};

use super::{
    Authenticated, Completion, Context, Identity, Pending, Refusal, Session, Stage, Subscription,
    VERSION, Work,
    deadlines::until,
    identity::end_of,
    work::{ActiveSubscription, ConnectedClient},
};
use crate::{
    auth::{ConnectionClaims, SubscriptionClaims},
    config::ChannelOptions,
    protocol::{
        codes::{ClientError, Disconnect},
        command::{Command, Connect, History, Request, Subscribe},
        reply::{Answer, Connected, Push, Refreshed, ServerMessage},
    },
};

/// The result of starting a command: an immediate answer, or an operation that produces it.
enum Step {
    Answer(Answer),
    /// There is nothing to answer.
    Done,
    Wait(Work),
}

/// A connected client, with its session's context.
struct Present {
    context: Context,
    identity: Arc<Identity>,
    id: ClientId,
}

fn wait(work: impl Future<Output = Completion> + Send + 'static) -> Result<Step, Refusal> {
    Ok(Step::Wait(Box::pin(work)))
}

impl Session {
    /// Starts a command whose turn has come. Returns the operation that produces its answer, if
    /// any, and the channel if the command is a subscription.
    pub(super) fn begin(&mut self, command: Command) -> (Option<ChannelName>, Option<Work>) {
        let Command { id, request } = command;
        let channel = self.asked_channel(&request);
        let step = match (&self.stage, request) {
            (Stage::Fresh, Request::Connect(connect)) => self.begin_connect(connect),
            (Stage::Fresh, Request::SocketIo(request)) => {
                begun(self.begin_first_socketio(*request))
            }
            // A client connects only once, and connecting must be its first command.
            (Stage::Connected { .. }, Request::Connect(_)) | (Stage::Fresh, _) => {
                Err(Refusal::Disconnect(Disconnect::BAD_REQUEST))
            }
            (Stage::Connecting, _) => Err(Refusal::Disconnect(Disconnect::SERVER_ERROR)),
            (Stage::Connected { identity, member }, request) => {
                let present = Present {
                    context: self.context.clone(),
                    identity: identity.clone(),
                    id: member.id(),
                };
                self.begin_connected(present, request)
            }
        };
        match step {
            Ok(Step::Wait(work)) => return (channel, Some(work)),
            // Queue the error so that it follows the answers to earlier commands.
            Err(Refusal::Error(error)) if self.activity.pending().next().is_some() => {
                let refused = std::future::ready(Completion::Answered(Err(error.into())));
                return (None, Some(Box::pin(refused)));
            }
            Ok(Step::Answer(answer)) => self.reply(id, Ok(answer)),
            Ok(Step::Done) => {}
            Err(refusal) => self.refuse(id, refusal),
        }
        (None, None)
    }

    fn asked_channel(&self, request: &Request) -> Option<ChannelName> {
        let channel = request.subscribed_channel()?;
        let settings = self.context.gate.shared.settings();
        settings.channel_name(channel).ok()
    }

    /// Completes a command or subscription with the result of its operation.
    pub(super) fn finish(&mut self, now: Instant, pending: Pending, completion: Completion) {
        if let Pending::Command(asked, _) = pending {
            self.count(now, asked);
        }
        let answer = match completion {
            Completion::Answered(result) => result,
            Completion::Connected(result) => self.connected(now, result).map(Answer::Connect),
            Completion::Phoenix(completion) => return self.finish_phoenix(now, completion),
            Completion::Pusher(completion) => return self.finish_pusher(completion),
            Completion::Refreshed(result) => {
                result.and_then(|claims| self.refreshed(now, &claims).map_err(Refusal::Disconnect))
            }
            Completion::Renewed(channel, result) => {
                return self.renewed(now, channel.as_ref(), result);
            }
            Completion::Sent(result) => return self.sent(result),
            Completion::SocketIo(completion) => return self.finish_socketio(now, completion),
            Completion::SubRefreshed(channel, result) => {
                result.map(|claims| self.sub_refreshed(now, &channel, &claims))
            }
            Completion::Subscribed(channel, result) => {
                let is_of_server = matches!(pending, Pending::Push(_));
                let standing = result.and_then(|one| {
                    let reply_bytes_max = self.context.reply_bytes_max();
                    one.finish(&self.context, &channel, reply_bytes_max)
                });
                let subscribed =
                    standing.map(|standing| self.subscribed(&channel, standing, is_of_server));
                if is_of_server {
                    self.end_entering(&channel);
                    self.note_joined(&channel);
                }
                if let (Pending::Push(_), Ok(subscribed)) = (&pending, &subscribed) {
                    self.activity.say(ServerMessage::Push(Push::Subscribe {
                        channel,
                        subscribed: subscribed.clone(),
                    }));
                }
                subscribed.map(Answer::Subscribe)
            }
        };
        match (pending, answer) {
            (Pending::Command(asked, _), Ok(answer)) => self.reply(asked.id, Ok(answer)),
            (Pending::Command(asked, _), Err(refusal)) => self.refuse(asked.id, refusal),
            (Pending::Push(_), Err(refusal)) => {
                tracing::debug!(?refusal, "client could not be subscribed");
            }
            (Pending::Push(_), Ok(_)) | (Pending::Renewal, _) => {}
        }
    }

    /// Refuses a command that exceeds the rate limit.
    pub(super) fn refuse_excess(&mut self, command: &Command) {
        match &command.request {
            Request::Phoenix(request) => self.refuse_excess_phoenix(request),
            Request::Pusher(request) => self.refuse_excess_pusher(request),
            Request::SocketIo(request) => self.refuse_excess_socketio(request),
            _ if command.id > 0 => self.reply(command.id, Err(ClientError::TOO_MANY_REQUESTS)),
            _ => {}
        }
    }

    fn refuse(&mut self, id: u32, refusal: Refusal) {
        match refusal {
            Refusal::Disconnect(disconnect) => self.end(disconnect),
            Refusal::Error(error) => self.reply(id, Err(error)),
        }
    }

    fn begin_connect(&mut self, connect: Connect) -> Result<Step, Refusal> {
        self.stage = Stage::Connecting;
        if !connect.name.is_empty() {
            let connection = Arc::make_mut(&mut self.context.connection);
            connection.agent = self.context.gate.worker.agent(&agent(&connect));
        }
        let context = self.context.clone();
        wait(async move { Completion::Connected(context.connect(connect).await) })
    }

    /// Starts to connect a client that has been authenticated. Its request is its only attempt, so
    /// that the connection ends if it fails.
    pub(super) fn begin_authenticated(&mut self, client: Authenticated) -> Work {
        self.stage = Stage::Connecting;
        let context = self.context.clone();
        Box::pin(async move {
            let connected = context.connect_as(client).await;
            Completion::Connected(connected.map_err(|refusal| match refusal {
                Refusal::Error(error) if error.is_temporary => {
                    Refusal::Disconnect(Disconnect::SERVER_ERROR)
                }
                Refusal::Error(error) => {
                    let reason = error.message.into_owned();
                    Refusal::Disconnect(Disconnect::INVALID_TOKEN.with_reason(reason))
                }
                refusal => refusal,
            }))
        })
    }

    fn begin_connected(&mut self, present: Present, request: Request) -> Result<Step, Refusal> {
        let Present {
            context,
            identity,
            id,
        } = present;
        match request {
            Request::History(wanted) => self.begin_history(context, wanted),
            Request::Phoenix(request) => {
                begun(self.begin_phoenix(context, (identity, id), *request))
            }
            Request::Ping => Ok(Step::Answer(Answer::Ping)),
            Request::Presence { channel } => {
                let channel = self.check_presence(&channel)?;
                wait(async move { Completion::Answered(context.presence(channel).await) })
            }
            Request::PresenceStats { channel } => {
                let channel = self.check_presence(&channel)?;
                wait(async move { Completion::Answered(context.presence_stats(channel).await) })
            }
            Request::Publish { channel, data } => {
                let tags = Vec::new();
                let publishing = self.publishing(context, identity, &channel, (data, tags))?;
                wait(async move { Completion::Answered(publishing.await) })
            }
            Request::Pusher(request) => begun(self.begin_pusher(context, (identity, id), *request)),
            Request::Refresh { token } => wait(async move {
                let claims = context.gate.authenticate(&token).await;
                Completion::Refreshed(match claims {
                    Ok(Some(claims)) if claims.user == identity.user() => Ok(claims),
                    Ok(_) => Err(Refusal::Disconnect(Disconnect::INVALID_TOKEN)),
                    Err(refusal) => Err(refusal),
                })
            }),
            Request::SubRefresh { channel, token } => {
                let channel = self.subscribed_channel(&channel)?;
                wait(async move {
                    let claims = context
                        .gate
                        .judge_subscription(&identity, &channel, &token)
                        .await;
                    Completion::SubRefreshed(channel, claims)
                })
            }
            Request::Subscribe(wanted) => {
                let channel = self.check_subscribe(&wanted)?;
                wait(async move {
                    let candidate = context.prepare_asked(identity, id, channel.clone(), wanted);
                    Completion::Subscribed(channel, candidate.await)
                })
            }
            Request::Unsubscribe { channel } => {
                let channel = context.gate.shared.settings().channel_name(&channel)?;
                self.leave(&channel);
                Ok(Step::Answer(Answer::Unsubscribe))
            }
            Request::Rpc { method, data } => begin_rpc(context, identity, method, data),
            Request::Send { data } => begin_send(context, identity, data),
            Request::SocketIo(request) => begun(self.begin_socketio(context, identity, *request)),
            Request::Unknown => Err(Refusal::Error(ClientError::METHOD_NOT_FOUND)),
            // Pongs never get here: `take` handles them on arrival.
            Request::Connect(_) | Request::Pong => {
                Err(Refusal::Disconnect(Disconnect::BAD_REQUEST))
            }
        }
    }

    fn check_subscribe(&self, wanted: &Subscribe) -> Result<ChannelName, ClientError> {
        let settings = self.context.gate.shared.settings();
        let channel = settings.channel_name(&wanted.channel)?;
        self.check_room_for(&channel)?;
        Ok(channel)
    }

    /// Checks that the client is not subscribed to a channel, and may be to one more.
    pub(super) fn check_room_for(&self, channel: &ChannelName) -> Result<(), ClientError> {
        if self.has(channel) {
            return Err(ClientError::ALREADY_SUBSCRIBED);
        }
        let settings = self.context.gate.shared.settings();
        let channels_max = settings.config.client.channels_max;
        if self.channels() >= channels_max {
            let message = format!("limit exceeded: at most {channels_max} channels");
            return Err(ClientError::LIMIT_EXCEEDED.with_message(message));
        }
        Ok(())
    }

    /// Checks that the client may publish, and returns the operation that does it.
    pub(super) fn publishing(
        &self,
        context: Context,
        identity: Arc<Identity>,
        channel: &str,
        (payload, tags): (Bytes, Vec<(String, String)>),
    ) -> Result<impl Future<Output = Result<Answer, Refusal>> + Send + use<>, Refusal> {
        let settings = context.gate.shared.settings_full();
        let channel = settings.channel_name(channel)?;
        let options = settings.channel(&channel);
        let backend = settings.backends.find(&options.publish_backend);
        let is_open = options.allow_publish && options.is_open_to(identity.is_anonymous());
        if backend.is_none() && !is_open {
            return Err(Refusal::Error(ClientError::PERMISSION_DENIED));
        }
        if context.gate.worker.node().broker.is_pattern(&channel) {
            let message = "bad request: cannot publish to a pattern";
            return Err(ClientError::BAD_REQUEST.with_message(message.into()).into());
        }
        let known = self.subscriptions.get(&channel);
        let info = identity.to_info(known.and_then(|known| known.info().cloned()));
        let publish = Publish {
            payload,
            info: Some(Arc::unwrap_or_clone(info)),
            tags,
            idempotency_key: None,
            options: options.stream(),
        };
        let asking = backend.map(|backend| (backend, identity));
        Ok(context.publish(channel, publish, asking))
    }

    /// Handles that a message was passed on, or was not; the client does not expect an answer.
    fn sent(&mut self, result: Result<(), Refusal>) {
        match result {
            Ok(()) => {}
            Err(Refusal::Disconnect(disconnect)) => self.end(disconnect),
            Err(Refusal::Error(error)) => {
                tracing::debug!(%error, "message of a client was not passed on");
            }
        }
    }

    fn begin_history(&self, context: Context, wanted: History) -> Result<Step, Refusal> {
        let has_history = |options: &ChannelOptions| options.history_size > 0;
        let may = |options: &ChannelOptions| options.allow_history;
        let channel = self.check_feature(&wanted.channel, has_history, may)?;
        wait(async move { Completion::Answered(context.history(channel, wanted).await) })
    }

    fn check_presence(&self, channel: &str) -> Result<ChannelName, ClientError> {
        self.check_feature(
            channel,
            |options| options.presence,
            |options| options.allow_presence,
        )
    }

    /// Checks that the client is subscribed to a channel, that the channel has a feature, and that
    /// clients may use it.
    fn check_feature(
        &self,
        channel: &str,
        has: impl Fn(&ChannelOptions) -> bool,
        may: impl Fn(&ChannelOptions) -> bool,
    ) -> Result<ChannelName, ClientError> {
        let channel = self.subscribed_channel(channel)?;
        let settings = self.context.gate.shared.settings();
        let options = settings.channel(&channel);
        if !has(options) {
            return Err(ClientError::NOT_AVAILABLE);
        }
        match may(options) {
            true => Ok(channel),
            false => Err(ClientError::PERMISSION_DENIED),
        }
    }

    /// Checks that the client is subscribed to a channel.
    fn subscribed_channel(&self, channel: &str) -> Result<ChannelName, ClientError> {
        let channel = self.context.gate.shared.settings().channel_name(channel)?;
        match self.subscriptions.contains_key(&channel) {
            true => Ok(channel),
            false => Err(ClientError::PERMISSION_DENIED),
        }
    }

    pub(super) fn connected(
        &mut self,
        now: Instant,
        result: Result<ConnectedClient, Refusal>,
    ) -> Result<Connected, Refusal> {
        self.stage = Stage::Fresh;
        let settings = self.context.gate.shared.settings_full();
        let options = &settings.config.client;
        // If the client was refused, it has as much time again for another command.
        self.deadlines.expect_connect(now + options.connect_timeout);
        let ConnectedClient {
            connection,
            identity,
            member,
            standings,
            data,
        } = result?;
        let dialect = self.context.connection.dialect;
        self.context.connection = connection;
        let is_renewed = self.context.gate.renewing_backend(None).is_some();
        let mut connected = Connected {
            client: identity.who.client.to_string(),
            version: VERSION.into(),
            // The client does not learn of it if a backend renews the connection.
            ttl: identity.ttl().filter(|_| !is_renewed),
            data,
            ping_interval: Some(options.ping_interval),
            wants_pong: true,
            session: self
                .name
                .as_ref()
                .map_or_else(String::new, ToString::to_string),
            node: self.context.gate.worker.node().status.id().into(),
            ..Connected::default()
        };
        self.deadlines.connected(now, self.ping_part);
        self.set_expiry(now, identity.ttl());
        self.stage = Stage::Connected { identity, member };
        if self.context.connection.dialect != dialect {
            // The transport has changed while the client was being connected.
            self.set_transport(dialect);
        }
        for (channel, standing) in standings {
            let subscribed = self.subscribed(&channel, standing, true);
            connected.subscriptions.push((channel, subscribed));
        }
        Ok(connected)
    }

    pub(super) fn subscribed(
        &mut self,
        channel: &ChannelName,
        standing: ActiveSubscription,
        is_of_server: bool,
    ) -> crate::protocol::reply::Subscribed {
        let ActiveSubscription {
            subscription,
            subscribed,
        } = standing;
        let subscription = Subscription {
            is_of_server,
            ..subscription
        };
        let name = self.context.gate.worker.shared_name(channel);
        self.subscriptions.insert(name, subscription);
        subscribed
    }

    fn refreshed(&mut self, now: Instant, claims: &ConnectionClaims) -> Result<Answer, Disconnect> {
        let Stage::Connected { identity, .. } = &mut self.stage else {
            return Err(Disconnect::BAD_REQUEST);
        };
        let credentials = &mut Arc::make_mut(identity).credentials;
        credentials.get_or_insert_default().token = claims.token.clone();
        let client = identity.who.client.to_string();
        let ttl = claims.expires_at.map(until);
        self.set_expiry(now, ttl);
        Ok(Answer::Refresh(Refreshed {
            client,
            version: VERSION.into(),
            ttl,
        }))
    }

    fn sub_refreshed(
        &mut self,
        now: Instant,
        channel: &ChannelName,
        claims: &SubscriptionClaims,
    ) -> Answer {
        let grace = self.context.gate.grace(Some(channel));
        let ttl = claims.expires_at.map(until);
        if let Some(subscription) = self.subscriptions.get_mut(channel) {
            let terms = subscription.terms.get_or_insert_default();
            terms.expiry = end_of(now, ttl, grace);
            terms.token.clone_from(&claims.token);
        }
        Answer::SubRefresh { ttl }
    }
}

/// Converts what a request of a particular protocol has begun, whose answers are its own messages.
fn begun(work: Result<Option<Work>, Refusal>) -> Result<Step, Refusal> {
    Ok(work?.map_or(Step::Done, Step::Wait))
}

fn begin_rpc(
    context: Context,
    identity: Arc<Identity>,
    method: String,
    data: Bytes,
) -> Result<Step, Refusal> {
    let settings = context.gate.shared.settings_full();
    let options = settings.namespaces.options_of_method(&method);
    match settings.backends.find(&options.rpc_backend) {
        Some(backend) => wait(async move {
            Completion::Answered(context.rpc(backend, identity, (method, data)).await)
        }),
        None => Err(Refusal::Error(ClientError::METHOD_NOT_FOUND)),
    }
}

fn begin_send(context: Context, identity: Arc<Identity>, data: Bytes) -> Result<Step, Refusal> {
    let settings = context.gate.shared.settings_full();
    match settings.backends.find(&settings.config.client.send_backend) {
        Some(backend) => {
            wait(async move { Completion::Sent(context.send(backend, identity, data).await) })
        }
        None => Err(Refusal::Disconnect(Disconnect::NOT_AVAILABLE)),
    }
}

/// Returns the client's own name and version, truncated to 64 bytes.
fn agent(connect: &Connect) -> String {
    let mut agent = format!("{} {}", connect.name, connect.version);
    agent.truncate(agent.floor_char_boundary(64));
    agent.trim_end().to_owned()
}
