//! Decodes commands from Protobuf.

use bytes::Bytes;
use linerate_hub::{Epoch, StreamPosition};
use prost::Message;

use super::schema;
use crate::protocol::{
    centrifuge::{CHANNEL_COMPACTION, FOSSIL},
    command::{Command, Connect, History, Request, Subscribe, TagsFilter},
    decode::{DecodeError, Emulation, Limits},
};

/// Decodes commands, each preceded by its length.
pub(crate) fn decode(frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let mut commands = Vec::new();
    let mut rest = frame;
    while !rest.is_empty() {
        if commands.len() == limits.commands_max {
            let commands_max = limits.commands_max;
            return Err(DecodeError::TooManyCommands { commands_max });
        }
        commands.push(decode_one(&mut rest, commands.len() + 1)?);
    }
    Ok(commands)
}

/// Decodes the body of a request to `/emulation`.
pub(crate) fn decode_emulation(body: &[u8]) -> Result<Emulation, DecodeError> {
    let nth = 1;
    let wire = schema::EmulationRequest::decode(body).map_err(|_| DecodeError::Protobuf { nth })?;
    Ok(Emulation {
        node: wire.node,
        session: wire.session,
        frame: wire.data.into(),
    })
}

// Byte fields are copied because they are read from a slice. A publication therefore does not keep
// the frame that it arrived in alive.
fn decode_one(rest: &mut &[u8], nth: usize) -> Result<Command, DecodeError> {
    let malformed = DecodeError::Protobuf { nth };
    let length = prost::decode_length_delimiter(&mut *rest).map_err(|_| malformed)?;
    let (message, behind) = rest.split_at_checked(length).ok_or(malformed)?;
    *rest = behind;
    let wire = schema::Command::decode(message).map_err(|_| malformed)?;
    let id = wire.id;
    let request = request(wire);
    let needs_id = !matches!(request, Request::Pong | Request::Send { .. });
    if id == 0 && needs_id {
        return Err(DecodeError::MissingId { nth });
    }
    Ok(Command { id, request })
}

/// Returns the first request that is present, in the order of the protocol.
fn request(wire: schema::Command) -> Request {
    if let Some(connect) = wire.connect {
        return Request::Connect(connect.into());
    }
    if let Some(subscribe) = wire.subscribe {
        return subscribe.into();
    }
    if let Some(schema::ChannelRequest { channel }) = wire.unsubscribe {
        return Request::Unsubscribe { channel };
    }
    if let Some(publish) = wire.publish {
        return publish.into();
    }
    if let Some(schema::ChannelRequest { channel }) = wire.presence {
        return Request::Presence { channel };
    }
    if let Some(schema::ChannelRequest { channel }) = wire.presence_stats {
        return Request::PresenceStats { channel };
    }
    if let Some(history) = wire.history {
        return Request::History(history.into());
    }
    if wire.ping.is_some() {
        return Request::Ping;
    }
    if let Some(schema::SendRequest { data }) = wire.send {
        return Request::Send { data };
    }
    if let Some(schema::RpcRequest { method, data }) = wire.rpc {
        return Request::Rpc { method, data };
    }
    if let Some(schema::RefreshRequest { token }) = wire.refresh {
        return Request::Refresh { token };
    }
    if let Some(sub_refresh) = wire.sub_refresh {
        return sub_refresh.into();
    }
    match wire.id {
        0 => Request::Pong,
        _ => Request::Unknown,
    }
}

/// Converts empty bytes to `None`: Protobuf does not distinguish the two.
fn some(bytes: Bytes) -> Option<Bytes> {
    (!bytes.is_empty()).then_some(bytes)
}

impl From<schema::ConnectRequest> for Connect {
    fn from(wire: schema::ConnectRequest) -> Self {
        let subscriptions = wire.subs.into_iter().map(|(channel, wire)| Subscribe {
            channel,
            ..wire.into()
        });
        Self {
            token: wire.token,
            data: some(wire.data),
            subscriptions: subscriptions.collect(),
            name: wire.name,
            version: wire.version,
            namespace: None,
        }
    }
}

impl From<schema::SubscribeRequest> for Subscribe {
    fn from(wire: schema::SubscribeRequest) -> Self {
        let position = StreamPosition {
            epoch: Epoch::new(&wire.epoch),
            offset: wire.offset,
        };
        Self {
            channel: wire.channel,
            token: wire.token,
            recover: wire.recover.then_some(position),
            data: some(wire.data),
            is_positioned: wire.positioned,
            is_recoverable: wire.recoverable,
            with_join_leave: wire.join_leave,
            with_deltas: wire.delta == FOSSIL,
            with_channel_id: wire.flag & CHANNEL_COMPACTION != 0,
            tags_filter: wire.tags_filter.map(Into::into),
            ..Self::default()
        }
    }
}

impl From<schema::SubscribeRequest> for Request {
    fn from(wire: schema::SubscribeRequest) -> Self {
        // Types other than streams are features that linerate does not have.
        if wire.kind != 0 {
            return Self::Unknown;
        }
        Self::Subscribe(wire.into())
    }
}

impl From<schema::FilterNode> for TagsFilter {
    fn from(wire: schema::FilterNode) -> Self {
        Self {
            operation: wire.op,
            key: wire.key,
            comparison: wire.cmp,
            value: wire.val,
            values: wire.vals,
            nodes: wire.nodes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<schema::PublishRequest> for Request {
    fn from(wire: schema::PublishRequest) -> Self {
        if wire.kind != 0 {
            return Self::Unknown;
        }
        Self::Publish {
            channel: wire.channel,
            data: wire.data,
        }
    }
}

impl From<schema::HistoryRequest> for History {
    fn from(wire: schema::HistoryRequest) -> Self {
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

impl From<schema::SubRefreshRequest> for Request {
    fn from(wire: schema::SubRefreshRequest) -> Self {
        if wire.kind != 0 {
            return Self::Unknown;
        }
        Self::SubRefresh {
            channel: wire.channel,
            token: wire.token,
        }
    }
}
