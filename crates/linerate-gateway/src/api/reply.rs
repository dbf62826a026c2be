//! The replies of the server API.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_broker::{BrokerError, Published};
use linerate_hub::{ClientInfo, Publication, channel::ChannelNameError};
use linerate_kafka::ProduceError;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    auth::{Revocation, RevocationError, Target},
    node::{PublishError, RevokeError},
};

/// The reply of a method: `{"result":…}` or `{"error":…}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Reply {
    /// The method failed.
    Error(ApiError),
    /// The method succeeded.
    Result(Outcome),
}

/// Why a method failed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct ApiError {
    /// The error code, as in Centrifugo.
    pub code: u32,
    /// A description for people.
    pub message: String,
}

/// The result of a method.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Outcome {
    /// `broadcast`
    Broadcast {
        /// One reply for each channel, in the order of the request.
        responses: Vec<Reply>,
    },
    /// `channels`
    Channels {
        /// The channels by name.
        channels: BTreeMap<String, Subscribers>,
    },
    /// The result of methods that return nothing.
    Empty {},
    /// `history`
    History {
        /// The requested publications.
        publications: Vec<PublicationReply>,
        /// The newest offset.
        offset: u64,
        /// The epoch.
        epoch: String,
    },
    /// `info`
    Info {
        /// All nodes.
        nodes: Vec<NodeReply>,
    },
    /// `presence`
    Presence {
        /// The clients by their IDs.
        presence: BTreeMap<String, ClientReply>,
    },
    /// `presence_stats`
    PresenceStats {
        /// Number of connections.
        num_clients: u64,
        /// Number of distinct users.
        num_users: u64,
    },
    /// `revocations`
    Revocations {
        /// The revocations in force.
        revocations: Vec<RevocationReply>,
    },
    /// `publish`
    Publish {
        /// The offset of the publication, if the broker assigns one.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// The epoch of the offset.
        #[serde(skip_serializing_if = "Option::is_none")]
        epoch: Option<String>,
    },
}

/// A revocation.
#[derive(Debug, Serialize)]
pub(crate) struct RevocationReply {
    /// The `jti` of the token, if the revocation applies to a single token.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    /// The user, if the revocation applies to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Only tokens issued before this time, in seconds since 1970, are revoked. Absent if the
    /// revocation applies to a single token.
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_before: Option<u64>,
    /// When the revocation ends, in seconds since 1970, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_at: Option<u64>,
}

impl From<Revocation> for RevocationReply {
    fn from(revocation: Revocation) -> Self {
        let issued_before = Some(revocation.issued_before);
        let (uid, user, issued_before) = match revocation.target {
            Target::All => (None, None, issued_before),
            Target::Token(id) => (Some(id), None, None),
            Target::User(name) => (None, Some(name), issued_before),
        };
        Self {
            uid,
            user,
            issued_before,
            expire_at: revocation.expires_at,
        }
    }
}

/// The number of subscribers of a channel.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Subscribers {
    /// Number of connections.
    pub num_clients: u64,
}

/// A publication in a history.
#[derive(Debug, Serialize)]
pub(crate) struct PublicationReply {
    /// The payload, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    /// The payload in base64, if it is not JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    b64data: Option<String>,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<ClientReply>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

/// Information about a client.
#[derive(Debug, Serialize)]
pub(crate) struct ClientReply {
    user: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    conn_info: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chan_info: Option<Box<RawValue>>,
}

/// A node.
#[derive(Debug, Serialize)]
pub(crate) struct NodeReply {
    uid: String,
    name: String,
    version: String,
    num_clients: u64,
    num_users: u64,
    num_subs: u64,
    num_channels: u64,
    uptime: u64,
}

impl ApiError {
    /// The request cannot be fulfilled at the moment.
    pub(super) fn internal(message: impl ToString) -> Self {
        Self::new(100, message)
    }

    /// The request is invalid.
    pub(super) fn bad_request(message: impl ToString) -> Self {
        Self::new(107, message)
    }

    /// The request cannot be parsed.
    pub(super) fn malformed(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self::bad_request(format!(
            "request is malformed (line {line}, column {column})"
        ))
    }

    /// The feature is not enabled for the channel or on this server.
    pub(super) fn not_available(message: impl ToString) -> Self {
        Self::new(108, message)
    }

    /// The requested position can no longer be recovered.
    pub(super) fn unrecoverable(message: impl ToString) -> Self {
        Self::new(112, message)
    }

    pub(super) fn new(code: u32, message: impl ToString) -> Self {
        let message = message.to_string();
        Self { code, message }
    }
}

impl From<RevokeError> for ApiError {
    fn from(error: RevokeError) -> Self {
        match error {
            RevokeError::Broker(error) => error.into(),
            RevokeError::Revocation(error @ RevocationError::TooMany { .. }) => {
                Self::new(106, error)
            }
            RevokeError::Revocation(error) => Self::bad_request(error),
        }
    }
}

impl From<BrokerError> for ApiError {
    fn from(error: BrokerError) -> Self {
        match error {
            BrokerError::NoHistory => Self::not_available(error),
            BrokerError::PresenceTooLarge { .. } => Self::new(106, error),
            BrokerError::PayloadTooLarge { .. } => Self::bad_request(error),
            _ => Self::internal(error),
        }
    }
}

impl From<PublishError> for ApiError {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Broker(error) => error.into(),
            PublishError::Kafka(error @ ProduceError::TooLarge { .. }) => Self::bad_request(error),
            PublishError::Kafka(error) => Self::internal(error),
        }
    }
}

impl From<ChannelNameError> for ApiError {
    fn from(error: ChannelNameError) -> Self {
        Self::bad_request(error)
    }
}

impl From<Result<Outcome, ApiError>> for Reply {
    fn from(result: Result<Outcome, ApiError>) -> Self {
        match result {
            Ok(outcome) => Self::Result(outcome),
            Err(error) => Self::Error(error),
        }
    }
}

impl From<Published> for Outcome {
    fn from(published: Published) -> Self {
        let position = published.position;
        Self::Publish {
            offset: position.as_ref().map(|position| position.offset),
            epoch: position.map(|position| position.epoch.to_string()),
        }
    }
}

impl From<&Publication> for PublicationReply {
    fn from(publication: &Publication) -> Self {
        let data = publication.line().and_then(|line| json(line));
        let b64data = data
            .is_none()
            .then(|| BASE64_STANDARD.encode(publication.payload()));
        Self {
            data,
            b64data,
            offset: publication.offset(),
            info: publication.info().map(ClientReply::from),
            tags: publication.tags().iter().cloned().collect(),
        }
    }
}

impl From<&ClientInfo> for ClientReply {
    fn from(info: &ClientInfo) -> Self {
        Self {
            user: info.user.to_string(),
            client: info.client.to_string(),
            conn_info: info.connection.as_deref().and_then(json),
            chan_info: info.channel.as_deref().and_then(json),
        }
    }
}

impl From<crate::node::NodeInfo> for NodeReply {
    fn from(info: crate::node::NodeInfo) -> Self {
        Self {
            uid: info.id,
            name: info.name,
            version: info.version,
            num_clients: info.clients,
            num_users: info.users,
            num_subs: info.subscriptions,
            num_channels: info.channels,
            uptime: info.uptime_s,
        }
    }
}

/// Returns the bytes as raw JSON; `None` if they are not UTF-8 JSON.
fn json(bytes: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(std::str::from_utf8(bytes).ok()?.to_owned()).ok()
}
