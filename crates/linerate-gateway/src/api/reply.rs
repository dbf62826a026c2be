//! What the server API answers.

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use linerate_broker::{BrokerError, Published};
use linerate_hub::{ClientInfo, Publication, channel::ChannelNameError};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    auth::{Revocation, RevocationError, Target},
    node::RevokeError,
};

/// What a method answers: `{"result":…}` or `{"error":…}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// It was not done.
    Error(ApiError),
    /// It was done.
    Result(Outcome),
}

/// Why a method was not carried out.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ApiError {
    /// As Centrifugo numbers it.
    pub code: u32,
    /// For people.
    pub message: String,
}

/// What came of a method.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// `broadcast`
    Broadcast {
        /// One for each channel.
        responses: Vec<Reply>,
    },
    /// `channels`
    Channels {
        /// By name.
        channels: BTreeMap<String, Subscribers>,
    },
    /// What has nothing to tell.
    Empty {},
    /// `history`
    History {
        /// What was asked for.
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
        /// By connection.
        presence: BTreeMap<String, ClientReply>,
    },
    /// `presence_stats`
    PresenceStats {
        /// Connections.
        num_clients: u64,
        /// Different users.
        num_users: u64,
    },
    /// `revocations`
    Revocations {
        /// Those in force.
        revocations: Vec<RevocationReply>,
    },
    /// `publish`
    Publish {
        /// Where it came to stand, if the broker says.
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// In which epoch.
        #[serde(skip_serializing_if = "Option::is_none")]
        epoch: Option<String>,
    },
}

/// A revocation.
#[derive(Debug, Serialize)]
pub struct RevocationReply {
    /// The token's `jti`, if it is about a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    /// The user, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    /// Before when tokens were issued that are meant, unless it is about a single one.
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_before: Option<u64>,
    /// When it ends, if it does.
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

/// How many are subscribed to a channel.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Subscribers {
    /// Connections.
    pub num_clients: u64,
}

/// A publication in a history.
#[derive(Debug, Serialize)]
pub struct PublicationReply {
    /// The payload, if it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    /// The payload in base64, if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    b64data: Option<String>,
    offset: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    info: Option<ClientReply>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tags: BTreeMap<String, String>,
}

/// Somebody.
#[derive(Debug, Serialize)]
pub struct ClientReply {
    user: String,
    client: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    conn_info: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chan_info: Option<Box<RawValue>>,
}

/// A node.
#[derive(Debug, Serialize)]
pub struct NodeReply {
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
    /// The service could not do it now.
    pub(super) fn internal(message: impl ToString) -> Self {
        Self::new(100, message)
    }

    /// What is asked makes no sense.
    pub(super) fn bad_request(message: impl ToString) -> Self {
        Self::new(107, message)
    }

    /// What is asked can't be understood.
    pub(super) fn malformed(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        Self::bad_request(format!(
            "request is malformed (line {line}, column {column})"
        ))
    }

    /// The channel, or the server, does not offer that.
    pub(super) fn not_available(message: impl ToString) -> Self {
        Self::new(108, message)
    }

    /// What is to be recovered is no longer there.
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
            BrokerError::PayloadTooLarge { .. } => Self::bad_request(error),
            _ => Self::internal(error),
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
            user: info.user.clone(),
            client: info.client.clone(),
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

/// Returns JSON as it stands; `None` for what is none.
fn json(bytes: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(std::str::from_utf8(bytes).ok()?.to_owned()).ok()
}
