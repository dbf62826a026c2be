//! Sessions whose subscriptions stand in the address of a request, for clients that send no commands.

use std::time::Instant;

use linerate_hub::{ChannelName, ClientId};

use super::{Context, Gate, Identity, Member, Refusal};
use crate::{
    auth::{ConnectionClaims, SubscriptionClaims},
    node::Notice,
    protocol::centrifuge::{ClientError, Disconnect, command::Subscribe},
    transport::Event,
};

/// What a request asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wish {
    /// The token of the connection; empty if there is none.
    pub(crate) token: String,
    /// The channels; none stands for those that the token names.
    pub(crate) subscriptions: Vec<Subscribe>,
}

/// A subscription, and what a token says of it.
type Wanted = (ChannelName, Subscribe, Option<SubscriptionClaims>);

/// A wish that may come true.
#[derive(Debug)]
pub(crate) struct Granted {
    identity: Identity,
    subscriptions: Vec<Wanted>,
    expiry: Option<Instant>,
}

/// A session of a client that sends no commands.
#[derive(Debug)]
pub(crate) struct FixedSession {
    context: Context,
    member: Member,
    channels: Vec<ChannelName>,
    expiry: Option<Instant>,
    /// Channels in which the client has missed something before it came back.
    unrecovered: Vec<ChannelName>,
}

impl Wish {
    /// Finds out who the client is and whether it may subscribe to everything that it wants.
    ///
    /// # Errors
    /// It may not.
    pub(crate) async fn grant(mut self, gate: &Gate, client: &str) -> Result<Granted, Refusal> {
        let claims = gate.authenticate(&self.token).await?;
        let identity = Identity::new(client, claims.as_ref());
        gate.check_user(&identity)?;
        let named = claims.map_or(Vec::new(), |claims: ConnectionClaims| claims.subscriptions);
        if self.subscriptions.is_empty() {
            let subscribe = |(channel, _): &(ChannelName, SubscriptionClaims)| Subscribe {
                channel: channel.as_str().into(),
                ..Subscribe::default()
            };
            self.subscriptions = named.iter().map(subscribe).collect();
        }
        let subscriptions = self.check(gate, &identity, named)?;
        // Nobody can bring a newer token here, so that there is no grace.
        let end = identity.ttl.and_then(|ttl| Instant::now().checked_add(ttl));
        Ok(Granted {
            identity,
            subscriptions,
            expiry: end,
        })
    }

    fn check(
        self,
        gate: &Gate,
        identity: &Identity,
        mut named: Vec<(ChannelName, SubscriptionClaims)>,
    ) -> Result<Vec<Wanted>, ClientError> {
        let settings = gate.shared.settings_full();
        let channels_max = settings.config.client.channels_max;
        if self.subscriptions.is_empty() {
            let message = "bad request: no channel".to_owned();
            return Err(ClientError::BAD_REQUEST.with_message(message));
        }
        if self.subscriptions.len() > channels_max {
            let channels = self.subscriptions.len();
            let message = format!("limit exceeded: {channels} of at most {channels_max} channels");
            return Err(ClientError::LIMIT_EXCEEDED.with_message(message));
        }
        let mut granted: Vec<Wanted> = Vec::new();
        for wanted in self.subscriptions {
            let channel = settings.channel_name(&wanted.channel)?;
            if granted.iter().any(|(other, ..)| *other == channel) {
                return Err(ClientError::ALREADY_SUBSCRIBED);
            }
            let at = named.iter().position(|(name, _)| *name == channel);
            let claims = at.map(|at| named.swap_remove(at).1);
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

impl FixedSession {
    /// Subscribes the client. Data is kept back until then.
    ///
    /// # Errors
    /// The broker is away or refuses.
    pub(crate) async fn start(context: Context, granted: Granted) -> Result<Self, Refusal> {
        context.outlet.hold();
        let member = context.join(&granted.identity);
        let is_after = |(channel, wanted, _): &Wanted| {
            let is_after = wanted.recover.is_some();
            is_after.then(|| channel.clone())
        };
        let after: Vec<ChannelName> = granted.subscriptions.iter().filter_map(is_after).collect();
        let standings =
            context.subscribe_all(&granted.identity, member.id(), granted.subscriptions);
        let (mut channels, mut unrecovered) = (Vec::new(), Vec::new());
        for (channel, standing) in standings.await? {
            let recovery = standing.subscribed.recovery;
            let is_recovered = recovery.map_or(!after.contains(&channel), |one| one.is_recovered);
            if !is_recovered {
                unrecovered.push(channel.clone());
            }
            channels.push(channel);
        }
        Ok(Self {
            context,
            member,
            channels,
            expiry: granted.expiry,
            unrecovered,
        })
    }

    /// Takes an event that the outlet has collected; says why the session has to end, if it has.
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

    /// Says why the session has to end, if its time is over.
    pub(crate) fn handle_timeout(&self, now: Instant) -> Option<Disconnect> {
        let is_over = self.expiry.is_some_and(|at| at <= now);
        is_over.then_some(Disconnect::EXPIRED)
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub(crate) const fn poll_timeout(&self) -> Option<Instant> {
        self.expiry
    }

    /// Returns the client's place at the worker.
    pub(crate) const fn client(&self) -> ClientId {
        self.member.id()
    }

    /// Returns the channels in which the client has missed something before it came back.
    pub(crate) fn unrecovered(&self) -> &[ChannelName] {
        &self.unrecovered
    }

    fn handle_notice(&mut self, notice: Notice) -> Option<Disconnect> {
        match notice {
            Notice::Disconnect(disconnect) => return Some(disconnect),
            Notice::Refresh {
                expires,
                is_expired,
            } => {
                if is_expired {
                    return Some(Disconnect::EXPIRED);
                }
                let left = expires.map(|at| at.duration_since(std::time::SystemTime::now()));
                let left = left.map(|left| left.unwrap_or_default());
                self.expiry = left.and_then(|left| Instant::now().checked_add(left));
            }
            Notice::Unsubscribe { channel, .. } => {
                self.context
                    .gate
                    .worker
                    .unsubscribe(self.member.id(), &channel);
                self.channels.retain(|other| *other != channel);
                if self.channels.is_empty() {
                    return Some(Disconnect::FORCE_NO_RECONNECT);
                }
            }
            // Nothing in these protocols could say so.
            Notice::Join { .. } | Notice::Leave { .. } | Notice::Subscribe { .. } => {}
        }
        None
    }
}
