//! Sessions whose subscriptions are part of the request URL, for clients that send no commands.

use std::{sync::Arc, time::Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_hub::{ChannelName, ClientId};

use super::{
    Context, Event, Gate, Identity, Member, Refusal, Visitor, activity::SUBSCRIBES_AT_ONCE,
    deadlines::until,
};
use crate::{
    auth::{SubscriptionClaims, TokenId},
    clock::now,
    node::{Connection, Notice},
    protocol::{
        codes::{ClientError, Disconnect},
        command::{Connect, Subscribe},
        query::FixedRequest,
    },
};

/// A subscription, with the claims of its token.
type FixedSubscription = (ChannelName, Subscribe, Option<SubscriptionClaims>);

/// A request that has been authorized.
#[derive(Debug)]
pub(crate) struct AuthorizedRequest {
    identity: Identity,
    subscriptions: Vec<FixedSubscription>,
    expiry: Option<Instant>,
    subscription_expiry: Option<Instant>,
}

/// A session of a client that sends no commands.
#[derive(Debug)]
pub(crate) struct FixedSession {
    pub(super) gate: Arc<Gate>,
    /// The description of the client, which its worker shares.
    pub(super) connection: Arc<Connection>,
    pub(super) member: Member,
    /// `None` for most clients.
    pub(super) particulars: Option<Box<Particulars>>,
}

/// What few of these sessions have.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Particulars {
    /// Information about the tokens that opened the session.
    pub(super) tokens: Vec<TokenId>,
    pub(super) expiry: Option<Instant>,
    /// When the first subscription token expires. This ends the session, because the client cannot
    /// present a newer token.
    pub(super) subscription_expiry: Option<Instant>,
    /// Channels in which the client missed publications before it reconnected.
    pub(super) unrecovered: Vec<ChannelName>,
}

impl FixedRequest {
    /// Authenticates the client and checks that it may subscribe to everything that it asks for.
    ///
    /// # Errors
    /// The client is not authenticated, or a subscription is not allowed.
    pub(crate) async fn grant(
        mut self,
        visitor: Visitor<'_>,
    ) -> Result<AuthorizedRequest, Refusal> {
        let gate = visitor.gate;
        let connect = Connect {
            token: std::mem::take(&mut self.token),
            ..Connect::default()
        };
        let admitted = visitor.authenticate(&connect).await?;
        let claims = admitted.map(|admitted| admitted.claims);
        let identity = Identity::new(&visitor.connection.who, claims.as_ref());
        let mut named = self.judge_channel_tokens(gate, &identity).await?;
        if let Some(claims) = claims {
            named.extend(claims.subscriptions);
        }
        if self.subscriptions.is_empty() {
            let subscribe = |(channel, _): &(ChannelName, SubscriptionClaims)| Subscribe {
                channel: channel.as_str().into(),
                ..Subscribe::default()
            };
            self.subscriptions = named.iter().map(subscribe).collect();
        }
        self.ask_backends(visitor, &identity, &mut named).await?;
        let subscriptions = self.check(gate, &identity, named)?;
        // Clients cannot present a newer token here, so there is no grace period.
        let now = now();
        let claims = subscriptions
            .iter()
            .filter_map(|(.., claims)| claims.as_ref());
        let ends = claims.filter_map(|claims| now.checked_add(until(claims.expires_at?)));
        Ok(AuthorizedRequest {
            expiry: identity.ttl().and_then(|ttl| now.checked_add(ttl)),
            subscription_expiry: ends.min(),
            identity,
            subscriptions,
        })
    }

    /// Checks the channel tokens. If the request lists channels, each token must be for one of
    /// them.
    async fn judge_channel_tokens(
        &self,
        gate: &Gate,
        identity: &Identity,
    ) -> Result<Vec<(ChannelName, SubscriptionClaims)>, Refusal> {
        check_count(gate, self.channel_tokens.len())?;
        let mut named = Vec::new();
        for token in &self.channel_tokens {
            let (channel, claims) = gate.judge_any_subscription(identity, token).await?;
            let mut wanted = self.subscriptions.iter();
            let is_wanted = wanted.any(|one| one.channel == channel.as_str());
            if !is_wanted && !self.subscriptions.is_empty() {
                let message = "bad request: channel_token is for a channel that was not requested";
                return Err(ClientError::BAD_REQUEST.with_message(message.into()).into());
            }
            named.push((channel, claims));
        }
        Ok(named)
    }

    /// Asks the backends about the channels for which the client has no token.
    async fn ask_backends(
        &self,
        visitor: Visitor<'_>,
        identity: &Identity,
        named: &mut Vec<(ChannelName, SubscriptionClaims)>,
    ) -> Result<(), Refusal> {
        check_count(visitor.gate, self.subscriptions.len())?;
        let settings = visitor.gate.shared.settings_full();
        let mut unnamed = Vec::new();
        for wanted in &self.subscriptions {
            let channel = settings.channel_name(&wanted.channel)?;
            if !named.iter().any(|(name, _)| *name == channel) {
                unnamed.push((channel, wanted.clone()));
            }
        }
        let ask = async |(channel, wanted): (ChannelName, Subscribe)| {
            let claims = visitor.judge_subscription(identity, &channel, &wanted);
            Ok::<_, Refusal>(claims.await?.map(|claims| (channel, claims)))
        };
        let asked = stream::iter(unnamed).map(ask);
        let granted: Vec<_> = asked.buffered(SUBSCRIBES_AT_ONCE).try_collect().await?;
        named.extend(granted.into_iter().flatten());
        Ok(())
    }

    fn check(
        self,
        gate: &Gate,
        identity: &Identity,
        mut named: Vec<(ChannelName, SubscriptionClaims)>,
    ) -> Result<Vec<FixedSubscription>, ClientError> {
        let settings = gate.shared.settings_full();
        if self.subscriptions.is_empty() {
            let message = "bad request: no channel requested".to_owned();
            return Err(ClientError::BAD_REQUEST.with_message(message));
        }
        check_count(gate, self.subscriptions.len())?;
        let mut granted: Vec<FixedSubscription> = Vec::new();
        for wanted in self.subscriptions {
            let channel = settings.channel_name(&wanted.channel)?;
            if granted.iter().any(|(other, ..)| *other == channel) {
                return Err(ClientError::ALREADY_SUBSCRIBED);
            }
            let at = named.iter().position(|(name, _)| *name == channel);
            let claims = at.map(|at| named.remove(at).1);
            gate.plan(
                &settings,
                identity,
                channel.clone(),
                &wanted,
                claims.as_ref(),
            )?;
            granted.push((channel, wanted, claims));
        }
        Ok(granted)
    }
}

/// Refuses more channels than a client may have.
fn check_count(gate: &Gate, channels: usize) -> Result<(), ClientError> {
    let channels_max = gate.shared.settings().config.client.channels_max;
    if channels <= channels_max {
        return Ok(());
    }
    let message =
        format!("limit exceeded: {channels} channels; at most {channels_max} are allowed");
    Err(ClientError::LIMIT_EXCEEDED.with_message(message))
}

impl Particulars {
    /// Returns the particulars, or `None` if there are none.
    pub(super) fn boxed(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}

impl FixedSession {
    /// Subscribes the client. Data is held back until the outlet is released.
    ///
    /// # Errors
    /// The broker is unavailable or refuses, a token has been revoked, or a limit is reached.
    pub(crate) async fn start(
        mut context: Context,
        granted: AuthorizedRequest,
    ) -> Result<Self, Refusal> {
        context.outlet.hold();
        let member = context.join(&granted.identity)?;
        let claims = granted.subscriptions.iter();
        let claims = claims.filter_map(|(.., claims)| claims.as_ref()?.token.clone());
        let tokens: Vec<_> = granted
            .identity
            .token()
            .into_iter()
            .cloned()
            .chain(claims)
            .collect();
        // From here on, the worker reports revocations.
        for token in &tokens {
            context
                .gate
                .check_revoked(granted.identity.user(), Some(token))
                .map_err(Refusal::of_connection)?;
        }
        context.gate.worker.tell_connected(member.id());
        let is_after = |(channel, wanted, _): &FixedSubscription| {
            let is_after = wanted.recover.is_some();
            is_after.then(|| channel.clone())
        };
        let after: Vec<ChannelName> = granted.subscriptions.iter().filter_map(is_after).collect();
        let standings =
            context.subscribe_all(&granted.identity, member.id(), granted.subscriptions);
        let standings = standings.await?;
        let mut unrecovered = Vec::new();
        for (channel, standing) in standings {
            let recovery = standing.subscribed.recovery;
            let is_recovered = recovery.map_or(!after.contains(&channel), |one| one.is_recovered);
            if !is_recovered {
                unrecovered.push(channel);
            }
        }
        let particulars = Particulars {
            tokens,
            expiry: granted.expiry,
            subscription_expiry: granted.subscription_expiry,
            unrecovered,
        };
        Ok(Self {
            gate: context.gate,
            connection: context.connection,
            member,
            particulars: particulars.boxed(),
        })
    }

    /// Handles an event collected by the outlet. Returns the reason to end the session, if it has
    /// to end.
    pub(crate) fn handle_event(&mut self, event: Event) -> Option<Disconnect> {
        match event {
            Event::Gap(_) => None,
            Event::Notice(notice) => self.handle_notice(notice),
            Event::Slow => Some(Disconnect::SLOW),
            Event::Unencodable(channel) => {
                let reason = format!("inappropriate protocol: payload in {channel}");
                Some(Disconnect::INAPPROPRIATE_PROTOCOL.with_reason(reason))
            }
        }
    }

    /// Returns the reason to end the session if a deadline has passed.
    pub(crate) fn handle_timeout(&self, now: Instant) -> Option<Disconnect> {
        let particulars = self.particulars.as_ref()?;
        let is_over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_over(particulars.expiry) {
            return Some(Disconnect::EXPIRED);
        }
        is_over(particulars.subscription_expiry).then_some(Disconnect::SUBSCRIPTION_EXPIRED)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let particulars = self.particulars.as_ref()?;
        let both = [particulars.expiry, particulars.subscription_expiry];
        both.into_iter().flatten().min()
    }

    /// Returns the client's ID at the worker.
    pub(crate) const fn client(&self) -> ClientId {
        self.member.id()
    }

    /// Returns the description of the client.
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns what authenticates and authorizes clients of this kind.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Returns the channels in which the client missed publications before it reconnected.
    pub(crate) fn unrecovered(&self) -> &[ChannelName] {
        let particulars = self.particulars.as_deref();
        particulars.map_or(&[], |particulars| &particulars.unrecovered)
    }

    fn handle_notice(&mut self, notice: Notice) -> Option<Disconnect> {
        match notice {
            Notice::Disconnect(disconnect) => return Some(disconnect),
            Notice::Revoked => {
                let (gate, user) = (&self.gate, self.connection.user());
                let particulars = self.particulars.iter();
                let mut tokens = particulars.flat_map(|particulars| &particulars.tokens);
                if tokens.any(|token| gate.check_revoked(user, Some(token)).is_err()) {
                    return Some(Disconnect::TOKEN_REVOKED);
                }
            }
            Notice::Refresh {
                expires,
                is_expired,
            } => {
                if is_expired {
                    return Some(Disconnect::EXPIRED);
                }
                let left = expires.map(|at| at.duration_since(std::time::SystemTime::now()));
                let left = left.map(|left| left.unwrap_or_default());
                let expiry = left.and_then(|left| now().checked_add(left));
                let particulars = self.particulars.get_or_insert_default();
                particulars.expiry = expiry;
            }
            Notice::Unsubscribe { channel, .. } => {
                let (worker, id) = (&self.gate.worker, self.member.id());
                worker.unsubscribe(id, &channel);
                if worker.channels_of(id).is_empty() {
                    return Some(Disconnect::FORCE_NO_RECONNECT);
                }
            }
            // These protocols have no message for such notices.
            Notice::Join { .. }
            | Notice::Leave { .. }
            | Notice::LeaveNamespace { .. }
            | Notice::Subscribe { .. }
            | Notice::SubscriptionCount { .. } => {}
        }
        None
    }
}
