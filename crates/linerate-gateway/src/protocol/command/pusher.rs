//! Requests that only Pusher clients make.

use bytes::Bytes;

/// A request that only Pusher clients make. There are no IDs: an answer names the channel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PusherRequest {
    /// Publishes an event to the other subscribers of a channel.
    ClientEvent {
        /// The name of the event, which begins with `client-`.
        event: String,
        /// The channel.
        channel: String,
        /// The data of the event.
        data: Bytes,
    },
    /// Identifies the user of the connection.
    SignIn {
        /// The key of the app and the signature.
        auth: String,
        /// The user, as JSON.
        user_data: String,
    },
    /// Subscribes to a channel.
    Subscribe {
        /// The channel.
        channel: String,
        /// The key of the app and the signature; empty if there is none.
        auth: String,
        /// What the signature says about the subscriber, as JSON.
        channel_data: Option<String>,
    },
    /// An unknown event.
    Unknown,
    /// Ends a subscription.
    Unsubscribe {
        /// The channel.
        channel: String,
    },
}

impl PusherRequest {
    /// Returns the name of the operation as used in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::ClientEvent { .. } => "publish",
            Self::SignIn { .. } => "sign_in",
            Self::Subscribe { .. } => "subscribe",
            Self::Unknown => "unknown",
            Self::Unsubscribe { .. } => "unsubscribe",
        }
    }

    /// Returns the channel, if the request is a subscription.
    pub(crate) fn subscribed_channel(&self) -> Option<&str> {
        match self {
            Self::Subscribe { channel, .. } => Some(channel),
            _ => None,
        }
    }
}
