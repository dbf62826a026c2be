//! Triggers events.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use linerate_broker::Publish;
use linerate_hub::ChannelName;
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    PusherError,
    channels::{Wanted, info, name},
};
use crate::{
    config::PusherOptions,
    node::Node,
    producer::Author,
    protocol::{
        event_name,
        pusher::{self, EVENT_BYTES_MAX},
    },
};

/// The maximum number of channels of an event.
const CHANNELS_MAX: usize = 100;

/// The maximum number of events in a batch.
const EVENTS_MAX: usize = 10;

/// The maximum number of concurrent publications of an event.
const AT_ONCE: usize = 64;

#[derive(Deserialize)]
struct WireEvent {
    name: String,
    data: Box<RawValue>,
    #[serde(default)]
    channel: Option<String>,
    #[serde(default)]
    channels: Vec<String>,
    #[serde(default)]
    socket_id: Option<String>,
    #[serde(default)]
    info: Option<String>,
}

#[derive(Deserialize)]
struct WireBatch {
    batch: Vec<WireEvent>,
}

/// An event that was checked.
#[derive(Debug)]
struct Event {
    name: String,
    data: Bytes,
    channels: Vec<ChannelName>,
    except: Option<String>,
    wanted: Wanted,
}

/// Triggers an event in one channel or several.
pub(super) async fn trigger(
    node: &Arc<Node>,
    options: &PusherOptions,
    body: &[u8],
) -> Result<Value, PusherError> {
    let event = parse::<WireEvent>(body)?.check(node, options)?;
    publish(node, &event).await?;
    if event.wanted.is_empty() {
        return Ok(json!({}));
    }
    let mut channels = Map::new();
    for channel in &event.channels {
        let info = info(node, channel, event.wanted).await?;
        channels.insert(channel.to_string(), info.into());
    }
    Ok(json!({ "channels": channels }))
}

/// Triggers several events, in their order. If one of them is not valid, none is triggered.
pub(super) async fn trigger_batch(
    node: &Arc<Node>,
    options: &PusherOptions,
    body: &[u8],
) -> Result<Value, PusherError> {
    let WireBatch { batch } = parse(body)?;
    let (count, count_max) = (batch.len(), EVENTS_MAX);
    if count > count_max {
        return Err(PusherError::Batch { count, count_max });
    }
    let events = batch.into_iter().map(|event| event.check(node, options));
    let events: Vec<Event> = events.collect::<Result<_, _>>()?;
    let mut replies = Vec::new();
    for event in &events {
        publish(node, event).await?;
        let mut reply = Map::new();
        if let [channel] = &event.channels[..] {
            reply = info(node, channel, event.wanted).await?;
        }
        replies.push(reply);
    }
    Ok(match events.iter().any(|event| !event.wanted.is_empty()) {
        true => json!({ "batch": replies }),
        false => json!({}),
    })
}

fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, PusherError> {
    serde_json::from_slice(body).map_err(|error| PusherError::Malformed(error.to_string()))
}

async fn publish(node: &Arc<Node>, event: &Event) -> Result<(), PusherError> {
    stream::iter(event.channels.clone())
        .map(|channel| async move {
            let publish = Publish {
                payload: event.data.clone(),
                info: None,
                tags: event_name::tags(&event.name, event.except.as_deref()),
                idempotency_key: None,
                options: node.namespaces.current().options(&channel).stream(),
            };
            let published = node.publish(&channel, publish, Author::Application);
            published.await.map(drop)
        })
        .buffered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    Ok(())
}

impl WireEvent {
    fn check(self, node: &Node, options: &PusherOptions) -> Result<Event, PusherError> {
        let bytes_max = EVENT_BYTES_MAX;
        if !(1..=bytes_max).contains(&self.name.len()) || pusher::is_reserved(&self.name) {
            return Err(PusherError::Name { bytes_max });
        }
        let names = self.channel.into_iter().chain(self.channels);
        let names: Vec<String> = names.collect();
        let (count, count_max) = (names.len(), CHANNELS_MAX);
        if !(1..=count_max).contains(&count) {
            return Err(PusherError::Channels { count, count_max });
        }
        let data = text(&self.data)?;
        let (bytes, bytes_max) = (data.len(), options.event_bytes_max);
        if bytes > bytes_max {
            return Err(PusherError::Data { bytes, bytes_max });
        }
        let socket_id = self.socket_id.filter(|id| !id.is_empty());
        if socket_id.as_deref().is_some_and(|id| !is_socket_id(id)) {
            return Err(PusherError::SocketId);
        }
        let channels = names.iter().map(|channel| name(node, channel));
        Ok(Event {
            name: self.name,
            data: data.into(),
            channels: channels.collect::<Result<_, _>>()?,
            except: socket_id,
            wanted: Wanted::of(self.info.as_deref().unwrap_or_default()),
        })
    }
}

/// Returns the data of an event: the text of a string, and other JSON as it is.
fn text(data: &RawValue) -> Result<String, PusherError> {
    match data.get() {
        string if string.starts_with('"') => parse(string.as_bytes()),
        json => Ok(json.to_owned()),
    }
}

fn is_socket_id(id: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = id.split_once('.').filter(|_| id.len() <= 64);
    parts.is_some_and(|(first, second)| is_number(first) && is_number(second))
}
