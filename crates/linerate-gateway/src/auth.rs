//! Who may: tokens for connections and channels, keys of the server API, origins of pages.
//!
//! Tokens are JSON Web Tokens (RFC 7519) with the claims of Centrifugo. The algorithm follows from the key that
//! is configured, never from the token alone (RFC 8725 §3.1).

mod access_key;
mod claims;
mod error;
mod fetch;
mod jwks;
mod keys;
mod origins;
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

pub use access_key::AccessKey;
pub use claims::{ConnectionClaims, SubscriptionClaims, SubscriptionOverrides};
pub use error::{AuthSetupError, TokenError};
pub use origins::{OriginDenied, Origins};
pub use revocations::{Revocation, RevocationError, Revocations, Shown, Target};
pub use token::{TokenMaker, TokenMakerError};

use claims::Claims;
use jwks::Jwks;
use keys::Keys;

/// Judges tokens and keys.
#[derive(Debug)]
pub struct Authenticator {
    api_key: Option<AccessKey>,
    admin_key: Option<AccessKey>,
    logs_key: Option<AccessKey>,
    token: TokenOptions,
    keys: Keys,
    jwks: Option<Arc<Jwks>>,
}

/// Who shows a token for a channel: the claims must be about them.
#[derive(Clone, Copy, Debug)]
pub struct Subscriber<'a> {
    /// The user of the connection; empty if anonymous.
    pub user: &'a str,
    /// The connection.
    pub client: &'a str,
    /// The channel.
    pub channel: &'a ChannelName,
}

impl Authenticator {
    /// Reads the keys. Those that have to be fetched are fetched when first needed.
    ///
    /// # Errors
    /// A file can't be read, or a key is none of its kind.
    pub fn new(options: &AuthOptions) -> Result<Self, AuthSetupError> {
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

    /// Like [`new`](Self::new), and keeps what `previous` has fetched if the address is the same.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn renew(options: &AuthOptions, previous: &Self) -> Result<Self, AuthSetupError> {
        let mut renewed = Self::new(options)?;
        if options.token.jwks_url == previous.token.jwks_url {
            renewed.jwks.clone_from(&previous.jwks);
        }
        Ok(renewed)
    }

    /// Judges a token for a connection.
    ///
    /// # Errors
    /// The token is not valid, has expired, or is one for a channel.
    pub async fn connection(
        &self,
        token: &str,
        now: SystemTime,
    ) -> Result<ConnectionClaims, TokenError> {
        let claims = self.claims(token, now).await?;
        claims.into_connection()
    }

    /// Judges a token for a channel.
    ///
    /// # Errors
    /// The token is not valid, has expired, or is about another channel, user or connection.
    pub async fn subscription(
        &self,
        token: &str,
        subscriber: Subscriber<'_>,
        now: SystemTime,
    ) -> Result<SubscriptionClaims, TokenError> {
        let claims = self.claims(token, now).await?;
        claims.into_subscription(subscriber)
    }

    /// Judges a token for whatever channel it names, and returns that.
    ///
    /// # Errors
    /// The token is not valid, has expired, names no channel, or is about another user or connection.
    pub async fn subscription_of(
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
    pub const fn has_api_key(&self) -> bool {
        self.api_key.is_some()
    }

    /// Returns whether `presented` is the key of the server API. The time it takes does not tell how much of it is
    /// right.
    pub fn is_api_key(&self, presented: &[u8]) -> bool {
        let key = self.api_key.as_ref();
        key.is_some_and(|key| key.matches(presented))
    }

    /// Returns whether a key for `/admin` is configured.
    pub const fn has_admin_key(&self) -> bool {
        self.admin_key.is_some()
    }

    /// Returns whether `presented` is the key of `/admin`.
    pub fn is_admin_key(&self, presented: &[u8]) -> bool {
        let key = self.admin_key.as_ref();
        key.is_some_and(|key| key.matches(presented))
    }

    /// Returns whether a key for the log page is configured.
    pub const fn has_logs_key(&self) -> bool {
        self.logs_key.is_some()
    }

    /// Returns whether `presented` is a key with which logs may be uploaded and followed: that of the log page, or that of
    /// `/admin`.
    pub fn is_logs_key(&self, presented: &[u8]) -> bool {
        let key = self.logs_key.as_ref();
        key.is_some_and(|key| key.matches(presented)) | self.is_admin_key(presented)
    }

    /// Checks everything that tokens of both kinds have in common.
    async fn claims(&self, token: &str, now: SystemTime) -> Result<Claims, TokenError> {
        if token.len() > self.token.bytes_max {
            return Err(TokenError::TooLong {
                bytes: token.len(),
                bytes_max: self.token.bytes_max,
            });
        }
        let header = keys::header(token)?;
        let claims: Claims = match self.keys.find(header.alg) {
            // A key that is configured goes before one that is fetched, unless the token asks for one by name.
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
