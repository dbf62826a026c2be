//! What becomes of publications to subscribers that do not keep up, topic by topic.

use std::collections::HashMap;

/// What happens to a publication for a subscriber whose backlog is at
/// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max). Each case is counted, see
/// [`Counters`](crate::Counters).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// The subscriber is closed with 1008 behind what waits for it: for topics of which a
    /// subscriber must not miss anything unawares.
    ///
    /// 1008 is the code for which "there is no other more suitable status code" (RFC 6455 §7.4.1).
    /// 1013, which IANA's registry adds, says that the service is overloaded and should not be tried
    /// again by itself; but here one client is slow, and may well come back.
    Close,
    /// It is not queued for this subscriber, and neither is what follows until its backlog has been
    /// written.
    #[default]
    DropNewest,
    /// It is queued, and the oldest publications to topics with this policy give way: as many as are
    /// needed to keep the backlog below its limit, but not the newest. Only whole messages go, and
    /// none that has begun to be written. For topics of which the newest state counts.
    ///
    /// Over TLS what waits is encrypted already, in an order that can't be changed: there it is
    /// [`DropNewest`](Self::DropNewest). So it is for connections that we opened, whose output is
    /// masked for each.
    DropOldest,
}

/// How a topic behaves; see [`Builder::topic`](crate::Builder::topic).
///
/// ```
/// use linerate_reactor::{Overflow, TopicOptions};
///
/// let options = TopicOptions::default().with_overflow(Overflow::DropOldest);
/// assert_eq!(options.overflow, Overflow::DropOldest);
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct TopicOptions {
    /// What happens to a publication for a subscriber that does not keep up. Default: it is dropped.
    pub overflow: Overflow,
}

impl TopicOptions {
    /// Sets what happens to a publication for a subscriber that does not keep up.
    #[must_use]
    pub const fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }
}

/// The options of topics that are not as the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopicRules {
    by_name: HashMap<Box<str>, TopicOptions>,
    /// The longest first.
    by_prefix: Vec<(Box<str>, TopicOptions)>,
}

impl TopicRules {
    /// Sets the options of a topic or, if `pattern` ends in `*`, of all that begin like it.
    pub(crate) fn set(&mut self, pattern: &str, options: TopicOptions) {
        let Some(prefix) = pattern.strip_suffix('*') else {
            self.by_name.insert(pattern.into(), options);
            return;
        };
        self.by_prefix.retain(|(other, _)| **other != *prefix);
        self.by_prefix.push((prefix.into(), options));
        self.by_prefix
            .sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
    }

    /// Returns the options of a topic, if they were set.
    pub(crate) fn find(&self, name: &str) -> Option<TopicOptions> {
        let mut by_prefix = self.by_prefix.iter();
        self.by_name.get(name).copied().or_else(|| {
            let found = by_prefix.find(|(prefix, _)| name.starts_with(&**prefix));
            found.map(|(_, options)| *options)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_goes_before_the_longest_prefix() {
        let mut rules = TopicRules::default();
        let [close, newest, oldest] = [Overflow::Close, Overflow::DropNewest, Overflow::DropOldest]
            .map(|overflow| TopicOptions::default().with_overflow(overflow));
        rules.set("prices/*", newest);
        rules.set("prices/EUR", close);
        rules.set("prices/E*", oldest);
        assert_eq!(rules.find("prices/EUR"), Some(close));
        assert_eq!(rules.find("prices/EURUSD"), Some(oldest));
        assert_eq!(rules.find("prices/USD"), Some(newest));
        assert_eq!(rules.find("prices"), None);
        rules.set("prices/E*", close);
        rules.set("*", oldest);
        assert_eq!(rules.find("prices/EURUSD"), Some(close));
        assert_eq!(rules.find("prices"), Some(oldest));
    }
}
