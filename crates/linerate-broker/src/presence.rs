//! What nodes store at the broker about the clients that are present in channels.

use std::sync::Arc;

use linerate_hub::{ChannelName, ClientInfo};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A client of this node is present in a channel, or no longer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PresenceChange {
    /// The channel.
    pub channel: ChannelName,
    /// The client.
    pub info: ClientInfo,
    /// True if the client is present.
    pub is_present: bool,
}

/// A client's information as JSON, in which information from tokens is embedded.
#[derive(Deserialize, Serialize)]
pub(crate) struct InfoJson {
    user: String,
    client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    connection: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channel: Option<Box<RawValue>>,
}

impl From<&ClientInfo> for InfoJson {
    fn from(info: &ClientInfo) -> Self {
        let raw = |json: &Option<Arc<[u8]>>| {
            let text = std::str::from_utf8(json.as_deref()?).ok()?;
            RawValue::from_string(text.to_owned()).ok()
        };
        Self {
            user: info.user.to_string(),
            client: info.client.to_string(),
            connection: raw(&info.connection),
            channel: raw(&info.channel),
        }
    }
}

impl From<InfoJson> for ClientInfo {
    fn from(info: InfoJson) -> Self {
        let bytes = |json: Box<RawValue>| Arc::from(json.get().as_bytes());
        Self {
            user: info.user.into(),
            client: info.client.into(),
            connection: info.connection.map(bytes),
            channel: info.channel.map(bytes),
        }
    }
}

/// Encodes a client's information.
pub(crate) fn encode(info: &ClientInfo) -> Vec<u8> {
    // This fails only for values that a client's info cannot have, because it is JSON already.
    serde_json::to_vec(&InfoJson::from(info)).unwrap_or_default()
}

/// Decodes a client's information; returns `None` if something other than a node has stored it.
pub(crate) fn decode(json: &[u8]) -> Option<ClientInfo> {
    serde_json::from_slice::<InfoJson>(json)
        .ok()
        .map(ClientInfo::from)
}

#[cfg(test)]
mod tests {
    use linerate_hub::ClientInfo;

    use super::{decode, encode};

    #[test]
    fn a_client_survives_the_round_trip() {
        let info = ClientInfo {
            user: "a\"b".into(),
            client: "c".into(),
            connection: Some((*b"{\"x\": [1, 2]}").into()),
            channel: None,
        };
        assert_eq!(decode(&encode(&info)), Some(info));
        assert_eq!(decode(b"{}"), None);
    }
}
