//! `[history]`: how much this node keeps of channels that are not durable.

use serde::Deserialize;

use super::{ChannelOptions, check::Check};

/// How much this node keeps of channels that are not durable, whatever their options ask for.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// Bytes of payload of a channel.
    pub channel_bytes_max: usize,
    /// Publications of a channel.
    pub channel_messages_max: usize,
    /// Channels.
    pub channels_max: usize,
    /// Bytes of payload of all channels together.
    pub total_bytes_max: usize,
}

impl HistoryOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range("channel_bytes_max", self.channel_bytes_max, 1_024..=1 << 30);
        let messages = self.channel_messages_max;
        check.range("channel_messages_max", messages, 1..=1_000_000);
        check.range("channels_max", self.channels_max, 1..=10_000_000);
        check.range("total_bytes_max", self.total_bytes_max, 1_024..=1 << 38);
        if self.total_bytes_max < self.channel_bytes_max {
            let because = format!(
                "is less than history.channel_bytes_max = {}: one channel could not be kept",
                self.channel_bytes_max
            );
            check.refuse("total_bytes_max", self.total_bytes_max, &because);
        }
    }

    /// Notes a history of more publications than a channel that is not durable may have here.
    pub(super) fn check_channel(&self, channel: &ChannelOptions, check: &mut Check) {
        if !channel.durable && channel.history_size > self.channel_messages_max {
            let because = format!(
                "exceeds history.channel_messages_max = {}; raise that, or keep less, or let the broker keep it \
                 (durable = true)",
                self.channel_messages_max
            );
            check.refuse("history_size", channel.history_size, &because);
        }
    }
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            channel_bytes_max: 4 << 20,
            channel_messages_max: 10_000,
            channels_max: 100_000,
            total_bytes_max: 256 << 20,
        }
    }
}
