//! Decodes commands from JSON.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use linerate_hub::{Epoch, StreamPosition};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::protocol::{
    centrifuge::{CHANNEL_COMPACTION, FOSSIL},
    command::{Command, Connect, History, Request, Subscribe, TagsFilter},
    decode::{DecodeError, Emulation, Limits},
};

/// Decodes commands, one per line.
pub(crate) fn decode(frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let mut commands = Vec::new();
    let lines = frame.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
        if commands.len() == limits.commands_max {
            let commands_max = limits.commands_max;
            return Err(DecodeError::TooManyCommands { commands_max });
        }
        commands.push(decode_line(line, commands.len() + 1, limits)?);
    }
    Ok(commands)
}

/// Decodes the body of a request to `/emulation`. The frame is a string within the JSON.
pub(crate) fn decode_emulation(body: &[u8]) -> Result<Emulation, DecodeError> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(default)]
        node: String,
        #[serde(default)]
        session: String,
        data: String,
    }
    let wire: Wire = serde_json::from_slice(body).map_err(|error| malformed(1, &error))?;
    Ok(Emulation {
        node: wire.node,
        session: wire.session,
        frame: wire.data.into_bytes(),
    })
}

fn decode_line(line: &[u8], nth: usize, limits: &Limits) -> Result<Command, DecodeError> {
    let depth_max = limits.depth_max;
    if depth_of(line) > depth_max {
        return Err(DecodeError::TooDeep { nth, depth_max });
    }
    let wire: WireCommand<'_> =
        serde_json::from_slice(line).map_err(|error| malformed(nth, &error))?;
    let id = wire.id;
    let request = wire.request().ok_or(DecodeError::Json { nth, at: 0 })?;
    let needs_id = !matches!(request, Request::Pong | Request::Send { .. });
    if id == 0 && needs_id {
        return Err(DecodeError::MissingId { nth });
    }
    Ok(Command { id, request })
}

fn malformed(nth: usize, error: &serde_json::Error) -> DecodeError {
    DecodeError::Json {
        nth,
        at: error.column(),
    }
}

/// Returns the maximum number of arrays and objects open at once, ignoring whether brackets match.
pub(in crate::protocol) fn depth_of(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut is_string = false;
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match (is_string, byte) {
            (true, b'\\') => _ = bytes.next(),
            (_, b'"') => is_string = !is_string,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Keeps a JSON value verbatim, including `null`.
fn raw<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Copies the JSON, so that a publication does not keep the frame that it arrived in alive.
fn copied(raw: Option<&RawValue>) -> Option<Bytes> {
    raw.map(|raw| Bytes::copy_from_slice(raw.get().as_bytes()))
}

#[derive(Deserialize)]
struct WireCommand<'a> {
    #[serde(default)]
    id: u32,
    #[serde(borrow)]
    connect: Option<WireConnect<'a>>,
    #[serde(borrow)]
    subscribe: Option<WireSubscribe<'a>>,
    unsubscribe: Option<WireChannel>,
    #[serde(borrow)]
    publish: Option<WirePublish<'a>>,
    presence: Option<WireChannel>,
    presence_stats: Option<WireChannel>,
    history: Option<WireHistory>,
    ping: Option<WireEmpty>,
    #[serde(borrow)]
    send: Option<WireSend<'a>>,
    #[serde(borrow)]
    rpc: Option<WireRpc<'a>>,
    refresh: Option<WireRefresh>,
    sub_refresh: Option<WireSubRefresh>,
}

impl WireCommand<'_> {
    /// Returns the first request that is present, in the order of the protocol; `None` if its
    /// base64 is invalid.
    fn request(self) -> Option<Request> {
        if let Some(connect) = self.connect {
            return Some(Request::Connect(connect.into()));
        }
        if let Some(subscribe) = self.subscribe {
            return Some(subscribe.into());
        }
        if let Some(WireChannel { channel }) = self.unsubscribe {
            return Some(Request::Unsubscribe { channel });
        }
        if let Some(publish) = self.publish {
            return publish.request();
        }
        if let Some(WireChannel { channel }) = self.presence {
            return Some(Request::Presence { channel });
        }
        if let Some(WireChannel { channel }) = self.presence_stats {
            return Some(Request::PresenceStats { channel });
        }
        if let Some(history) = self.history {
            return Some(Request::History(history.into()));
        }
        if self.ping.is_some() {
            return Some(Request::Ping);
        }
        if let Some(send) = self.send {
            let data = copied(send.data).unwrap_or_default();
            return Some(Request::Send { data });
        }
        if let Some(WireRpc { method, data }) = self.rpc {
            let data = copied(data).unwrap_or_default();
            return Some(Request::Rpc { method, data });
        }
        if let Some(WireRefresh { token }) = self.refresh {
            return Some(Request::Refresh { token });
        }
        if let Some(sub_refresh) = self.sub_refresh {
            return Some(sub_refresh.into());
        }
        Some(match self.id {
            0 => Request::Pong,
            _ => Request::Unknown,
        })
    }
}

#[derive(Deserialize)]
struct WireConnect<'a> {
    #[serde(default)]
    token: String,
    #[serde(borrow, default, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
    #[serde(borrow, default)]
    subs: Option<std::collections::BTreeMap<String, WireSubscribe<'a>>>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    version: String,
}

impl From<WireConnect<'_>> for Connect {
    fn from(wire: WireConnect<'_>) -> Self {
        let subscriptions = wire.subs.unwrap_or_default().into_iter();
        let subscriptions = subscriptions.map(|(channel, wire)| Subscribe {
            channel,
            ..wire.into()
        });
        Self {
            token: wire.token,
            data: copied(wire.data),
            subscriptions: subscriptions.collect(),
            name: wire.name,
            version: wire.version,
            namespace: None,
        }
    }
}

#[derive(Deserialize)]
struct WireSubscribe<'a> {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    token: String,
    #[serde(default)]
    recover: bool,
    #[serde(default)]
    epoch: String,
    #[serde(default)]
    offset: u64,
    #[serde(borrow, default, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
    #[serde(default)]
    positioned: bool,
    #[serde(default)]
    recoverable: bool,
    #[serde(default)]
    join_leave: bool,
    #[serde(default)]
    delta: String,
    #[serde(default)]
    flag: i64,
    tf: Option<WireTagsFilter>,
    #[serde(default, rename = "type")]
    kind: i32,
    filter: Option<String>,
    batch_interval_ms: Option<u32>,
    conflate: Option<String>,
}

impl From<WireSubscribe<'_>> for Subscribe {
    fn from(wire: WireSubscribe<'_>) -> Self {
        let position = StreamPosition {
            epoch: Epoch::new(&wire.epoch),
            offset: wire.offset,
        };
        let interval = wire.batch_interval_ms.map(u64::from);
        Self {
            channel: wire.channel,
            token: wire.token,
            recover: wire.recover.then_some(position),
            data: copied(wire.data),
            is_positioned: wire.positioned,
            is_recoverable: wire.recoverable,
            with_join_leave: wire.join_leave,
            with_deltas: wire.delta == FOSSIL,
            with_channel_id: wire.flag & CHANNEL_COMPACTION != 0,
            tags_filter: wire.tf.map(Into::into),
            filter: wire.filter,
            batch_interval: interval.map(Duration::from_millis),
            conflate: wire.conflate,
        }
    }
}

impl From<WireSubscribe<'_>> for Request {
    fn from(wire: WireSubscribe<'_>) -> Self {
        // Types other than streams are features that linerate does not have.
        if wire.kind != 0 {
            return Self::Unknown;
        }
        Self::Subscribe(wire.into())
    }
}

#[derive(Deserialize)]
struct WireTagsFilter {
    #[serde(default)]
    op: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    cmp: String,
    #[serde(default)]
    val: String,
    vals: Option<Vec<String>>,
    nodes: Option<Vec<WireTagsFilter>>,
}

impl From<WireTagsFilter> for TagsFilter {
    fn from(wire: WireTagsFilter) -> Self {
        let nodes = wire.nodes.unwrap_or_default().into_iter();
        Self {
            operation: wire.op,
            key: wire.key,
            comparison: wire.cmp,
            value: wire.val,
            values: wire.vals.unwrap_or_default(),
            nodes: nodes.map(Into::into).collect(),
        }
    }
}

#[derive(Deserialize)]
struct WirePublish<'a> {
    #[serde(default)]
    channel: String,
    #[serde(borrow, default, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
    b64data: Option<String>,
    #[serde(default, rename = "type")]
    kind: i32,
}

impl WirePublish<'_> {
    fn request(self) -> Option<Request> {
        if self.kind != 0 {
            return Some(Request::Unknown);
        }
        let data = match self.b64data {
            Some(base64) => STANDARD.decode(base64).ok()?.into(),
            None => copied(self.data).unwrap_or_default(),
        };
        let channel = self.channel;
        Some(Request::Publish { channel, data })
    }
}

#[derive(Deserialize)]
struct WireHistory {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    limit: i32,
    since: Option<WirePosition>,
    #[serde(default)]
    reverse: bool,
}

#[derive(Deserialize)]
struct WirePosition {
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    epoch: String,
}

impl From<WireHistory> for History {
    fn from(wire: WireHistory) -> Self {
        let since = wire.since.map(|since| StreamPosition {
            epoch: Epoch::new(&since.epoch),
            offset: since.offset,
        });
        Self {
            channel: wire.channel,
            limit: usize::try_from(wire.limit).ok(),
            since,
            is_reverse: wire.reverse,
        }
    }
}

#[derive(Deserialize)]
struct WireChannel {
    #[serde(default)]
    channel: String,
}

#[derive(Deserialize)]
struct WireEmpty {}

#[derive(Deserialize)]
struct WireSend<'a> {
    #[serde(borrow, default, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireRpc<'a> {
    #[serde(default)]
    method: String,
    #[serde(borrow, default, deserialize_with = "raw")]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct WireRefresh {
    #[serde(default)]
    token: String,
}

#[derive(Deserialize)]
struct WireSubRefresh {
    #[serde(default)]
    channel: String,
    #[serde(default)]
    token: String,
    #[serde(default, rename = "type")]
    kind: i32,
}

impl From<WireSubRefresh> for Request {
    fn from(wire: WireSubRefresh) -> Self {
        if wire.kind != 0 {
            return Self::Unknown;
        }
        Self::SubRefresh {
            channel: wire.channel,
            token: wire.token,
        }
    }
}
