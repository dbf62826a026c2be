//! The requests of the server API. Unknown fields are ignored, as Centrifugo clients expect.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// `publish`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Publish {
    /// The channel.
    pub channel: String,
    /// The payload as JSON, published byte for byte.
    #[serde(deserialize_with = "raw")]
    pub data: Option<Box<RawValue>>,
    /// The payload in base64, instead of `data`.
    pub b64data: String,
    /// True to leave the publication out of the history.
    pub skip_history: bool,
    /// Tags that are delivered with the publication.
    pub tags: BTreeMap<String, String>,
    /// A second publication with the same key is not published.
    pub idempotency_key: String,
    /// A version to compare with that of the newest publication; not supported.
    pub version: u64,
}

/// `broadcast`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Broadcast {
    /// The channels.
    pub channels: Vec<String>,
    /// The payload as JSON, published byte for byte.
    #[serde(deserialize_with = "raw")]
    pub data: Option<Box<RawValue>>,
    /// The payload in base64, instead of `data`.
    pub b64data: String,
    /// True to leave the publication out of the histories.
    pub skip_history: bool,
    /// Tags that are delivered with the publication.
    pub tags: BTreeMap<String, String>,
    /// A second publication with the same key in the same channel is not published.
    pub idempotency_key: String,
    /// A version, as for `publish`; not supported.
    pub version: u64,
}

impl Broadcast {
    /// Returns the request to publish in one of the channels.
    pub(crate) fn publish(&self, channel: String) -> Publish {
        Publish {
            channel,
            data: self.data.clone(),
            b64data: self.b64data.clone(),
            skip_history: self.skip_history,
            tags: self.tags.clone(),
            idempotency_key: self.idempotency_key.clone(),
            version: self.version,
        }
    }
}

/// A request with a channel as its only parameter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Channel {
    /// The channel.
    pub channel: String,
}

/// `channels`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Channels {
    /// Returns only the channels that match this pattern, in which `*` stands for any text.
    pub pattern: String,
}

/// `history`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct History {
    /// The channel.
    pub channel: String,
    /// Maximum number of publications; 0 returns only the position, a negative number all.
    pub limit: i64,
    /// Returns only what follows this position, or what precedes it if `reverse` is set.
    pub since: Option<Position>,
    /// True to return the newest publication first.
    pub reverse: bool,
}

/// A position in a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Position {
    /// The offset.
    pub offset: u64,
    /// The epoch.
    pub epoch: String,
}

/// The connections to which a request applies.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ConnectionSelector {
    /// All connections of this user.
    pub user: String,
    /// Only this connection.
    pub client: String,
}

/// `disconnect`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Disconnect {
    /// The connections to close.
    #[serde(flatten)]
    pub whom: ConnectionSelector,
    /// IDs of connections that stay open.
    pub whitelist: Vec<String>,
    /// The code and the reason to send.
    pub disconnect: Option<DisconnectCode>,
}

/// The code and reason sent to a client that is disconnected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DisconnectCode {
    /// The code: 3000 to 4999.
    pub code: u16,
    /// The reason.
    pub reason: String,
}

/// `revoke_token`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RevokeToken {
    /// The token's `jti`.
    pub uid: String,
    /// When the token and thus the revocation expires, in seconds since 1970; 0 for never.
    pub expire_at: u64,
}

/// `invalidate_user_tokens`, and `invalidate_tokens`, which applies to all users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct InvalidateTokens {
    /// The user whose tokens are revoked.
    pub user: String,
    /// Revokes only tokens with an `iat` before this time, in seconds since 1970; 0 for all tokens
    /// issued up to now.
    pub issued_before: u64,
    /// When the last of these tokens and thus the revocation expires, in seconds since 1970; 0 for
    /// never.
    pub expire_at: u64,
}

/// `refresh`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Refresh {
    /// The connections to refresh.
    #[serde(flatten)]
    pub whom: ConnectionSelector,
    /// True if the connections have expired.
    pub expired: bool,
    /// When they will expire, in seconds since 1970; 0 for never.
    pub expire_at: u64,
}

/// `subscribe`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Subscribe {
    /// Subscribes all connections of this user.
    pub user: String,
    /// Subscribes only this connection.
    pub client: String,
    /// The channel.
    pub channel: String,
    /// Information about the subscriber that others in the channel can see.
    pub info: Option<Box<RawValue>>,
}

/// `unsubscribe`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Unsubscribe {
    /// The connections to unsubscribe.
    #[serde(flatten)]
    pub whom: ConnectionSelector,
    /// The channel; empty for all.
    pub channel: String,
}

/// `batch`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Batch {
    /// The commands, each an object with the method as its only key and the parameters as its
    /// value.
    pub commands: Vec<BTreeMap<String, Box<RawValue>>>,
    /// True if the commands may run concurrently.
    pub parallel: bool,
}

/// Keeps JSON unchanged, so that `null` is a payload that can be published.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
