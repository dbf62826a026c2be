//! Encodes replies and pushes as Protobuf.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_hub::{ClientInfo, Payloads, Publication};
use prost::Message;

use super::schema;
use crate::protocol::{
    codes::ClientError,
    reply::{
        Answer, Connected, HistoryPage, Push, Reply, ServerMessage, Subscribed, whole_seconds,
    },
};

/// Appends `message`, preceded by its length.
pub(in crate::protocol) fn message(message: &ServerMessage, out: &mut Vec<u8>) {
    let reply = match message {
        ServerMessage::Ping => schema::Reply::default(),
        ServerMessage::Push(push) => schema::Reply {
            push: Some(push.into()),
            ..Default::default()
        },
        ServerMessage::Phoenix(_) | ServerMessage::Pusher(_) | ServerMessage::SocketIo(_) => return,
        ServerMessage::Reply(reply) => reply.into(),
    };
    reply
        .encode_length_delimited(out)
        .expect("a Vec grows as needed");
}

impl From<&Reply> for schema::Reply {
    fn from(reply: &Reply) -> Self {
        let mut wire = match &reply.result {
            Ok(answer) => answer.into(),
            Err(error) => Self {
                error: Some(error.into()),
                ..Self::default()
            },
        };
        wire.id = reply.id;
        wire
    }
}

impl From<&Answer> for schema::Reply {
    fn from(answer: &Answer) -> Self {
        let mut wire = Self::default();
        match answer {
            Answer::Connect(connected) => wire.connect = Some(connected.into()),
            Answer::History(page) => wire.history = Some(page.into()),
            Answer::Ping => wire.ping = Some(schema::Empty {}),
            Answer::Presence(clients) => {
                let presence = clients
                    .iter()
                    .map(|info| (info.client.to_string(), info.into()));
                wire.presence = Some(schema::PresenceResult {
                    presence: presence.collect(),
                });
            }
            Answer::PresenceStats { clients, users } => {
                wire.presence_stats = Some(schema::PresenceStatsResult {
                    num_clients: *clients,
                    num_users: *users,
                });
            }
            Answer::Publish => wire.publish = Some(schema::Empty {}),
            Answer::Refresh(refreshed) => {
                let (expires, ttl) = expiry(refreshed.ttl);
                wire.refresh = Some(schema::RefreshResult {
                    client: refreshed.client.clone(),
                    version: refreshed.version.clone(),
                    expires,
                    ttl,
                });
            }
            Answer::Rpc { data } => {
                wire.rpc = Some(schema::RpcResult { data: data.clone() });
            }
            Answer::SubRefresh { ttl } => {
                let (expires, ttl) = expiry(*ttl);
                wire.sub_refresh = Some(schema::SubRefreshResult { expires, ttl });
            }
            Answer::Subscribe(subscribed) => wire.subscribe = Some(subscribed.into()),
            Answer::Unsubscribe => wire.unsubscribe = Some(schema::Empty {}),
        }
        wire
    }
}

impl From<&Push> for schema::Push {
    fn from(push: &Push) -> Self {
        let mut wire = Self::default();
        match push {
            Push::Disconnect(disconnect) => {
                wire.disconnect = Some(schema::Disconnect {
                    code: disconnect.code.into(),
                    reason: disconnect.reason.clone().into_owned(),
                    reconnect: disconnect.is_reconnect(),
                });
            }
            Push::Join { channel, info } => {
                wire.channel = channel.as_str().into();
                wire.join = Some(presence(info));
            }
            Push::Leave { channel, info } => {
                wire.channel = channel.as_str().into();
                wire.leave = Some(presence(info));
            }
            Push::Subscribe {
                channel,
                subscribed,
            } => {
                wire.channel = channel.as_str().into();
                wire.subscribe = Some(subscribed.into());
            }
            Push::Unsubscribe {
                channel,
                unsubscribe,
            } => {
                wire.channel = channel.as_str().into();
                wire.unsubscribe = Some(schema::Unsubscribe {
                    code: unsubscribe.code,
                    reason: unsubscribe.reason.clone().into_owned(),
                });
            }
        }
        wire
    }
}

impl From<&ClientError> for schema::Error {
    fn from(error: &ClientError) -> Self {
        Self {
            code: error.code,
            message: error.message.clone().into_owned(),
            temporary: error.is_temporary,
        }
    }
}

impl From<&Connected> for schema::ConnectResult {
    fn from(connected: &Connected) -> Self {
        let (expires, ttl) = expiry(connected.ttl);
        let subs = connected.subscriptions.iter();
        let subs = subs.map(|(channel, subscribed)| (channel.as_str().into(), subscribed.into()));
        Self {
            client: connected.client.clone(),
            version: connected.version.clone(),
            expires,
            ttl,
            data: connected.data.clone().unwrap_or_default(),
            subs: subs.collect(),
            ping: connected.ping_interval.map_or(0, whole_seconds),
            pong: connected.wants_pong,
            session: connected.session.clone(),
            node: connected.node.clone(),
        }
    }
}

impl From<&Subscribed> for schema::SubscribeResult {
    fn from(subscribed: &Subscribed) -> Self {
        let (expires, ttl) = expiry(subscribed.ttl);
        let (epoch, offset) = position(subscribed);
        let recovery = subscribed.recovery.as_ref();
        let publications = recovery.map_or(&[][..], |recovery| &recovery.publications);
        Self {
            expires,
            ttl,
            recoverable: subscribed.is_recoverable,
            epoch,
            publications: subscribed
                .payloads()
                .of(publications)
                .map(Into::into)
                .collect(),
            recovered: recovery.is_some_and(|recovery| recovery.is_recovered),
            offset,
            positioned: subscribed.is_positioned,
            data: subscribed.data.clone().unwrap_or_default(),
            was_recovering: recovery.is_some(),
            delta: subscribed.with_deltas,
            id: subscribed.channel_id.unwrap_or(0).into(),
        }
    }
}

impl From<&Subscribed> for schema::Subscribe {
    fn from(subscribed: &Subscribed) -> Self {
        let (epoch, offset) = position(subscribed);
        Self {
            recoverable: subscribed.is_recoverable,
            epoch,
            offset,
            positioned: subscribed.is_positioned,
            data: subscribed.data.clone().unwrap_or_default(),
        }
    }
}

impl From<&HistoryPage> for schema::HistoryResult {
    fn from(page: &HistoryPage) -> Self {
        Self {
            publications: Payloads::Full
                .of(&page.publications)
                .map(Into::into)
                .collect(),
            epoch: page.newest.epoch.as_str().into(),
            offset: page.newest.offset,
        }
    }
}

impl From<(&Publication, Option<Bytes>)> for schema::Publication {
    /// Converts a publication whose payload the delta, if there is one, replaces.
    fn from((publication, delta): (&Publication, Option<Bytes>)) -> Self {
        Self {
            delta: delta.is_some(),
            data: delta.unwrap_or_else(|| publication.payload().clone()),
            info: publication.info().map(Into::into),
            offset: publication.offset(),
            tags: publication.tags().iter().cloned().collect(),
            channel: publication
                .source()
                .map_or_else(String::new, |source| source.as_str().into()),
        }
    }
}

impl From<&ClientInfo> for schema::ClientInfo {
    fn from(info: &ClientInfo) -> Self {
        let bytes = |json: &Option<Arc<[u8]>>| {
            let json = json.as_deref().map(Bytes::copy_from_slice);
            json.unwrap_or_default()
        };
        Self {
            user: info.user.to_string(),
            client: info.client.to_string(),
            conn_info: bytes(&info.connection),
            chan_info: bytes(&info.channel),
        }
    }
}

fn presence(info: &ClientInfo) -> schema::Presence {
    schema::Presence {
        info: Some(info.into()),
    }
}

fn expiry(ttl: Option<Duration>) -> (bool, u32) {
    (ttl.is_some(), ttl.map_or(0, whole_seconds))
}

fn position(subscribed: &Subscribed) -> (String, u64) {
    let position = subscribed.position.as_ref();
    position.map_or_else(Default::default, |position| {
        (position.epoch.as_str().into(), position.offset)
    })
}
