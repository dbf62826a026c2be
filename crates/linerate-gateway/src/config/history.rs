//! `[history]`: limits on the history that this node keeps of channels that are not durable.

use serde::Deserialize;

use super::{ChannelOptions, check::Check};

/// Limits on the history that this node keeps of channels that are not durable. They take
/// precedence over the options of a channel.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HistoryOptions {
    /// Maximum payload kept of a channel, in bytes.
    pub channel_bytes_max: usize,
    /// Maximum number of publications kept of a channel.
    pub channel_messages_max: usize,
    /// Maximum number of channels with a history.
    pub channels_max: usize,
    /// Maximum payload kept of all channels together, in bytes.
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
                "is less than history.channel_bytes_max = {}; there would be no room for a full channel",
                self.channel_bytes_max
            );
            check.refuse("total_bytes_max", self.total_bytes_max, &because);
        }
    }

    /// Reports a `history_size` above the limit for channels that are not durable.
    pub(super) fn check_channel(&self, channel: &ChannelOptions, check: &mut Check) {
        if !channel.durable && channel.history_size > self.channel_messages_max {
            let because = format!(
                "exceeds history.channel_messages_max = {}; raise that limit, keep less, or store the history in the broker \
                 (durable = true)",
                self.channel_messages_max
            );
            check.refuse("history_size", channel.history_size, &because);
        }
    }
}
