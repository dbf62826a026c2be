//! Decodes commands from Protobuf.

use bytes::Bytes;
use linerate_hub::{Epoch, StreamPosition};
use prost::Message;

use super::schema;
use crate::protocol::{
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
    use schema::{ChannelRequest, Command, Empty, RefreshRequest, RpcRequest, SendRequest};
    match wire {
        Command {
            connect: Some(connect),
            ..
        } => Request::Connect(connect.into()),
        Command {
            subscribe: Some(subscribe),
            ..
        } => subscribe.into(),
        Command {
            unsubscribe: Some(ChannelRequest { channel }),
            ..
        } => Request::Unsubscribe { channel },
        Command {
            publish: Some(publish),
            ..
        } => publish.into(),
        Command {
            presence: Some(ChannelRequest { channel }),
            ..
        } => Request::Presence { channel },
        Command {
            presence_stats: Some(ChannelRequest { channel }),
            ..
        } => Request::PresenceStats { channel },
        Command {
            history: Some(history),
            ..
        } => Request::History(history.into()),
        Command {
            ping: Some(Empty {}),
            ..
        } => Request::Ping,
        Command {
            send: Some(SendRequest { data }),
            ..
        } => Request::Send { data },
        Command {
            rpc: Some(RpcRequest { method, data }),
            ..
        } => Request::Rpc { method, data },
        Command {
            refresh: Some(RefreshRequest { token }),
            ..
        } => Request::Refresh { token },
        Command {
            sub_refresh: Some(sub_refresh),
            ..
        } => sub_refresh.into(),
        Command { id: 0, .. } => Request::Pong,
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
