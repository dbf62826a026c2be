//! Sessions in the form in which one process hands them to another.

use std::{
    fmt,
    marker::PhantomData,
    ptr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{
    ChannelName, ClientId, ClientInfo, Conflate, JsonPointer, SlowPolicy, SubscriptionOptions,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{SeqAccess, Visitor},
};

use super::{
    Context, FixedSession, Identity, Member, Session, Settings, Stage, Subscription, Terms,
    deadlines::{PortableDeadlines, is_default},
    fixed::Particulars,
    identity::Credentials,
    pusher::PusherState,
    renewals::Renewals,
    scope,
    socketio::{PortableRecovery, SocketIoState},
    tags,
};
use crate::{
    auth::TokenId,
    backend::PortableHeaders,
    node::{ClientRecord, Delivery, Recovery, StartPosition, Subscribe, SubscribeError, Trail},
    protocol::{
        self,
        command::{PhoenixRef, TagsFilter},
        dialect::Commands,
        phoenix,
    },
};

/// A session of a client.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct PortableSession {
    /// `None` until the client has sent its connect command.
    #[serde(default, skip_serializing_if = "is_default")]
    identity: Option<PortableIdentity>,
    /// Information about the tokens in the URL of a client that sends no commands.
    #[serde(default, skip_serializing_if = "is_default")]
    tokens: Vec<TokenId>,
    /// The headers that are forwarded to backends.
    #[serde(default, skip_serializing_if = "is_default")]
    headers: PortableHeaders,
    deadlines: PortableDeadlines,
    /// The namespaces of a Socket.IO client; `None` for clients of other protocols.
    #[serde(default, skip_serializing_if = "is_default")]
    namespaces: Option<Vec<String>>,
    /// What lets a Socket.IO client return if it loses its connection.
    #[serde(default, skip_serializing_if = "is_default")]
    recovery: Option<PortableRecovery>,
    #[serde(default, deserialize_with = "few", skip_serializing_if = "is_default")]
    subscriptions: Vec<PortableSubscription>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
struct PortableIdentity {
    user: String,
    #[serde(default, skip_serializing_if = "is_default")]
    info: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    token: Option<TokenId>,
    /// What only servers know about the client.
    #[serde(default, skip_serializing_if = "is_default")]
    meta: Option<String>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
struct PortableSubscription {
    channel: String,
    #[serde(default, skip_serializing_if = "is_default")]
    expires_in: Option<Duration>,
    #[serde(default, skip_serializing_if = "is_default")]
    ends_with_gap: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    is_of_server: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    token: Option<TokenId>,
    #[serde(default, skip_serializing_if = "is_default")]
    info: Option<String>,
    /// The reference of the join of a Phoenix client.
    #[serde(default, skip_serializing_if = "is_default")]
    join_ref: Option<PhoenixRef>,
    delivery: PortableDelivery,
}

/// How publications are delivered to a subscriber. A process that does not know a field cannot
/// continue the session, because the client would not understand what it gets.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct PortableDelivery {
    #[serde(default, skip_serializing_if = "is_default")]
    filter: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    tags: Option<TagsFilter>,
    #[serde(default, skip_serializing_if = "is_default")]
    scope: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    batch_interval: Duration,
    batch_bytes_max: usize,
    #[serde(default, skip_serializing_if = "is_default")]
    conflate: Option<PortableConflate>,
    slow: PortableSlowPolicy,
    #[serde(default, skip_serializing_if = "is_default")]
    is_positioned: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    is_sequenced: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    with_deltas: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    with_channel_id: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    with_positions: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    presence: Option<ClientRecord>,
    #[serde(default, skip_serializing_if = "is_default")]
    is_announced: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    follows: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PortableConflate {
    Latest,
    LatestPerKey(String),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum PortableSlowPolicy {
    Conflate,
    Disconnect,
    DropOldest,
}

/// The reason why a session cannot be continued.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RestoreError {
    /// The session has a subscription that does not fit to this process.
    #[error("subscription to {channel:?}: {reason}")]
    Subscription { channel: String, reason: String },
    /// The node cannot serve a subscription.
    #[error(transparent)]
    Refused(#[from] SubscribeError),
    /// The session is of the other kind.
    #[error("a client that sends no commands has no identity")]
    NoIdentity,
}

impl Session {
    /// Returns whether the session waits for nothing but its client, so that it can be exported.
    pub(crate) fn is_settled(&self) -> bool {
        self.activity.is_none()
            && self.end.is_none()
            && self.name.is_none()
            && self
                .protocol_state
                .pusher()
                .is_none_or(PusherState::is_portable)
            && !matches!(self.stage, Stage::Connecting)
    }

    /// Returns what another process needs to continue the session, which must be
    /// [settled](Self::is_settled).
    pub(crate) fn export(&self, now: Instant) -> PortableSession {
        let mut session = PortableSession {
            deadlines: self.deadlines.export(now),
            headers: self
                .context
                .headers
                .as_ref()
                .map(|headers| headers.export())
                .unwrap_or_default(),
            namespaces: self
                .protocol_state
                .socketio()
                .map(|socketio| socketio.namespaces().to_vec()),
            recovery: self.export_recovery(),
            ..PortableSession::default()
        };
        if let Stage::Connected { identity, member } = &self.stage {
            session.identity = Some(PortableIdentity::of(identity));
            let phoenix = self.protocol_state.phoenix();
            let subscriptions = self.subscriptions.iter();
            let subscriptions = subscriptions.filter_map(|(channel, subscription)| {
                let delivery = self.context.gate.worker.delivery(member.id(), channel)?;
                Some(PortableSubscription {
                    channel: channel.as_str().to_owned(),
                    expires_in: subscription.expiry().map(|at| left(now, at)),
                    ends_with_gap: subscription.ends_with_gap,
                    is_of_server: subscription.is_of_server,
                    token: subscription.token().cloned(),
                    info: subscription.info().map(|info| text(info)),
                    join_ref: phoenix
                        .and_then(|phoenix| phoenix.join_ref(channel))
                        .cloned(),
                    delivery: PortableDelivery::of(&delivery),
                })
            });
            session.subscriptions = subscriptions.collect();
        }
        session
    }

    /// Continues a session of another process.
    ///
    /// # Errors
    /// This process cannot serve it.
    pub(crate) async fn restore(
        context: Context,
        commands: &'static Commands,
        now: Instant,
        portable: PortableSession,
    ) -> Result<Self, RestoreError> {
        let account = &context.gate.worker.accounts().messages;
        let headers = portable.headers.restore(account).map(Arc::new);
        let context = Context { headers, ..context };
        let mut session = Self::new(context, commands, None, now, 1.0);
        session.deadlines.restore(now, portable.deadlines);
        if let Some(namespaces) = portable.namespaces {
            let recovery = portable.recovery;
            let state = SocketIoState::restored(&mut session.context, namespaces, recovery);
            session.protocol_state = state.into();
        }
        let Some(identity) = portable.identity else {
            return Ok(session);
        };
        let identity = Arc::new(identity.restore(&session.context.connection.who));
        let member = session.context.rejoin();
        for known in portable.subscriptions {
            let channel = session.context.restore(member.id(), &known).await?;
            let terms = Terms {
                expiry: known.expires_in.and_then(|left| now.checked_add(left)),
                token: known.token,
                info: known.info.map(Bytes::from),
                renewals: Renewals::default(),
            };
            let subscription = Subscription {
                ends_with_gap: known.ends_with_gap,
                is_of_server: known.is_of_server,
                terms: terms.boxed(),
            };
            if ptr::eq(session.context.gate.dialect, &phoenix::CHANNELS) {
                let account = &session.context.gate.worker.accounts().subscriptions;
                let state = session.protocol_state.begin_phoenix(account);
                state.join(channel.clone(), known.join_ref);
            }
            session.subscriptions.insert(channel, subscription);
        }
        session.stage = Stage::Connected { identity, member };
        session.continue_recovery();
        Ok(session)
    }
}

impl FixedSession {
    /// Returns what another process needs to continue the session.
    pub(crate) fn export(&self, now: Instant) -> PortableSession {
        let (worker, id) = (&self.gate.worker, self.member.id());
        let channels = worker.channels_of(id);
        let subscriptions = channels.iter().filter_map(|channel| {
            let delivery = worker.delivery(id, channel)?;
            Some(PortableSubscription {
                channel: channel.as_str().to_owned(),
                expires_in: None,
                ends_with_gap: false,
                is_of_server: false,
                token: None,
                info: None,
                join_ref: None,
                delivery: PortableDelivery::of(&delivery),
            })
        });
        let mut session = PortableSession {
            identity: Some(PortableIdentity {
                user: self.connection.user().to_owned(),
                ..PortableIdentity::default()
            }),
            subscriptions: subscriptions.collect(),
            ..PortableSession::default()
        };
        if let Some(particulars) = &self.particulars {
            let left = |at: Option<Instant>| at.map(|at| left(now, at));
            session.tokens.clone_from(&particulars.tokens);
            session.deadlines.expiry = left(particulars.expiry);
            session.deadlines.subscription_expiry = left(particulars.subscription_expiry);
        }
        session
    }

    /// Continues a session of another process.
    ///
    /// # Errors
    /// This process cannot serve it.
    pub(crate) async fn restore(
        context: Context,
        now: Instant,
        portable: PortableSession,
    ) -> Result<Self, RestoreError> {
        if portable.identity.is_none() {
            return Err(RestoreError::NoIdentity);
        }
        context.outlet.hold();
        let member = context.rejoin();
        for known in portable.subscriptions {
            context.restore(member.id(), &known).await?;
        }
        let at = |left: Option<Duration>| left.and_then(|left| now.checked_add(left));
        let deadlines = portable.deadlines;
        let particulars = Particulars {
            tokens: portable.tokens,
            expiry: at(deadlines.expiry),
            subscription_expiry: at(deadlines.subscription_expiry),
            unrecovered: Vec::new(),
        };
        Ok(Self {
            gate: context.gate,
            connection: context.connection,
            member,
            particulars: particulars.boxed(),
        })
    }
}

impl Context {
    /// Registers a client of another process with the worker.
    fn rejoin(&self) -> Member {
        let worker = &self.gate.worker;
        let id = worker.connect(self.connection.clone(), self.outlet.clone());
        worker.continue_telling(id);
        Member::new(worker.clone(), id)
    }

    /// Continues a subscription of another process. Returns its channel.
    async fn restore(
        &self,
        client: ClientId,
        known: &PortableSubscription,
    ) -> Result<ChannelName, RestoreError> {
        let settings = self.gate.shared.settings_full();
        let subscribe = self.subscribe_again(&settings, known);
        let subscribe = subscribe.map_err(|reason| RestoreError::Subscription {
            channel: known.channel.clone(),
            reason,
        })?;
        let channel = subscribe.channel.clone();
        self.gate.worker.restore(client, subscribe).await?;
        Ok(channel)
    }

    /// Returns how to serve a subscription of another process, with the current options of its
    /// channel where the subscriber has not chosen others.
    fn subscribe_again(
        &self,
        settings: &Settings,
        known: &PortableSubscription,
    ) -> Result<Subscribe, String> {
        let channel = ChannelName::new(&known.channel).map_err(|error| error.to_string())?;
        let options = settings.channel(&channel);
        let delivery = &known.delivery;
        Ok(Subscribe {
            stream: options.stream(),
            ring: options.ring(),
            options: self.options_of(settings, delivery)?,
            from: StartPosition::Live,
            recovery: Recovery::Stream {
                publications_max: 0,
            },
            presence: delivery.presence.clone().map(|info| Arc::new(info.into())),
            is_announced: delivery.is_announced,
            follows: delivery.follows,
            trail: Trail::default(),
            channel,
        })
    }

    fn options_of(
        &self,
        settings: &Settings,
        delivery: &PortableDelivery,
    ) -> Result<SubscriptionOptions, String> {
        let node = self.gate.worker.node();
        let of_name = |name: &String| {
            scope::of_name(node, name).ok_or_else(|| format!("unknown scope {name:?}"))
        };
        let filter = tags::of_parts(
            &settings.filters,
            delivery.filter.as_deref(),
            delivery.tags.as_ref(),
        );
        Ok(SubscriptionOptions {
            scope: delivery.scope.as_ref().map(of_name).transpose()?,
            filter: filter.map_err(|error| error.to_string())?,
            batch_interval: delivery.batch_interval,
            batch_bytes_max: delivery.batch_bytes_max,
            conflate: delivery.conflate.as_ref().map(restored).transpose()?,
            slow: delivery.slow.into(),
            positioned: delivery.is_positioned,
            is_sequenced: delivery.is_sequenced,
            with_deltas: delivery.with_deltas,
            with_channel_id: delivery.with_channel_id,
            with_positions: delivery.with_positions,
            ..SubscriptionOptions::new(protocol::encoding_id(self.gate.dialect))
        })
    }
}

impl PortableIdentity {
    fn of(identity: &Identity) -> Self {
        Self {
            user: identity.user().to_owned(),
            info: identity.who.connection.as_deref().map(text),
            token: identity.token().cloned(),
            meta: identity.meta().map(|meta| text(meta)),
        }
    }

    fn restore(self, known: &Arc<ClientInfo>) -> Identity {
        let info = self.info.map(|text| text.into_bytes().into());
        let who = match info {
            None if *known.user == self.user => known.clone(),
            connection => Arc::new(ClientInfo {
                user: self.user.into(),
                client: known.client.clone(),
                connection,
                channel: None,
            }),
        };
        let meta = self.meta.map(Bytes::from);
        let credentials = self.token.map(|token| {
            Box::new(Credentials {
                ttl: None,
                token,
                meta,
            })
        });
        Identity { who, credentials }
    }
}

impl PortableDelivery {
    fn of(delivery: &Delivery) -> Self {
        let options = &delivery.options;
        let filter = options.filter.as_deref();
        let (filter, tags) = filter.map_or((None, None), tags::parts);
        Self {
            filter,
            tags,
            scope: options.scope.as_ref().map(|scope| scope.name().to_owned()),
            batch_interval: options.batch_interval,
            batch_bytes_max: options.batch_bytes_max,
            conflate: options.conflate.as_ref().map(|conflate| match conflate {
                Conflate::Latest => PortableConflate::Latest,
                Conflate::LatestPerKey(key) => PortableConflate::LatestPerKey(key.to_string()),
            }),
            slow: options.slow.into(),
            is_positioned: options.positioned,
            is_sequenced: options.is_sequenced,
            with_deltas: options.with_deltas,
            with_channel_id: options.with_channel_id,
            with_positions: options.with_positions,
            presence: delivery.presence.as_deref().map(ClientRecord::from),
            is_announced: delivery.is_announced,
            follows: delivery.follows,
        }
    }
}

impl From<SlowPolicy> for PortableSlowPolicy {
    fn from(policy: SlowPolicy) -> Self {
        match policy {
            SlowPolicy::Conflate => Self::Conflate,
            SlowPolicy::Disconnect => Self::Disconnect,
            SlowPolicy::DropOldest => Self::DropOldest,
        }
    }
}

impl From<PortableSlowPolicy> for SlowPolicy {
    fn from(policy: PortableSlowPolicy) -> Self {
        match policy {
            PortableSlowPolicy::Conflate => Self::Conflate,
            PortableSlowPolicy::Disconnect => Self::Disconnect,
            PortableSlowPolicy::DropOldest => Self::DropOldest,
        }
    }
}

fn restored(conflate: &PortableConflate) -> Result<Conflate, String> {
    Ok(match conflate {
        PortableConflate::Latest => Conflate::Latest,
        PortableConflate::LatestPerKey(key) => {
            Conflate::LatestPerKey(JsonPointer::new(key).map_err(|error| error.to_string())?)
        }
    })
}

/// Reads a list that mostly has one element, without room for more.
fn few<'de, D: Deserializer<'de>, T: Deserialize<'de>>(list: D) -> Result<Vec<T>, D::Error> {
    struct Few<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Few<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = list.next_element()? {
                if all.len() == all.capacity() {
                    all.reserve_exact(all.len().max(1));
                }
                all.push(one);
            }
            Ok(all)
        }
    }

    list.deserialize_seq(Few(PhantomData))
}

fn left(now: Instant, at: Instant) -> Duration {
    at.saturating_duration_since(now)
}

/// Returns JSON from a token as text.
fn text(json: &[u8]) -> String {
    String::from_utf8_lossy(json).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{PortableDelivery, PortableSlowPolicy};

    #[test]
    fn a_delivery_that_is_not_known_here_is_refused() {
        let mut delivery = json!({"batch_bytes_max": 1, "slow": "disconnect", "with_deltas": true});
        let known: PortableDelivery = serde_json::from_value(delivery.clone()).unwrap();
        assert_eq!(known.slow, PortableSlowPolicy::Disconnect);
        assert!(known.with_deltas);
        delivery["of_the_future"] = json!(true);
        assert!(serde_json::from_value::<PortableDelivery>(delivery).is_err());
    }
}
