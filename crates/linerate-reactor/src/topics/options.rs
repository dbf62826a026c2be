//! Topic options: what happens to publications for subscribers that do not keep up.

use std::collections::HashMap;

/// What happens to a publication for a subscriber whose backlog has reached
/// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max). [`Counters`](crate::Counters)
/// counts each case.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Overflow {
    /// Closes the subscriber with 1008, after its backlog has been sent. Use it for topics where a
    /// subscriber must not miss anything without noticing.
    ///
    /// 1008 is the code for which "there is no other more suitable status code" (RFC 6455 §7.4.1).
    /// The code 1013 from IANA's registry would mean that the service is overloaded and that the
    /// client should not retry automatically. Here, however, a single client is slow and may
    /// reconnect.
    Close,
    /// Does not queue the publication for this subscriber, nor any later one until its backlog has
    /// been written.
    #[default]
    DropNewest,
    /// Queues the publication and drops the oldest publications to topics with this policy: as many
    /// as necessary to keep the backlog below its limit, but not the newest. Only whole messages
    /// are dropped, and none that has been written in part. Use it for topics where only the newest
    /// state matters.
    ///
    /// Over TLS, the backlog is already encrypted and its order cannot change; there, this behaves
    /// like [`DropNewest`](Self::DropNewest). The same applies to connections that we opened, whose
    /// output is masked individually.
    DropOldest,
}

/// The options of a topic; see [`Server::with_topic`](crate::Server::with_topic).
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
    /// What happens to a publication for a subscriber that does not keep up. Default:
    /// [`Overflow::DropNewest`].
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

/// The topics that have options of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopicRules {
    by_name: HashMap<Box<str>, TopicOptions>,
    /// Ordered by length, longest first.
    by_prefix: Vec<(Box<str>, TopicOptions)>,
}

impl TopicRules {
    /// Sets the options of a topic or, if `pattern` ends in `*`, of all topics that start with the
    /// part before the `*`.
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
