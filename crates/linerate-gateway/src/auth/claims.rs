//! The claims of tokens, as Centrifugo names them.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_hub::ChannelName;
use serde::{Deserialize, Deserializer, de::Error};
use serde_json::Value;

use super::{Shown, Subscriber, TokenError};
use crate::config::TokenOptions;

/// The most channels that a token subscribes its connection to.
const CHANNELS_MAX: usize = 1_000;

/// What a token says of a connection.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct ConnectionClaims {
    /// The user; empty if anonymous.
    pub user: String,
    /// What others are told of the connection, as JSON.
    pub info: Option<Bytes>,
    /// What only the server is told of it, as JSON.
    pub meta: Option<Bytes>,
    /// When the connection needs another token, in seconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// What the token says of itself.
    pub token: Shown,
    /// The channels that the connection is subscribed to without asking.
    pub subscriptions: Vec<(ChannelName, SubscriptionClaims)>,
}

/// What a token says of a subscription.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct SubscriptionClaims {
    /// What others in the channel are told of the subscriber, as JSON.
    pub info: Option<Bytes>,
    /// What the subscriber is told with the answer, as JSON.
    pub data: Option<Bytes>,
    /// When the subscription needs another token, in seconds since 1970; `None` for never.
    pub expires_at: Option<u64>,
    /// What the token for the channel says of itself; `None` if there is none but that of the connection.
    pub token: Option<Shown>,
    /// What holds instead of the options of the channel.
    pub overrides: SubscriptionOverrides,
}

/// What a token changes of a channel's options, for this subscriber.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default)]
#[non_exhaustive]
pub struct SubscriptionOverrides {
    /// Whether it is known that the subscriber is there.
    #[serde(deserialize_with = "value")]
    pub presence: Option<bool>,
    /// Whether others are told when the subscriber comes and goes.
    #[serde(deserialize_with = "value")]
    pub join_leave: Option<bool>,
    /// Whether a gap ends the subscription.
    #[serde(
        deserialize_with = "value",
        rename = "force_positioning",
        alias = "position"
    )]
    pub positioned: Option<bool>,
    /// Whether a subscriber that comes back gets what it missed.
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
    subs: BTreeMap<String, About>,
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    client: Option<String>,
    #[serde(flatten)]
    about: About,
}

/// What claims say of a subscription, and of a connection.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct About {
    info: Option<Value>,
    b64info: Option<String>,
    data: Option<Value>,
    b64data: Option<String>,
    #[serde(rename = "override")]
    overrides: SubscriptionOverrides,
}

/// Seconds since 1970. A fraction is allowed (RFC 7519 §2) and cut off.
#[derive(Clone, Copy, Debug)]
struct Seconds(i64);

/// One, or several (RFC 7519 §4.1.3).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Claims {
    /// Checks what does not depend on what the token is for. `now` is in seconds since 1970.
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

    /// Takes the claims as those of a connection.
    pub(super) fn into_connection(self) -> Result<ConnectionClaims, TokenError> {
        // A token that lets somebody into one channel must not open a connection.
        if self.channel.is_some() {
            return Err(TokenError::Channel);
        }
        if self.channels.len() + self.subs.len() > CHANNELS_MAX {
            return Err(TokenError::Malformed);
        }
        let (expires_at, token) = (self.expires_at(), self.shown());
        let channels = self.channels.into_iter();
        let mut subs: BTreeMap<String, About> = channels
            .map(|channel| (channel, About::default()))
            .collect();
        subs.extend(self.subs);
        let subscriptions = subs.into_iter().map(|(channel, about)| {
            let channel = ChannelName::new(&channel).map_err(|_| TokenError::Malformed)?;
            Ok((channel, about.into_subscription(None)?))
        });
        Ok(ConnectionClaims {
            subscriptions: subscriptions.collect::<Result<_, _>>()?,
            user: self.sub,
            meta: self.meta.as_ref().map(json),
            expires_at,
            token,
            info: self.about.info()?,
        })
    }

    /// Takes the claims as those of a subscription, if it is that of `subscriber`.
    pub(super) fn into_subscription(
        self,
        subscriber: Subscriber<'_>,
    ) -> Result<SubscriptionClaims, TokenError> {
        if self.channel.as_deref() != Some(subscriber.channel.as_str()) {
            return Err(TokenError::Channel);
        }
        // Older tokens name the connection, newer ones the user; one that names neither is for anonymous users.
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

    fn shown(&self) -> Shown {
        Shown {
            id: self.jti.clone(),
            issued_at: self.iat.map(Seconds::to_u64),
        }
    }

    /// Returns when what the token opens ends: `expire_at` has the last word, and 0 there means never.
    fn expires_at(&self) -> Option<u64> {
        match self.expire_at {
            Some(Seconds(0)) => None,
            Some(at) => Some(at.to_u64()),
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

impl About {
    fn into_subscription(self, expires_at: Option<u64>) -> Result<SubscriptionClaims, TokenError> {
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
    fn to_u64(self) -> u64 {
        self.0.max(0).cast_unsigned()
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        // Up to here every second is a number of its own.
        if seconds.abs() > 9e15 {
            return Err(D::Error::custom("time is out of range"));
        }
        Ok(Self(seconds as i64))
    }
}

/// Returns what is given as JSON, or as the base64 of it.
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

/// Takes `{"value": true}`.
fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    #[derive(Deserialize)]
    struct Wrapped {
        value: bool,
    }
    let wrapped = Option::<Wrapped>::deserialize(deserializer)?;
    Ok(wrapped.map(|wrapped| wrapped.value))
}
