//! What is asked of the server API. Unknown fields are ignored, as clients of Centrifugo expect.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// `publish`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Publish {
    /// Where.
    pub channel: String,
    /// What: JSON, published byte for byte.
    #[serde(deserialize_with = "raw")]
    pub data: Option<Box<RawValue>>,
    /// What, in base64, instead of `data`.
    pub b64data: String,
    /// Whether the channel does not keep it.
    pub skip_history: bool,
    /// What is added.
    pub tags: BTreeMap<String, String>,
    /// A second publication with the same key is not published.
    pub idempotency_key: String,
    /// A version to compare with that of the newest publication; there are none here.
    pub version: u64,
}

/// `broadcast`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Broadcast {
    /// Where.
    pub channels: Vec<String>,
    /// What: JSON, published byte for byte.
    #[serde(deserialize_with = "raw")]
    pub data: Option<Box<RawValue>>,
    /// What, in base64, instead of `data`.
    pub b64data: String,
    /// Whether the channels do not keep it.
    pub skip_history: bool,
    /// What is added.
    pub tags: BTreeMap<String, String>,
    /// A second publication with the same key in the same channel is not published.
    pub idempotency_key: String,
    /// As for `publish`.
    pub version: u64,
}

impl Broadcast {
    /// Returns what is to be published in one of the channels.
    pub fn publish(&self, channel: String) -> Publish {
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

/// A request that is about a channel.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Channel {
    /// Which.
    pub channel: String,
}

/// `channels`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Channels {
    /// Only those that match, with `*` for any text.
    pub pattern: String,
}

/// `history`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct History {
    /// Of which channel.
    pub channel: String,
    /// At most so many; only the position if 0, all if negative.
    pub limit: i64,
    /// Only what follows this.
    pub since: Option<Position>,
    /// From the newest to the oldest.
    pub reverse: bool,
}

/// A place in a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Position {
    /// The offset.
    pub offset: u64,
    /// The epoch.
    pub epoch: String,
}

/// Whom a request is about.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Whom {
    /// All connections of this user,
    pub user: String,
    /// or just this one.
    pub client: String,
}

/// `disconnect`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Disconnect {
    /// Whom.
    #[serde(flatten)]
    pub whom: Whom,
    /// Connections that stay.
    pub whitelist: Vec<String>,
    /// The code, and why.
    pub disconnect: Option<DisconnectCode>,
}

/// What a client is told that is disconnected.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DisconnectCode {
    /// The code: 3000 to 4999.
    pub code: u16,
    /// Why.
    pub reason: String,
}

/// `revoke_token`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RevokeToken {
    /// The token's `jti`.
    pub uid: String,
    /// When the token expires, and the revocation with it, in seconds since 1970; never if 0.
    pub expire_at: u64,
}

/// `invalidate_user_tokens`, and `invalidate_tokens`, which is about all users.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct InvalidateTokens {
    /// Whose tokens.
    pub user: String,
    /// Only those with an `iat` before this, in seconds since 1970; all that were issued up to now if 0.
    pub issued_before: u64,
    /// When the last of them expires, and the revocation with it, in seconds since 1970; never if 0.
    pub expire_at: u64,
}

/// `refresh`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Refresh {
    /// Whom.
    #[serde(flatten)]
    pub whom: Whom,
    /// Whether the connection is over.
    pub expired: bool,
    /// When it will be, in seconds since 1970; never if 0.
    pub expire_at: u64,
}

/// `subscribe`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Subscribe {
    /// Whom.
    pub user: String,
    /// Just this connection.
    pub client: String,
    /// To which channel.
    pub channel: String,
    /// What others see of the subscription.
    pub info: Option<Box<RawValue>>,
}

/// `unsubscribe`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Unsubscribe {
    /// Whom.
    #[serde(flatten)]
    pub whom: Whom,
    /// From which channel.
    pub channel: String,
}

/// `batch`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Batch {
    /// One command each: its method and what it asks.
    pub commands: Vec<BTreeMap<String, Box<RawValue>>>,
    /// Whether they may be done at once.
    pub parallel: bool,
}

/// Keeps JSON as it stands: `null` is something that can be published.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}
