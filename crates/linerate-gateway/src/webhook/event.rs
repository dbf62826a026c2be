//! What happened to a client, as webhooks are told.

use std::{sync::Arc, time::SystemTime};

use linerate_hub::{ChannelName, ClientInfo};
use serde::{Serialize, Serializer};

use super::tracked::Parting;
use crate::{clock::milliseconds, config::WebhookEvent};

/// Approximate memory of a queued event without its texts, in bytes.
const FRAME_BYTES: usize = 256;

/// An event in the queue of a webhook.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    time_ms: u64,
    who: Arc<ClientInfo>,
    happened: Happened,
}

/// What happened to a client. The names are those of [`WebhookEvent`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Happened {
    /// It was admitted.
    Connected {
        protocol: &'static str,
        transport: &'static str,
    },
    /// It was admitted and has left.
    Disconnected(Parting),
    /// It has subscribed to a channel.
    Subscribed {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
    /// Its subscription has ended.
    Unsubscribed {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
}

/// An event as JSON.
#[derive(Debug, Serialize)]
pub(super) struct EventJson<'a> {
    seq: u64,
    time_ms: u64,
    client: &'a str,
    user: &'a str,
    #[serde(flatten)]
    happened: &'a Happened,
}

impl Event {
    /// Creates an event that happens now.
    pub(super) fn now(who: Arc<ClientInfo>, happened: Happened) -> Self {
        Self {
            time_ms: milliseconds(SystemTime::now()),
            who,
            happened,
        }
    }

    pub(super) const fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the approximate memory of the event, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let texts = match &self.happened {
            Happened::Disconnected(parting) => parting.reason_bytes(),
            happened => happened
                .channel()
                .map_or(0, |channel| channel.as_str().len()),
        };
        FRAME_BYTES + self.who.bytes() + texts
    }

    /// Returns the event as JSON, with its number in the queue.
    pub(super) fn to_json(&self, seq: u64) -> EventJson<'_> {
        EventJson {
            seq,
            time_ms: self.time_ms,
            client: &self.who.client,
            user: &self.who.user,
            happened: &self.happened,
        }
    }
}

impl Happened {
    /// Returns the kind of event.
    pub(super) const fn kind(&self) -> WebhookEvent {
        match self {
            Self::Connected { .. } => WebhookEvent::Connected,
            Self::Disconnected(_) => WebhookEvent::Disconnected,
            Self::Subscribed { .. } => WebhookEvent::Subscribed,
            Self::Unsubscribed { .. } => WebhookEvent::Unsubscribed,
        }
    }

    /// Returns the channel that the event is about, if any.
    pub(super) const fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Connected { .. } | Self::Disconnected(_) => None,
            Self::Subscribed { channel } | Self::Unsubscribed { channel } => Some(channel),
        }
    }
}

fn as_text<S: Serializer>(channel: &ChannelName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(channel.as_str())
}
