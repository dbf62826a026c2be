//! Messages that only Phoenix clients get.

use std::borrow::Cow;

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo};

use crate::protocol::command::{PhoenixPlace, PhoenixRef};

/// A message that only Phoenix clients get.
#[derive(Clone, Debug)]
pub(crate) enum PhoenixMessage {
    /// The client is not in the topic any more.
    Ended {
        topic: ChannelName,
        /// The reference of the join that has ended.
        join_ref: Option<PhoenixRef>,
        /// True if the client is to join again.
        is_error: bool,
    },
    /// Who is in the topic.
    Presence {
        topic: ChannelName,
        /// The reference of the join of the client.
        join_ref: Option<PhoenixRef>,
        clients: Vec<ClientInfo>,
    },
    /// Answers a message: with a response, or with the reason why it failed.
    Reply {
        place: PhoenixPlace,
        result: Result<Bytes, PhoenixError>,
    },
}

/// Why a message failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PhoenixError {
    /// The code, if it is one of the gateway or of a backend.
    pub(crate) code: Option<u32>,
    /// A short description for people.
    pub(crate) reason: Cow<'static, str>,
}
