//! The claims of tokens, with the names that Centrifugo uses.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_hub::ChannelName;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use super::{Subscriber, TokenError, TokenId};
use crate::config::TokenOptions;

/// Maximum number of channels to which a token subscribes its connection.
const CHANNELS_MAX: usize = 1_000;

/// The claims of a token for a connection.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) struct ConnectionClaims {
    /// The user; empty if anonymous.
    pub user: String,
    /// Information that others can see about the connection, as JSON.
    pub info: Option<Bytes>,
    /// Information that only the server can see about the connection, as JSON.
    pub meta: Option<Bytes>,
    /// When the connection needs a new token, in seconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// The identity of the token.
    pub token: TokenId,
    /// The channels to which the connection is subscribed automatically.
    pub subscriptions: Vec<(ChannelName, SubscriptionClaims)>,
}

/// The claims of a token for a subscription.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) struct SubscriptionClaims {
    /// Information that others in the channel can see about the subscriber, as JSON.
    pub info: Option<Bytes>,
    /// Data sent to the subscriber with the reply, as JSON.
    pub data: Option<Bytes>,
    /// When the subscription needs a new token, in seconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// The identity of the token for the channel; `None` if the subscription relies on the token of
    /// the connection only.
    pub token: Option<TokenId>,
    /// Overrides for the options of the channel.
    pub overrides: SubscriptionOverrides,
}

/// Options of a channel that a token overrides for this subscriber.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
#[non_exhaustive]
pub(crate) struct SubscriptionOverrides {
    /// True to list the subscriber in the presence information.
    #[serde(deserialize_with = "value")]
    pub presence: Option<bool>,
    /// True to notify others of joins and leaves of the subscriber.
    #[serde(deserialize_with = "value")]
    pub join_leave: Option<bool>,
    /// True to end the subscription when there is a gap.
    #[serde(
        deserialize_with = "value",
        rename = "force_positioning",
        alias = "position"
    )]
    pub positioned: Option<bool>,
    /// True to send the subscriber what it missed when it reconnects.
    #[serde(
        deserialize_with = "value",
        rename = "force_recovery",
        alias = "recover"
    )]
    pub recover: Option<bool>,
}

/// The claims of a token of either kind.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    #[serde(default)]
    sub: String,
    #[serde(default)]
    exp: Option<Seconds>,
    #[serde(default)]
    nbf: Option<Seconds>,
    #[serde(default)]
    iat: Option<Seconds>,
    #[serde(default)]
    jti: Option<String>,
    #[serde(default)]
    iss: Option<String>,
    #[serde(default)]
    aud: Option<Audience>,
    #[serde(default)]
    expire_at: Option<Seconds>,
    #[serde(default)]
    meta: Option<Value>,
    #[serde(default)]
    channels: Vec<String>,
    #[serde(default)]
    subs: BTreeMap<String, CommonClaims>,
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    client: Option<String>,
    #[serde(flatten)]
    about: CommonClaims,
}

/// The claims that subscriptions and connections have in common.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CommonClaims {
    info: Option<Value>,
    b64info: Option<String>,
    data: Option<Value>,
    b64data: Option<String>,
    #[serde(rename = "override")]
    overrides: SubscriptionOverrides,
}

/// Seconds since 1970. A fraction is allowed (RFC 7519 §2) and truncated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(i64);

/// One audience, or several (RFC 7519 §4.1.3).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Verifies the claims that do not depend on the purpose of the token. `now` is in seconds
    /// since 1970.
    pub(super) fn check(&self, options: &TokenOptions, now: u64) -> Result<(), TokenError> {
        let (now, leeway) = (now.cast_signed(), options.leeway.as_secs().cast_signed());
        // RFC 7519 §4.1.4: "on or after which the JWT MUST NOT be accepted".
        if self
            .exp
            .is_some_and(|exp| now.saturating_sub(leeway) >= exp.0)
        {
            return Err(TokenError::Expired);
        }
        let is_future = |time: Option<Seconds>| time.is_some_and(|time| now + leeway < time.0);
        if is_future(self.nbf) || is_future(self.iat) {
            return Err(TokenError::NotYet);
        }
        if let Some(issuer) = &options.issuer
            && self.iss.as_ref() != Some(issuer)
        {
            return Err(TokenError::Issuer);
        }
        match &options.audience {
            Some(audience) if !self.is_for(audience) => Err(TokenError::Audience),
            _ => Ok(()),
        }
    }

    /// Returns the channel that the token is for.
    pub(super) fn channel(&self) -> Result<ChannelName, TokenError> {
        let channel = self.channel.as_deref().ok_or(TokenError::Channel)?;
        ChannelName::new(channel).map_err(|_| TokenError::Channel)
    }

    /// Converts the claims of a token for a connection.
    pub(super) fn into_connection(self) -> Result<ConnectionClaims, TokenError> {
        // A token for a single channel must not open a connection.
        if self.channel.is_some() {
            return Err(TokenError::Channel);
        }
        let (expires_at, token) = (self.expires_at(), self.shown());
        Ok(ConnectionClaims {
            subscriptions: subscriptions(self.channels, self.subs)?,
            user: self.sub,
            meta: self.meta.as_ref().map(json),
            expires_at,
            token,
            info: self.about.info()?,
        })
    }

    /// Converts the claims of a token for a subscription, if they match `subscriber`.
    pub(super) fn into_subscription(
        self,
        subscriber: Subscriber<'_>,
    ) -> Result<SubscriptionClaims, TokenError> {
        if self.channel.as_deref() != Some(subscriber.channel.as_str()) {
            return Err(TokenError::Channel);
        }
        // Older tokens name the connection, newer ones the user. A token that names neither is for
        // anonymous users.
        match &self.client {
            Some(client) if !client.is_empty() => {
                if client != subscriber.client {
                    return Err(TokenError::Client);
                }
                if !self.sub.is_empty() && self.sub != subscriber.user {
                    return Err(TokenError::User);
                }
            }
            _ if self.sub != subscriber.user => return Err(TokenError::User),
            _ => {}
        }
        let (expires_at, token) = (self.expires_at(), self.shown());
        Ok(SubscriptionClaims {
            token: Some(token),
            ..self.about.into_subscription(expires_at)?
        })
    }

    fn shown(&self) -> TokenId {
        TokenId {
            id: self.jti.clone(),
            issued_at: self.iat.map(Seconds::to_u64),
        }
    }

    /// Returns when the connection or subscription expires: `expire_at` takes precedence over
    /// `exp`, and an `expire_at` of 0 means never.
    fn expires_at(&self) -> Option<u64> {
        match self.expire_at {
            Some(_) => Seconds::expiry(self.expire_at),
            None => self.exp.map(Seconds::to_u64),
        }
    }

    fn is_for(&self, audience: &str) -> bool {
        match &self.aud {
            None => false,
            Some(Audience::One(one)) => one == audience,
            Some(Audience::Several(several)) => several.iter().any(|one| one == audience),
        }
    }
}

/// Returns the channels that a connection is subscribed to automatically: those in a list, and
/// those with claims of their own.
///
/// # Errors
/// There are too many, a name is invalid, or base64 is.
pub(crate) fn subscriptions(
    channels: Vec<String>,
    subs: BTreeMap<String, CommonClaims>,
) -> Result<Vec<(ChannelName, SubscriptionClaims)>, TokenError> {
    if channels.len() + subs.len() > CHANNELS_MAX {
        return Err(TokenError::Malformed);
    }
    let channels = channels.into_iter();
    let mut all: BTreeMap<String, CommonClaims> = channels
        .map(|channel| (channel, CommonClaims::default()))
        .collect();
    all.extend(subs);
    let subscriptions = all.into_iter().map(|(channel, about)| {
        let channel = ChannelName::new(&channel).map_err(|_| TokenError::Malformed)?;
        Ok((channel, about.into_subscription(None)?))
    });
    subscriptions.collect()
}

impl CommonClaims {
    /// Converts the claims of a subscription that relies on no token of its own.
    pub(crate) fn into_subscription(
        self,
        expires_at: Option<u64>,
    ) -> Result<SubscriptionClaims, TokenError> {
        Ok(SubscriptionClaims {
            info: self.info()?,
            data: either(self.data.as_ref(), self.b64data.as_deref())?,
            expires_at,
            token: None,
            overrides: self.overrides,
        })
    }

    fn info(&self) -> Result<Option<Bytes>, TokenError> {
        either(self.info.as_ref(), self.b64info.as_deref())
    }
}

impl Seconds {
    /// Returns the end of something that expires then; 0 stands for never.
    pub(crate) fn expiry(at: Option<Self>) -> Option<u64> {
        at.filter(|at| at.0 != 0).map(Self::to_u64)
    }

    fn to_u64(self) -> u64 {
        self.0.max(0).cast_unsigned()
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Up to this value, every whole number of seconds has an exact representation.
        if seconds.abs() > 9e15 {
            return Err(D::Error::custom("time is out of range"));
        }
        Ok(Self(seconds as i64))
    }
}

/// Returns a value that is given as JSON or as base64 of JSON.
fn either(value: Option<&Value>, base64: Option<&str>) -> Result<Option<Bytes>, TokenError> {
    match base64 {
        Some(base64) if !base64.is_empty() => match STANDARD.decode(base64) {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(_) => Err(TokenError::Malformed),
        },
        _ => Ok(value.filter(|value| !value.is_null()).map(json)),
    }
}

fn json(value: &Value) -> Bytes {
    value.to_string().into()
}

/// Parses `{"value": true}`.
fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    struct Wrapped {
        value: bool,
    }
    let wrapped = Option::<Wrapped>::deserialize(deserializer)?;
    Ok(wrapped.map(|wrapped| wrapped.value))
}
