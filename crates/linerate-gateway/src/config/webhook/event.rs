//! The kinds of events that webhooks are told, and the formats in which they are told.

use serde::Deserialize;

/// The events that are sent unless others are configured.
const STANDARD_EVENTS: &[WebhookEvent] = &[
    WebhookEvent::Connected,
    WebhookEvent::Disconnected,
    WebhookEvent::Subscribed,
    WebhookEvent::Unsubscribed,
];

/// The events that are sent in Pusher's format unless others are configured.
const PUSHER_EVENTS: &[WebhookEvent] = &[
    WebhookEvent::Occupied,
    WebhookEvent::Vacated,
    WebhookEvent::MemberAdded,
    WebhookEvent::MemberRemoved,
];

/// A kind of event that a webhook can be told.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WebhookEvent {
    /// A Pusher client has subscribed to a cache channel without an event.
    CacheMiss,
    /// A client was admitted.
    Connected,
    /// A client has left.
    Disconnected,
    /// A user is present in a channel, on any node.
    MemberAdded,
    /// A user has left a channel on all nodes.
    MemberRemoved,
    /// A channel has a subscriber, on any node.
    Occupied,
    /// A client has published in a channel.
    Published,
    /// A client has subscribed to a channel.
    Subscribed,
    /// A channel has another number of subscriptions, on all nodes.
    SubscriptionCount,
    /// A subscription has ended.
    Unsubscribed,
    /// A channel has no more subscribers, on any node.
    Vacated,
}

/// How the batches of a webhook are encoded and signed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WebhookFormat {
    /// As Pusher does.
    Pusher,
    /// Our own events, signed as Standard Webhooks prescribe.
    #[default]
    Standard,
}

impl WebhookEvent {
    /// Returns the name, as in the configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::CacheMiss => "cache_miss",
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::MemberAdded => "member_added",
            Self::MemberRemoved => "member_removed",
            Self::Occupied => "occupied",
            Self::Published => "published",
            Self::Subscribed => "subscribed",
            Self::SubscriptionCount => "subscription_count",
            Self::Unsubscribed => "unsubscribed",
            Self::Vacated => "vacated",
        }
    }

    /// Returns whether the webhooks of Pusher have such an event.
    pub(super) const fn is_of_pusher(self) -> bool {
        !matches!(
            self,
            Self::Connected | Self::Disconnected | Self::Subscribed | Self::Unsubscribed
        )
    }
}

impl WebhookFormat {
    /// Returns the kinds of events that are sent unless others are configured.
    pub(super) const fn default_events(self) -> &'static [WebhookEvent] {
        match self {
            Self::Pusher => PUSHER_EVENTS,
            Self::Standard => STANDARD_EVENTS,
        }
    }
}
