//! Authentication of clients and authorization of their subscriptions.

use std::{
    ptr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use linerate_hub::ChannelName;

use super::{
    Identity, SessionEnvironment, Settings,
    plan::{Plan, Requester},
};
use crate::{
    auth::{ConnectionClaims, Subscriber, SubscriptionClaims, TokenError, TokenId},
    backend::Backend,
    metrics::TokenKind,
    node::{Worker, seconds_now},
    protocol::{
        self, Dialect,
        codes::{ClientError, Disconnect, Refusal},
        command,
    },
};

/// Authenticates and authorizes the clients of one worker that use one dialect.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    pub(crate) worker: Arc<Worker>,
    pub(crate) shared: Arc<SessionEnvironment>,
    pub(crate) dialect: &'static Dialect,
}

/// The gates of one worker, which its clients share.
#[derive(Debug)]
pub(crate) struct Gates(Vec<Arc<Gate>>);

impl Gates {
    /// Returns the gates of a worker.
    pub(crate) fn new(worker: &Arc<Worker>, shared: &Arc<SessionEnvironment>) -> Self {
        let gate = |dialect| {
            Arc::new(Gate {
                worker: worker.clone(),
                shared: shared.clone(),
                dialect,
            })
        };
        Self(protocol::dialects().map(gate).collect())
    }

    /// Returns the gate of a dialect, which must be one of [`protocol::dialects`].
    pub(crate) fn of(&self, dialect: &'static Dialect) -> Arc<Gate> {
        let mut gates = self.0.iter();
        let known = gates.find(|gate| ptr::eq(gate.dialect, dialect));
        known.expect("each dialect has a gate").clone()
    }
}

impl Gate {
    /// Checks a connection token. Returns `None` for a client without one, where anonymous clients
    /// are allowed.
    pub(crate) async fn authenticate(
        &self,
        token: &str,
    ) -> Result<Option<ConnectionClaims>, Refusal> {
        let settings = self.shared.settings_full();
        if token.is_empty() {
            return match self.dialect.admits() || settings.config.allows_anonymous() {
                true => Ok(None),
                false => Err(Refusal::Disconnect(Disconnect::PERMISSION_DENIED)),
            };
        }
        let claims = settings.authenticator.connection(token, SystemTime::now());
        let claims = self
            .knowing_revocations(claims.await)
            .await
            .and_then(|claims| {
                self.check_revoked(&claims.user, Some(&claims.token))?;
                Ok(claims)
            });
        let metrics = self.shared.metrics();
        metrics.count_token(TokenKind::Connection, &claims);
        Ok(Some(claims.map_err(Refusal::of_connection)?))
    }

    /// Waits until the node has loaded the list of revoked tokens.
    async fn knowing_revocations<T>(&self, claims: Result<T, TokenError>) -> Result<T, TokenError> {
        let claims = claims?;
        match self.worker.node().revocations.wait_until_known().await {
            true => Ok(claims),
            false => Err(TokenError::RevocationsUnknown),
        }
    }

    /// Refuses a revoked token. Call this again after the client has joined the worker: a
    /// revocation that arrives before that is not reported to the session.
    pub(crate) fn check_revoked(
        &self,
        user: &str,
        token: Option<&TokenId>,
    ) -> Result<(), TokenError> {
        let revocations = self.worker.node().revocations.in_force();
        let is_revoked =
            token.is_some_and(|token| revocations.is_revoked(user, token, seconds_now()));
        match is_revoked {
            true => Err(TokenError::Revoked),
            false => Ok(()),
        }
    }

    /// Refuses a user with more connections, including the new one, than allowed. Anonymous clients
    /// are limited by address instead.
    pub(super) fn check_user(&self, identity: &Identity) -> Result<(), Refusal> {
        let settings = self.shared.settings();
        let connections_max = settings.config.server.connections_per_user_max as u64;
        let connections = self.worker.node().counts.connections_of(identity.user());
        if identity.is_anonymous() || connections <= connections_max {
            return Ok(());
        }
        let reason = format!("connection limit: {connections_max} of one user");
        let disconnect = Disconnect::CONNECTION_LIMIT.with_reason(reason);
        Err(Refusal::Disconnect(disconnect))
    }

    /// Checks the token of a subscription.
    pub(crate) async fn judge_subscription(
        &self,
        identity: &Identity,
        channel: &ChannelName,
        token: &str,
    ) -> Result<SubscriptionClaims, Refusal> {
        let settings = self.shared.settings_full();
        let subscriber = Subscriber {
            user: identity.user(),
            client: &identity.who.client,
            channel,
        };
        let authenticator = &settings.authenticator;
        let claims = authenticator.subscription(token, subscriber, SystemTime::now());
        let claims = self
            .knowing_revocations(claims.await)
            .await
            .and_then(|claims| {
                self.check_revoked(identity.user(), claims.token.as_ref())?;
                Ok(claims)
            });
        let metrics = self.shared.metrics();
        metrics.count_token(TokenKind::Subscription, &claims);
        claims.map_err(Refusal::of_subscription)
    }

    /// Checks a subscription token for any channel, and returns the channel that it names.
    pub(crate) async fn judge_any_subscription(
        &self,
        identity: &Identity,
        token: &str,
    ) -> Result<(ChannelName, SubscriptionClaims), Refusal> {
        let settings = self.shared.settings_full();
        let (user, client) = (identity.user(), &*identity.who.client);
        let authenticator = &settings.authenticator;
        let claims = authenticator.subscription_of(token, user, client, SystemTime::now());
        let claims = self
            .knowing_revocations(claims.await)
            .await
            .and_then(|(channel, claims)| {
                self.check_revoked(user, claims.token.as_ref())?;
                Ok((channel, claims))
            });
        let metrics = self.shared.metrics();
        metrics.count_token(TokenKind::Subscription, &claims);
        claims.map_err(Refusal::of_subscription)
    }

    /// Returns the backend that renews connections, or subscriptions to a channel, if there is one.
    pub(super) fn renewing_backend(&self, channel: Option<&ChannelName>) -> Option<Arc<Backend>> {
        let settings = self.shared.settings();
        let name = match channel {
            None => &settings.config.client.refresh_backend,
            Some(channel) => &settings.channel(channel).sub_refresh_backend,
        };
        settings.backends.find(name)
    }

    /// Returns how long a connection, or a subscription to a channel, continues after it has
    /// expired: no longer if a backend renews it, which is asked at that time.
    pub(super) fn grace(&self, channel: Option<&ChannelName>) -> Duration {
        match self.renewing_backend(channel) {
            Some(_) => Duration::ZERO,
            None => self.shared.settings().config.client.refresh_grace,
        }
    }

    /// Checks a subscription request and returns how to serve it.
    pub(crate) fn plan(
        &self,
        settings: &Settings,
        identity: &Identity,
        channel: ChannelName,
        wanted: &command::Subscribe,
        claims: Option<&SubscriptionClaims>,
    ) -> Result<Plan, ClientError> {
        let requester = Requester {
            settings,
            node: self.worker.node(),
            identity,
            dialect: self.dialect,
        };
        requester.plan(channel, wanted, claims)
    }
}

impl Refusal {
    /// Converts "token revoked" (113) to "token expired" (109). SDKs react to 109 in the answer to
    /// a connect or subscribe command by getting a new token, or by stopping if they cannot get
    /// one. After 113 they stop even if they could get a new token.
    pub(super) fn wanting_another_token(self) -> Self {
        match self {
            Self::Error(error) if error.code == ClientError::TOKEN_REVOKED.code => {
                let message = error.message.into_owned();
                Self::Error(ClientError::TOKEN_EXPIRED.with_message(message))
            }
            refusal => refusal,
        }
    }

    pub(super) fn of_connection(error: TokenError) -> Self {
        match error {
            TokenError::Expired => Self::Error(ClientError::TOKEN_EXPIRED),
            TokenError::Revoked => Self::Error(ClientError::TOKEN_REVOKED),
            error if error.is_temporary() => Self::Error(ClientError::INTERNAL),
            error => {
                let reason = format!("invalid token: {error}");
                Self::Disconnect(Disconnect::INVALID_TOKEN.with_reason(reason))
            }
        }
    }

    pub(super) fn of_subscription(error: TokenError) -> Self {
        Self::Error(match error {
            TokenError::Expired => ClientError::TOKEN_EXPIRED,
            TokenError::Revoked => ClientError::TOKEN_REVOKED,
            error if error.is_temporary() => ClientError::INTERNAL,
            error => {
                ClientError::PERMISSION_DENIED.with_message(format!("permission denied: {error}"))
            }
        })
    }
}
