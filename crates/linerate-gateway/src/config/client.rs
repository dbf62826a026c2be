//! `[client]`: limits and timeouts for each client.

use std::time::Duration;

use linerate_hub::channel::NAME_BYTES_MAX;
use serde::Deserialize;

use super::{check::Check, unit};

/// Limits and timeouts for each client.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Maximum size of a message from a client, in bytes.
    pub message_bytes_max: usize,
    /// Maximum number of simultaneous subscriptions of a client.
    pub channels_max: usize,
    /// Maximum length of a channel name, in bytes.
    pub channel_name_bytes_max: usize,
    /// Maximum number of commands of a client per second.
    pub commands_per_second_max: u32,
    /// Maximum size of the replies queued for a client that does not read, in bytes.
    pub queue_bytes_max: usize,
    /// Maximum size of the publications in a reply, in bytes.
    pub reply_bytes_max: usize,
    /// Interval between pings to a client.
    #[serde(rename = "ping_interval_s", with = "unit::seconds")]
    pub ping_interval: Duration,
    /// Maximum time a client may take to answer a ping.
    #[serde(rename = "pong_timeout_s", with = "unit::seconds")]
    pub pong_timeout: Duration,
    /// Maximum time from the handshake to the client's first command.
    #[serde(rename = "connect_timeout_s", with = "unit::seconds")]
    pub connect_timeout: Duration,
    /// Maximum time from the first to the last byte of a message.
    #[serde(rename = "message_timeout_s", with = "unit::seconds")]
    pub message_timeout: Duration,
    /// Time that a client has to send a new token after its token expired.
    #[serde(rename = "refresh_grace_s", with = "unit::seconds")]
    pub refresh_grace: Duration,
    /// The backend that decides whether a client without a token may connect.
    pub connect_backend: Option<String>,
    /// The backend that decides whether a connection that expires may continue.
    pub refresh_backend: Option<String>,
    /// The backend that receives messages that clients send.
    pub send_backend: Option<String>,
}

impl ClientOptions {
    /// Returns the keys that refer to backends, with their values.
    pub(super) const fn backends(&self) -> [(&'static str, &Option<String>); 3] {
        [
            ("connect_backend", &self.connect_backend),
            ("refresh_backend", &self.refresh_backend),
            ("send_backend", &self.send_backend),
        ]
    }

    pub(super) fn check(&self, check: &mut Check) {
        check.range("message_bytes_max", self.message_bytes_max, 128..=64 << 20);
        check.range("channels_max", self.channels_max, 1..=100_000);
        let name = self.channel_name_bytes_max;
        check.range("channel_name_bytes_max", name, 1..=NAME_BYTES_MAX);
        let commands = self.commands_per_second_max;
        check.range("commands_per_second_max", commands, 1..=1_000_000);
        check.range("queue_bytes_max", self.queue_bytes_max, 4_096..=1 << 30);
        check.range("reply_bytes_max", self.reply_bytes_max, 0..=64 << 20);
        check.range("ping_interval_s", self.ping_interval.as_secs(), 1..=3_600);
        check.range("pong_timeout_s", self.pong_timeout.as_secs(), 1..=3_600);
        let connect = self.connect_timeout.as_secs();
        check.range("connect_timeout_s", connect, 1..=600);
        let message = self.message_timeout.as_secs();
        check.range("message_timeout_s", message, 1..=3_600);
        check.range("refresh_grace_s", self.refresh_grace.as_secs(), 1..=600);
    }
}
