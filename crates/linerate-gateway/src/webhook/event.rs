//! What happened to a client, as webhooks are told.

use std::{sync::Arc, time::SystemTime};

use linerate_hub::{ChannelName, ClientInfo};
use serde::Serialize;

use super::tracked::Parting;
use crate::{clock::milliseconds, protocol::dialect::DialectName};

/// Approximate memory of a queued event without its texts, in bytes.
const FRAME_BYTES: usize = 256;

/// An event in the queue of a webhook.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    time_ms: u64,
    happened: Happened,
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Happened {
    /// A client was admitted.
    Connected(Arc<ClientInfo>, &'static DialectName),
    /// A client that was admitted has left.
    Disconnected(Arc<ClientInfo>, Parting),
    /// A client has subscribed to a channel.
    Subscribed(Arc<ClientInfo>, ChannelName),
    /// The subscription of a client has ended.
    Unsubscribed(Arc<ClientInfo>, ChannelName),
}

/// An event as JSON.
#[derive(Debug, Serialize)]
pub(super) struct EventJson<'a> {
    seq: u64,
    time_ms: u64,
    event: &'static str,
    client: &'a str,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_bytes: Option<u64>,
}

impl Event {
    /// Creates an event that happens now.
    pub(super) fn now(happened: Happened) -> Self {
        Self {
            time_ms: milliseconds(SystemTime::now()),
            happened,
        }
    }

    pub(super) const fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the approximate memory of the event, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = match &self.happened {
            Happened::Connected(who, _) => who.bytes(),
            Happened::Disconnected(who, parting) => who.bytes() + parting.reason_bytes(),
            Happened::Subscribed(who, channel) | Happened::Unsubscribed(who, channel) => {
                who.bytes() + channel.as_str().len()
            }
        };
        FRAME_BYTES + texts
    }

    /// Returns the event as JSON, with its number in the queue.
    pub(super) fn to_json(&self, seq: u64) -> EventJson<'_> {
        let (event, who) = match &self.happened {
            Happened::Connected(who, _) => ("connected", who),
            Happened::Disconnected(who, _) => ("disconnected", who),
            Happened::Subscribed(who, _) => ("subscribed", who),
            Happened::Unsubscribed(who, _) => ("unsubscribed", who),
        };
        let mut json = EventJson {
            seq,
            time_ms: self.time_ms,
            event,
            client: &who.client,
            user: &who.user,
            channel: None,
            protocol: None,
            transport: None,
            code: None,
            reason: None,
            received_bytes: None,
            sent_bytes: None,
        };
        match &self.happened {
            Happened::Connected(_, (protocol, transport)) => {
                (json.protocol, json.transport) = (Some(*protocol), Some(*transport));
            }
            Happened::Disconnected(_, parting) => {
                json.received_bytes = Some(parting.received_bytes);
                json.sent_bytes = Some(parting.sent_bytes);
                if let Some((code, reason)) = &parting.closed {
                    (json.code, json.reason) = (Some(*code), Some(reason.as_str()));
                }
            }
            Happened::Subscribed(_, channel) | Happened::Unsubscribed(_, channel) => {
                json.channel = Some(channel.as_str());
            }
        }
        json
    }
}
