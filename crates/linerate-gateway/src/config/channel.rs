//! `[channel]` and `[[namespace]]`: how channels behave, and what clients may do in them.

use std::time::Duration;

use linerate_broker::StreamOptions;
use serde::Deserialize;

use super::{check::Check, unit};

/// How a channel behaves, and what clients may do in it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// How long publications are collected before they are sent; zero sends each immediately.
    #[serde(rename = "batch_interval_ms", with = "unit::milliseconds")]
    pub batch_interval: Duration,
    /// Size of the collected publications, in bytes, at which they are sent before the interval
    /// ends.
    pub batch_bytes_max: usize,
    /// Which queued publications a newer one replaces.
    pub conflate: Option<Conflation>,
    /// True if compressed publications refer back to earlier ones of the channel.
    pub compression_takeover: bool,
    /// How to treat a subscriber that has fallen behind.
    pub slow: SlowPolicy,
    /// Maximum number of publications of a channel that each worker keeps for subscribers that have
    /// fallen behind.
    pub ring_messages_max: usize,
    /// Maximum size of these publications, in bytes.
    pub ring_bytes_max: usize,
    /// Maximum number of publications of a channel kept for recovery and `history`; 0 keeps none.
    pub history_size: usize,
    /// How long publications are kept for recovery and `history`.
    #[serde(rename = "history_ttl_s", with = "unit::seconds")]
    pub history_ttl: Duration,
    /// True if the broker stores the history, so that clients can recover on any node.
    pub durable: bool,
    /// True if a subscriber that reconnects receives what it missed.
    pub recover: bool,
    /// What such a subscriber receives.
    pub recovery: RecoveryMode,
    /// True if subscriptions have a position. They end when there is a gap, so that the client
    /// subscribes again and recovers.
    pub positioned: bool,
    /// How a client learns of a gap if its protocol can report one only by ending the subscription.
    pub gaps: Gaps,
    /// True if presence is tracked: subscribers can be listed.
    pub presence: bool,
    /// True if subscribers are notified of joins and leaves.
    pub join_leave: bool,
    /// True if any client may subscribe without a token for the channel.
    pub allow_subscribe: bool,
    /// True if clients without a user have the same permissions as those with one.
    pub allow_anonymous: bool,
    /// True if clients may publish.
    pub allow_publish: bool,
    /// True if subscribers may read the history.
    pub allow_history: bool,
    /// True if subscribers may query presence.
    pub allow_presence: bool,
    /// Maximum size of the presence information in a reply, in bytes.
    pub presence_bytes_max: usize,
    /// True if subscribers may filter.
    pub allow_filter: bool,
    /// True if subscribers may choose the batch interval.
    pub allow_batch_override: bool,
    /// True if subscribers may choose how publications are conflated.
    pub allow_conflate_override: bool,
    /// True if subscribers may receive publications as differences from those before them.
    pub allow_delta: bool,
    /// True if subscribers may receive pushes with an ID in place of the channel's name.
    pub allow_channel_compaction: bool,
    /// True if clients may subscribe to patterns, in the syntax of the broker.
    pub allow_pattern: bool,
    /// The backend that decides whether a client without a token for the channel may subscribe.
    pub subscribe_backend: Option<String>,
    /// The backend that decides whether a subscription that expires may continue.
    pub sub_refresh_backend: Option<String>,
    /// The backend that decides whether a client may publish, and what.
    pub publish_backend: Option<String>,
    /// The backend that answers calls of methods whose names begin like the namespace.
    pub rpc_backend: Option<String>,
}

/// How gaps are reported to clients of Centrifuge's protocol whose subscription has no position.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Gaps {
    /// The subscription continues and the client is not notified: delivery is at most once.
    Silent,
    /// The subscription ends with a code that makes SDKs subscribe again.
    Told,
}

/// What a subscriber receives that recovers.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecoveryMode {
    /// The newest publication, unless it has it.
    Cache,
    /// Everything that it missed.
    Stream,
}

/// Which queued publications a newer one replaces.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Conflation {
    /// All older ones of the channel; only the newest is sent.
    Latest,
    /// Those with the same value at this JSON pointer (RFC 6901); the newest of each value is sent.
    LatestPerKey(String),
}

/// How to treat a subscriber that has fallen behind.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlowPolicy {
    /// It receives the newest publication of each key, and how many it missed.
    Conflate,
    /// It is disconnected.
    Disconnect,
    /// It continues with the oldest publication that is still stored, and is told how many it
    /// missed.
    DropOldest,
}

/// The text is neither `latest` nor a JSON pointer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "conflation must be \"latest\" or a JSON pointer such as \"/symbol\" of at most {POINTER_BYTES_MAX} bytes"
)]
pub struct ConflationError;

/// Maximum length of a JSON pointer, in bytes.
const POINTER_BYTES_MAX: usize = 256;

impl ChannelOptions {
    /// Returns the options that the broker needs for the channel.
    pub(crate) const fn stream(&self) -> StreamOptions {
        StreamOptions {
            is_durable: self.durable,
            size_max: self.history_size,
            ttl: self.history_ttl,
        }
    }

    /// Returns the options that the hub needs for the channel.
    pub(crate) const fn ring(&self) -> linerate_hub::ChannelOptions {
        linerate_hub::ChannelOptions {
            ring_messages_max: self.ring_messages_max,
            ring_bytes_max: self.ring_bytes_max,
        }
    }

    /// Returns whether an anonymous client, or one with a user, may use what is open to clients.
    pub(crate) const fn is_open_to(&self, is_anonymous: bool) -> bool {
        self.allow_anonymous || !is_anonymous
    }

    /// Returns the keys that refer to backends, with their values.
    pub(super) const fn backends(&self) -> [(&'static str, &Option<String>); 4] {
        [
            ("subscribe_backend", &self.subscribe_backend),
            ("sub_refresh_backend", &self.sub_refresh_backend),
            ("publish_backend", &self.publish_backend),
            ("rpc_backend", &self.rpc_backend),
        ]
    }

    /// Returns whether clients of Centrifuge's protocol can miss publications without being
    /// notified.
    pub(crate) fn is_silent(&self) -> bool {
        self.gaps == Gaps::Silent && !self.positioned && !self.recover
    }

    pub(super) fn check(&self, check: &mut Check) {
        let interval = self.batch_interval.as_millis() as u64;
        check.range("batch_interval_ms", interval, 0..=60_000);
        check.range("batch_bytes_max", self.batch_bytes_max, 1_024..=16 << 20);
        check.range("ring_messages_max", self.ring_messages_max, 1..=1_000_000);
        check.range("ring_bytes_max", self.ring_bytes_max, 1_024..=1 << 30);
        check.range("history_size", self.history_size, 0..=1_000_000);
        check.range("history_ttl_s", self.history_ttl.as_secs(), 1..=31_536_000);
        let presence = self.presence_bytes_max;
        check.range("presence_bytes_max", presence, 1_024..=64 << 20);
        if self.recover && self.history_size == 0 {
            let because = "requires history_size; otherwise there is nothing to recover from";
            check.refuse("recover", true, because);
        }
        if self.recovery == RecoveryMode::Cache && self.history_size == 0 {
            check.refuse("recovery", "cache", "requires history_size");
        }
        if self.durable && self.history_size == 0 {
            check.refuse("durable", true, "requires history_size");
        }
        if self.positioned && self.gaps == Gaps::Silent {
            let because = "conflicts with gaps = \"silent\": a positioned subscription ends when there is a gap";
            check.refuse("positioned", true, because);
        }
        if self.join_leave && !self.presence {
            check.refuse("join_leave", true, "requires presence");
        }
    }
}

impl TryFrom<String> for Conflation {
    type Error = ConflationError;

    fn try_from(text: String) -> Result<Self, ConflationError> {
        match text.as_str() {
            "latest" => Ok(Self::Latest),
            pointer if pointer.starts_with('/') && pointer.len() <= POINTER_BYTES_MAX => {
                Ok(Self::LatestPerKey(text))
            }
            _ => Err(ConflationError),
        }
    }
}
