//! `[channel]` and `[[namespace]]`: how channels behave, and who may do what in them.

use std::time::Duration;

use linerate_broker::StreamOptions;
use serde::Deserialize;

use super::{check::Check, unit};

/// How a channel behaves, and who may do what in it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ChannelOptions {
    /// How long publications are collected before they are sent; zero sends each at once.
    #[serde(rename = "batch_interval_ms", with = "unit::milliseconds")]
    pub batch_interval: Duration,
    /// How many bytes of publications are collected at most, even if the interval is not over.
    pub batch_bytes_max: usize,
    /// Which publications take the place of older ones that wait.
    pub conflate: Option<Conflation>,
    /// What happens to a subscriber that the channel has left behind.
    pub slow: SlowPolicy,
    /// Publications that each worker keeps for subscribers that are behind.
    pub ring_messages_max: usize,
    /// Their bytes.
    pub ring_bytes_max: usize,
    /// Publications that the channel keeps for recovery and `history`; 0 keeps none.
    pub history_size: usize,
    /// How long it keeps them.
    #[serde(rename = "history_ttl_s", with = "unit::seconds")]
    pub history_ttl: Duration,
    /// Whether the broker keeps them, so that every node can recover from it.
    pub durable: bool,
    /// Whether a subscriber that comes back gets what it missed.
    pub recover: bool,
    /// Whether subscriptions have a position and end with a gap, so that the client subscribes and recovers anew.
    pub positioned: bool,
    /// Whether a client is told of a gap whose protocol can only say so by ending the subscription.
    pub gaps: Gaps,
    /// Whether it is known who is there.
    pub presence: bool,
    /// Whether subscribers are told who comes and goes.
    pub join_leave: bool,
    /// Whether any client may subscribe without a token for the channel.
    pub allow_subscribe: bool,
    /// Whether what clients may do, those without a user may do as well.
    pub allow_anonymous: bool,
    /// Whether clients may publish.
    pub allow_publish: bool,
    /// Whether subscribers may ask for the history.
    pub allow_history: bool,
    /// Whether subscribers may ask who is there.
    pub allow_presence: bool,
    /// Bytes of what is told of those who are there, in an answer.
    pub presence_bytes_max: usize,
    /// Whether subscribers may filter.
    pub allow_filter: bool,
    /// Whether subscribers may choose how long publications are collected.
    pub allow_batch_override: bool,
    /// Whether subscribers may choose what is conflated.
    pub allow_conflate_override: bool,
    /// Whether a subscription may be to a pattern, as the broker understands it.
    pub allow_pattern: bool,
}

/// Whether a client that speaks Centrifuge's protocol is told of a gap if its subscription has no position.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Gaps {
    /// The subscription continues, and the client does not learn of it: delivery is at most once.
    Silent,
    /// The subscription ends with a code that makes SDKs subscribe again.
    #[default]
    Told,
}

/// Which publications take the place of older ones that wait.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq)]
#[serde(try_from = "String")]
#[non_exhaustive]
pub enum Conflation {
    /// The newest of the channel.
    Latest,
    /// The newest of each value that stands at this JSON pointer (RFC 6901).
    LatestPerKey(String),
}

/// What happens to a subscriber that the channel has left behind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SlowPolicy {
    /// It gets the newest publication of each key, and is told how many it missed.
    Conflate,
    /// It is disconnected.
    Disconnect,
    /// It goes on with the oldest that is still there, and is told how many it missed.
    #[default]
    DropOldest,
}

/// A text is neither `latest` nor a JSON pointer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "conflation is either \"latest\" or a JSON pointer like \"/symbol\" of at most {POINTER_BYTES_MAX} bytes"
)]
pub struct ConflationError;

/// The most bytes that a JSON pointer may have.
const POINTER_BYTES_MAX: usize = 256;

impl ChannelOptions {
    /// Returns what the broker has to know of the channel.
    pub const fn stream(&self) -> StreamOptions {
        StreamOptions {
            is_durable: self.durable,
            size_max: self.history_size,
            ttl: self.history_ttl,
        }
    }

    /// Returns whether subscribers that speak Centrifuge's protocol can miss publications without being told.
    pub fn is_silent(&self) -> bool {
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
            let because = "needs history_size: there is nothing to recover from";
            check.refuse("recover", true, because);
        }
        if self.durable && self.history_size == 0 {
            check.refuse("durable", true, "needs history_size");
        }
        if self.positioned && self.gaps == Gaps::Silent {
            let because =
                "contradicts gaps = \"silent\": a positioned subscription ends with a gap";
            check.refuse("positioned", true, because);
        }
        if self.join_leave && !self.presence {
            check.refuse("join_leave", true, "needs presence");
        }
    }
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            batch_interval: Duration::ZERO,
            batch_bytes_max: 128 << 10,
            conflate: None,
            slow: SlowPolicy::default(),
            ring_messages_max: 4_096,
            ring_bytes_max: 4 << 20,
            history_size: 0,
            history_ttl: Duration::from_secs(300),
            durable: false,
            recover: false,
            positioned: false,
            gaps: Gaps::default(),
            presence: false,
            join_leave: false,
            allow_subscribe: false,
            allow_anonymous: false,
            allow_publish: false,
            allow_history: false,
            allow_presence: false,
            presence_bytes_max: 1 << 20,
            allow_filter: true,
            allow_batch_override: true,
            allow_conflate_override: true,
            allow_pattern: false,
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
