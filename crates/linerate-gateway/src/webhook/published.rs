//! A publication of a client, as webhooks are told.

use std::str;

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_broker::Publish;
use linerate_hub::ChannelName;
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Value, value::RawValue};

use super::channel_json::as_text;
use crate::protocol::{event_name, exceptions};

/// The maximum size of the data that is told, in bytes: the default of `client.message_bytes_max`.
/// A batch must not become larger than receivers accept.
const DATA_BYTES_MAX: usize = 64 << 10;

/// The maximum depth of data that is told as JSON. Parsers allow about 100 for the whole batch.
const DEPTH_MAX: usize = 64;

/// A publication of a client.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Publication {
    #[serde(serialize_with = "as_text")]
    channel: ChannelName,
    #[serde(flatten)]
    payload: Payload,
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    tags: Vec<(String, String)>,
}

/// The payload of a publication. A worker only copies it; it is read when it is sent.
#[derive(Clone, Debug)]
enum Payload {
    Copied(Box<[u8]>),
    /// It is too large, and has this size in bytes.
    Omitted(usize),
}

/// What receivers are told of a payload: JSON that any parser accepts, other text, bytes, or only
/// the size.
#[derive(Clone, Debug, Serialize)]
enum Data<'a> {
    #[serde(rename = "data_base64", serialize_with = "as_base64")]
    Bytes(&'a [u8]),
    #[serde(rename = "data")]
    Json(&'a RawValue),
    #[serde(rename = "omitted_bytes")]
    Omitted(usize),
    #[serde(rename = "data_text")]
    Text(&'a str),
}

impl Publication {
    /// Describes a publication. Its payload is copied, because it may be a part of a larger buffer.
    pub(crate) fn new(channel: ChannelName, publish: &Publish) -> Self {
        let payload = &publish.payload;
        let tags = exceptions::without_tag(&publish.tags);
        Self {
            channel,
            payload: match payload.len() > DATA_BYTES_MAX {
                true => Payload::Omitted(payload.len()),
                false => Payload::Copied(payload[..].into()),
            },
            tags: tags.cloned().collect(),
        }
    }

    /// Returns the channel.
    pub(super) const fn channel(&self) -> &ChannelName {
        &self.channel
    }

    /// Returns the name of the event that the publication is.
    pub(super) fn event(&self) -> &str {
        let mut tags = self.tags.iter();
        let name = tags.find(|(name, _)| name == event_name::TAG);
        name.map_or(event_name::MESSAGE, |(_, event)| event)
    }

    /// Returns the payload as text: bytes in base64, and nothing of a payload that is too large.
    pub(super) fn text(&self) -> String {
        match &self.payload {
            Payload::Copied(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => BASE64_STANDARD.encode(bytes),
            },
            Payload::Omitted(_) => String::new(),
        }
    }

    /// Returns the approximate memory of the payload and the tags, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let payload = match &self.payload {
            Payload::Copied(bytes) => bytes.len(),
            Payload::Omitted(_) => 0,
        };
        let of_tag = |(name, value): &(String, String)| {
            size_of::<(String, String)>() + name.len() + value.len()
        };
        payload + self.tags.iter().map(of_tag).sum::<usize>()
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = match self {
            Self::Copied(bytes) => Data::of(bytes),
            Self::Omitted(bytes) => Data::Omitted(*bytes),
        };
        data.serialize(serializer)
    }
}

impl<'a> Data<'a> {
    fn of(payload: &'a [u8]) -> Self {
        let Ok(text) = str::from_utf8(payload) else {
            return Self::Bytes(payload);
        };
        // Receivers parse whole batches. A client must not stop them with data that their parser
        // refuses, such as 100,000 nested arrays, a number like 1e999 or half a surrogate pair. Our
        // own parser refuses them too, unless it skips values as it does for raw ones.
        let parsed = serde_json::from_str::<Value>(text);
        let is_ordinary = parsed.is_ok_and(|json| depth(&json) <= DEPTH_MAX);
        match serde_json::from_str(text) {
            Ok(json) if is_ordinary => Self::Json(json),
            _ => Self::Text(text),
        }
    }
}

/// Returns the number of arrays and objects that are within each other. The parser has limited it.
fn depth(json: &Value) -> usize {
    match json {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

fn as_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
}

fn as_map<S: Serializer>(tags: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(tags.len()))?;
    for (name, value) in tags {
        map.serialize_entry(name, value)?;
    }
    map.end()
}
