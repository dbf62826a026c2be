//! A durable channel and its home: the options that its stream shares with others.

use std::{fmt, time::Duration};

use linerate_hub::ChannelName;

use crate::request::StreamOptions;

/// A durable channel and its subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct DurableChannel {
    pub(super) channel: ChannelName,
    pub(super) subject: String,
    pub(super) options: StreamOptions,
}

/// The options of a channel that apply to a whole stream. Channels with the same options share
/// streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Home {
    /// The number of messages that are stored for each channel.
    pub(super) size_max: u64,
    /// How long they are stored, in milliseconds; 0 means without a limit.
    ttl_ms: u64,
}

impl DurableChannel {
    /// Returns the home for new publications.
    pub(super) fn home(&self) -> Home {
        Home::of(self.options)
    }
}

impl Home {
    /// Returns the home of channels with these options.
    pub(super) fn of(options: StreamOptions) -> Self {
        Self {
            size_max: options.size_max as u64,
            ttl_ms: options.ttl.as_millis().try_into().unwrap_or(u64::MAX),
        }
    }

    /// Parses the token that displays a home.
    pub(super) fn parse(token: &str) -> Option<Self> {
        let (size_max, ttl_ms) = token.split_once('-')?;
        let home = Self {
            size_max: size_max.parse().ok()?,
            ttl_ms: ttl_ms.parse().ok()?,
        };
        // `parse` also accepts a sign.
        (home.to_string() == token).then_some(home)
    }

    /// Returns how long messages are stored.
    pub(super) fn ttl(self) -> Duration {
        Duration::from_millis(self.ttl_ms)
    }
}

/// A token of subjects.
impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.size_max, self.ttl_ms)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Home;
    use crate::request::StreamOptions;

    #[test]
    fn a_home_is_parsed_from_its_token() {
        let home = Home::of(StreamOptions {
            is_durable: true,
            size_max: 100,
            ttl: Duration::from_millis(1_500),
        });
        assert_eq!(home.to_string(), "100-1500");
        assert_eq!(Home::parse("100-1500"), Some(home));
        for token in ["", "100", "-1", "1-", "+1-1", "01-1", "1-1-1", "a-1"] {
            assert_eq!(Home::parse(token), None, "{token}");
        }
    }
}
