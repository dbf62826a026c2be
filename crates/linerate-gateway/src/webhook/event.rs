//! What happened to a client or a channel, as webhooks are told.

use std::{sync::Arc, time::SystemTime};

use linerate_hub::{ChannelName, ClientInfo};
use serde::Serialize;

use super::{channel_json::as_text, published::Publication, tracked::Parting};
use crate::{clock::milliseconds, config::WebhookEvent};

/// Approximate memory of a queued event without its texts, in bytes.
const FRAME_BYTES: usize = 256;

/// An event in the queue of a webhook.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    time_ms: u64,
    /// The client; `None` if a channel is concerned as a whole.
    who: Option<Arc<ClientInfo>>,
    happened: Happened,
}

/// What happened to a client or a channel. The names are those of [`WebhookEvent`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Happened {
    /// It has subscribed to a channel that keeps its last event, and there was none.
    CacheMiss {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
    /// It was admitted.
    Connected {
        protocol: &'static str,
        transport: &'static str,
    },
    /// It was admitted and has left.
    Disconnected(Parting),
    /// A user is present in a channel, with the first of its clients.
    MemberAdded {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
        user: Box<str>,
    },
    /// A user has left a channel with all clients.
    MemberRemoved {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
        user: Box<str>,
    },
    /// A channel has its first subscriber.
    Occupied {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
    /// A client has published in a channel.
    Published(Publication),
    /// It has subscribed to a channel.
    Subscribed {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
    /// A channel has another number of subscriptions.
    SubscriptionCount {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
        #[serde(rename = "subscription_count")]
        count: u64,
    },
    /// Its subscription has ended.
    Unsubscribed {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
    /// A channel has lost its last subscriber.
    Vacated {
        #[serde(serialize_with = "as_text")]
        channel: ChannelName,
    },
}

/// An event as JSON.
#[derive(Debug, Serialize)]
pub(super) struct EventJson<'a> {
    seq: u64,
    time_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(flatten)]
    happened: &'a Happened,
}

impl Event {
    /// Creates an event that happens now.
    pub(super) fn now(who: Option<Arc<ClientInfo>>, happened: Happened) -> Self {
        Self {
            time_ms: milliseconds(SystemTime::now()),
            who,
            happened,
        }
    }

    pub(super) const fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// Returns the client, if one is concerned.
    pub(super) fn who(&self) -> Option<&ClientInfo> {
        self.who.as_deref()
    }

    /// Returns what happened.
    pub(super) const fn happened(&self) -> &Happened {
        &self.happened
    }

    /// Returns the approximate memory of the event, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let channel = self.happened.channel();
        let texts = match &self.happened {
            Happened::Disconnected(parting) => parting.reason_bytes(),
            Happened::MemberAdded { user, .. } | Happened::MemberRemoved { user, .. } => user.len(),
            Happened::Published(publication) => publication.bytes(),
            _ => 0,
        };
        let channel = channel.map_or(0, |channel| channel.as_str().len());
        FRAME_BYTES + self.who().map_or(0, ClientInfo::bytes) + channel + texts
    }

    /// Returns the event as JSON, with its number in the queue.
    pub(super) fn to_json(&self, seq: u64) -> EventJson<'_> {
        EventJson {
            seq,
            time_ms: self.time_ms,
            client: self.who().map(|who| &*who.client),
            user: self.who().map(|who| &*who.user),
            happened: &self.happened,
        }
    }
}

impl EventJson<'_> {
    /// Returns the kind of event.
    pub(super) const fn kind(&self) -> WebhookEvent {
        self.happened.kind()
    }
}

impl Happened {
    /// Returns the kind of event.
    pub(super) const fn kind(&self) -> WebhookEvent {
        match self {
            Self::CacheMiss { .. } => WebhookEvent::CacheMiss,
            Self::Connected { .. } => WebhookEvent::Connected,
            Self::Disconnected(_) => WebhookEvent::Disconnected,
            Self::MemberAdded { .. } => WebhookEvent::MemberAdded,
            Self::MemberRemoved { .. } => WebhookEvent::MemberRemoved,
            Self::Occupied { .. } => WebhookEvent::Occupied,
            Self::Published(_) => WebhookEvent::Published,
            Self::Subscribed { .. } => WebhookEvent::Subscribed,
            Self::SubscriptionCount { .. } => WebhookEvent::SubscriptionCount,
            Self::Unsubscribed { .. } => WebhookEvent::Unsubscribed,
            Self::Vacated { .. } => WebhookEvent::Vacated,
        }
    }

    /// Returns the channel that the event is about, if any.
    pub(super) const fn channel(&self) -> Option<&ChannelName> {
        match self {
            Self::Connected { .. } | Self::Disconnected(_) => None,
            Self::CacheMiss { channel }
            | Self::MemberAdded { channel, .. }
            | Self::MemberRemoved { channel, .. }
            | Self::Occupied { channel }
            | Self::Subscribed { channel }
            | Self::SubscriptionCount { channel, .. }
            | Self::Unsubscribed { channel }
            | Self::Vacated { channel } => Some(channel),
            Self::Published(publication) => Some(publication.channel()),
        }
    }
}
