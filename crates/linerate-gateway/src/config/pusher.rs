//! `[pusher]`: the app of Pusher clients, and its limits.

mod kind;

use std::time::Duration;

use serde::Deserialize;

use super::{check::Check, secret::Secret, unit};
pub(crate) use kind::{PusherAccess, PusherKind};

/// The app of Pusher clients and of Pusher's HTTP API, and its limits.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PusherOptions {
    /// The ID of the app, which is part of the URLs of the HTTP API.
    pub app_id: Option<String>,
    /// The key of the app, which clients know.
    pub key: Option<String>,
    /// The secret of the app, with which its backend signs.
    pub secret: Option<Secret>,
    /// Maximum number of open connections of Pusher clients on this node.
    pub connections_max: usize,
    /// True if clients may send client events.
    pub client_events: bool,
    /// Maximum number of client events of a client per second.
    pub client_events_per_second_max: u32,
    /// Maximum size of the data of an event, in bytes.
    pub event_bytes_max: usize,
    /// Maximum number of users in a presence channel.
    pub presence_members_max: usize,
    /// True if subscribers and webhooks are told how many subscriptions channels have.
    pub subscription_counts: bool,
    /// How long cache channels keep their last event.
    #[serde(rename = "cache_ttl_s", with = "unit::seconds")]
    pub cache_ttl: Duration,
}

impl PusherOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("connections_max", self.connections_max, 1..=100_000_000);
        let events = self.client_events_per_second_max;
        check.range("client_events_per_second_max", events, 1..=1_000_000);
        check.range("event_bytes_max", self.event_bytes_max, 1..=16 << 20);
        let members = self.presence_members_max;
        check.range("presence_members_max", members, 1..=10_000);
        check.range("cache_ttl_s", self.cache_ttl.as_secs(), 1..=31_536_000);
    }

    /// Returns whether everything is configured that clients and backends need.
    pub(super) const fn is_complete(&self) -> bool {
        self.app_id.is_some() && self.key.is_some() && self.secret.is_some()
    }
}
