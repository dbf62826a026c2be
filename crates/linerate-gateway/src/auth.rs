//! Authorization: tokens for connections and channels, access keys, page origins.
//!
//! Tokens are JSON Web Tokens (RFC 7519) with the claims of Centrifugo. The configured key
//! determines the algorithm, never the token alone (RFC 8725 §3.1).

mod access_key;
mod attempts;
mod claims;
mod error;
mod fetch;
mod jwks;
mod keys;
mod origins;
mod pusher;
mod revocations;
mod rsa;
mod signature;
mod token;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use linerate_hub::ChannelName;

use crate::config::{AuthOptions, TokenOptions};

pub(crate) use access_key::AccessKey;
pub use attempts::KeyRefusal;
pub(crate) use attempts::{Attempts, WRONG_KEYS_MAX, WRONG_KEYS_WINDOW};
pub(crate) use claims::{
    CommonClaims, ConnectionClaims, Seconds, SubscriptionClaims, subscriptions,
};
pub use error::AuthSetupError;
pub(crate) use error::TokenError;
pub(crate) use origins::Origins;
pub(crate) use pusher::{PusherApp, hex};
pub(crate) use revocations::{Revocation, RevocationError, Revocations, Target, TokenId};
pub use token::{TokenMaker, TokenMakerError};

use claims::Claims;
use jwks::Jwks;
use keys::Keys;

/// Verifies tokens and keys.
#[derive(Debug)]
pub(crate) struct Authenticator {
    api_key: Option<AccessKey>,
    admin_key: Option<AccessKey>,
    logs_key: Option<AccessKey>,
    token: TokenOptions,
    keys: Keys,
    jwks: Option<Arc<Jwks>>,
}

/// The subscriber that presents a token for a channel. The claims of the token must match it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscriber<'a> {
    /// The user of the connection; empty if anonymous.
    pub user: &'a str,
    /// The ID of the connection.
    pub client: &'a str,
    /// The channel.
    pub channel: &'a ChannelName,
}

impl Authenticator {
    /// Reads the configured keys. Keys behind a JWKS URL are fetched when they are first needed.
    ///
    /// # Errors
    /// Fails if a file cannot be read or a key is not valid.
    pub(crate) fn new(options: &AuthOptions) -> Result<Self, AuthSetupError> {
        let jwks = options.token.jwks_url.as_deref();
        Ok(Self {
            api_key: AccessKey::read("auth.api_key", options.api_key.as_ref())?,
            admin_key: AccessKey::read("auth.admin_key", options.admin_key.as_ref())?,
            logs_key: AccessKey::read("auth.logs_key", options.logs_key.as_ref())?,
            keys: Keys::read(&options.token)?,
            jwks: jwks.map(Jwks::new).transpose()?.map(Arc::new),
            token: options.token.clone(),
        })
    }

    /// Like [`new`](Self::new), but keeps the keys that `previous` has fetched if the URL is the
    /// same.
    ///
    /// # Errors
    /// The same as for [`new`](Self::new).
    pub(crate) fn renew(options: &AuthOptions, previous: &Self) -> Result<Self, AuthSetupError> {
        let mut renewed = Self::new(options)?;
        if options.token.jwks_url == previous.token.jwks_url {
            renewed.jwks.clone_from(&previous.jwks);
        }
        Ok(renewed)
    }

    /// Verifies a token for a connection.
    ///
    /// # Errors
    /// Fails if the token is not valid, has expired, or is for a channel.
    pub(crate) async fn connection(
        &self,
        token: &str,
        now: SystemTime,
    ) -> Result<ConnectionClaims, TokenError> {
        let claims = self.claims(token, now).await?;
        claims.into_connection()
    }

    /// Verifies a token for a channel.
    ///
    /// # Errors
    /// Fails if the token is not valid, has expired, or is for another channel, user or connection.
    pub(crate) async fn subscription(
        &self,
        token: &str,
        subscriber: Subscriber<'_>,
        now: SystemTime,
    ) -> Result<SubscriptionClaims, TokenError> {
        let claims = self.claims(token, now).await?;
        claims.into_subscription(subscriber)
    }

    /// Verifies a token for any channel, and returns the channel that it names.
    ///
    /// # Errors
    /// Fails if the token is not valid, has expired, names no channel, or is for another user or
    /// connection.
    pub(crate) async fn subscription_of(
        &self,
        token: &str,
        user: &str,
        client: &str,
        now: SystemTime,
    ) -> Result<(ChannelName, SubscriptionClaims), TokenError> {
        let claims = self.claims(token, now).await?;
        let channel = claims.channel()?;
        let subscriber = Subscriber {
            user,
            client,
            channel: &channel,
        };
        let claims = claims.into_subscription(subscriber)?;
        Ok((channel, claims))
    }

    /// Returns whether a key for the server API is configured.
    pub(crate) const fn has_api_key(&self) -> bool {
        self.api_key.is_some()
    }

    /// Returns whether `presented` is the key of the server API. The comparison takes the same time
    /// however much of it is right.
    pub(crate) fn is_api_key(&self, presented: &[u8]) -> bool {
        let key = self.api_key.as_ref();
        key.is_some_and(|key| key.matches(presented))
    }

    /// Returns whether a key for `/admin` is configured.
    pub(crate) const fn has_admin_key(&self) -> bool {
        self.admin_key.is_some()
    }

    /// Returns whether `presented` is the key of `/admin`.
    pub(crate) fn is_admin_key(&self, presented: &[u8]) -> bool {
        let key = self.admin_key.as_ref();
        key.is_some_and(|key| key.matches(presented))
    }

    /// Returns whether a key for the log page is configured.
    pub(crate) const fn has_logs_key(&self) -> bool {
        self.logs_key.is_some()
    }

    /// Returns whether `presented` allows uploading and following logs: it is the key of the log
    /// page or of `/admin`.
    pub(crate) fn is_logs_key(&self, presented: &[u8]) -> bool {
        let key = self.logs_key.as_ref();
        key.is_some_and(|key| key.matches(presented)) | self.is_admin_key(presented)
    }

    /// Verifies what tokens of both kinds have in common.
    async fn claims(&self, token: &str, now: SystemTime) -> Result<Claims, TokenError> {
        if token.len() > self.token.bytes_max {
            return Err(TokenError::TooLong {
                bytes: token.len(),
                bytes_max: self.token.bytes_max,
            });
        }
        let header = keys::header(token)?;
        let claims: Claims = match self.keys.find(header.alg) {
            // A configured key takes precedence over a fetched one, unless the token names a key.
            Some(key) if header.kid.is_none() || self.jwks.is_none() => key.verify(token)?,
            _ => match &self.jwks {
                Some(jwks) => jwks.find(&header).await?.verify(token)?,
                None => return Err(TokenError::NoKey),
            },
        };
        let now = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO).as_secs();
        claims.check(&self.token, now)?;
        Ok(claims)
    }
}

#[cfg(test)]
mod tests;
