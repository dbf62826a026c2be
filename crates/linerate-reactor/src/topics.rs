//! The topics, and which connections of a worker subscribe to them.

pub(crate) mod burst;
pub(crate) mod options;

use std::collections::HashMap;

use self::options::TopicOptions;

/// The error returned when a subscription is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The name of the topic is longer than [`Options::topic_bytes_max`](crate::Options).
    #[error("topic name of {bytes} bytes exceeds the limit of {bytes_max}")]
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The connection has reached [`Options::subscriptions_max`](crate::Options).
    #[error("subscription limit of {subscriptions_max} reached")]
    TooMany {
        /// The limit.
        subscriptions_max: usize,
    },
}

/// The subscriptions of a worker; connections are identified by their index.
#[derive(Debug, Default)]
pub(crate) struct Topics {
    names: HashMap<Box<str>, usize>,
    topics: slab::Slab<Topic>,
    /// The subscriptions of each connection. Connections that never had any may be missing at the
    /// end.
    of_connection: Vec<Vec<Membership>>,
}

#[derive(Debug)]
struct Topic {
    name: Box<str>,
    options: TopicOptions,
    subscribers: Vec<Subscriber>,
}

#[derive(Clone, Copy, Debug)]
struct Subscriber {
    connection: u32,
    /// The position of this subscription among those of the connection.
    at: u32,
}

#[derive(Clone, Copy, Debug)]
struct Membership {
    topic: usize,
    /// The position of this subscription among those of the topic.
    at: u32,
}

impl Topics {
    /// Subscribes; returns whether the subscription is new. `options` is called for the first
    /// subscriber of a topic.
    pub(crate) fn subscribe(
        &mut self,
        connection: u32,
        name: &str,
        subscriptions_max: usize,
        options: impl FnOnce() -> TopicOptions,
    ) -> Result<bool, SubscribeError> {
        if self.position(connection, name).is_some() {
            return Ok(false);
        }
        let index = connection as usize;
        if self.of_connection.len() <= index {
            self.of_connection.resize_with(index + 1, Vec::new);
        }
        let memberships = &mut self.of_connection[index];
        if memberships.len() >= subscriptions_max {
            return Err(SubscribeError::TooMany { subscriptions_max });
        }
        let topic = match self.names.get(name) {
            Some(topic) => *topic,
            None => {
                let topic = self.topics.insert(Topic {
                    name: name.into(),
                    options: options(),
                    subscribers: Vec::new(),
                });
                self.names.insert(name.into(), topic);
                topic
            }
        };
        let subscribers = &mut self.topics[topic].subscribers;
        let at = memberships.len() as u32;
        memberships.push(Membership {
            topic,
            at: subscribers.len() as u32,
        });
        subscribers.push(Subscriber { connection, at });
        Ok(true)
    }

    /// Ends a subscription; returns whether it existed.
    pub(crate) fn unsubscribe(&mut self, connection: u32, name: &str) -> bool {
        let position = self.position(connection, name);
        if let Some(position) = position {
            self.remove(connection, position);
        }
        position.is_some()
    }

    /// Ends all subscriptions of a connection.
    pub(crate) fn unsubscribe_all(&mut self, connection: u32) {
        while let Some(last) = self.memberships(connection).len().checked_sub(1) {
            self.remove(connection, last);
        }
        if let Some(memberships) = self.of_connection.get_mut(connection as usize) {
            *memberships = Vec::new();
        }
    }

    /// Returns the options of a topic and the connections that subscribe to it.
    pub(crate) fn subscribers(
        &self,
        name: &str,
    ) -> (TopicOptions, impl ExactSizeIterator<Item = u32>) {
        let topic = self.names.get(name).map(|topic| &self.topics[*topic]);
        let options = topic.map_or_else(TopicOptions::default, |topic| topic.options);
        let subscribers = topic.map_or(&[][..], |topic| &topic.subscribers);
        let connections = subscribers.iter().map(|subscriber| subscriber.connection);
        (options, connections)
    }

    fn memberships(&self, connection: u32) -> &[Membership] {
        self.of_connection
            .get(connection as usize)
            .map_or(&[], Vec::as_slice)
    }

    fn position(&self, connection: u32, name: &str) -> Option<usize> {
        let topic = *self.names.get(name)?;
        let memberships = self.memberships(connection);
        memberships
            .iter()
            .position(|membership| membership.topic == topic)
    }

    /// Removes a subscription and updates the positions of those that take its places in the two
    /// lists.
    fn remove(&mut self, connection: u32, position: usize) {
        let memberships = &mut self.of_connection[connection as usize];
        let Membership { topic, at } = memberships.swap_remove(position);
        if let Some(moved) = memberships.get(position) {
            self.topics[moved.topic].subscribers[moved.at as usize].at = position as u32;
        }
        let subscribers = &mut self.topics[topic].subscribers;
        subscribers.swap_remove(at as usize);
        if let Some(moved) = subscribers.get(at as usize) {
            self.of_connection[moved.connection as usize][moved.at as usize].at = at;
        }
        if subscribers.is_empty() {
            let topic = self.topics.remove(topic);
            self.names.remove(&topic.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_testkit::Rng;

    use super::*;

    #[test]
    fn the_limit_holds_and_the_same_topic_counts_once() {
        let mut topics = Topics::default();
        assert_eq!(topics.subscribe(7, "a", 2, TopicOptions::default), Ok(true));
        assert_eq!(
            topics.subscribe(7, "a", 2, TopicOptions::default),
            Ok(false)
        );
        assert_eq!(topics.subscribe(7, "b", 2, TopicOptions::default), Ok(true));
        let too_many = SubscribeError::TooMany {
            subscriptions_max: 2,
        };
        assert_eq!(
            topics.subscribe(7, "c", 2, TopicOptions::default),
            Err(too_many)
        );
        assert_eq!(
            topics.subscribe(7, "b", 2, TopicOptions::default),
            Ok(false)
        );
        assert_eq!(topics.subscribers("c").1.len(), 0);
        assert!(topics.unsubscribe(7, "a"));
        assert!(!topics.unsubscribe(7, "a"));
        assert_eq!(topics.subscribe(7, "c", 2, TopicOptions::default), Ok(true));
    }

    #[test]
    fn equals_a_set_of_pairs() {
        let mut rng = Rng::new(4);
        let mut topics = Topics::default();
        let mut pairs = BTreeSet::new();
        let names = ["a", "b", "c", "d"];
        for _ in 0..20_000 {
            let connection = rng.below(12) as u32;
            let name = names[rng.below(names.len())];
            match rng.below(5) {
                0 | 1 => assert_eq!(
                    topics.subscribe(connection, name, 9, TopicOptions::default),
                    Ok(pairs.insert((name, connection)))
                ),
                2 | 3 => assert_eq!(
                    topics.unsubscribe(connection, name),
                    pairs.remove(&(name, connection))
                ),
                _ => {
                    topics.unsubscribe_all(connection);
                    pairs.retain(|(_, other)| *other != connection);
                }
            }
            for name in names {
                let seen: BTreeSet<_> = topics.subscribers(name).1.collect();
                let expected = pairs
                    .iter()
                    .filter(|pair| pair.0 == name)
                    .map(|pair| pair.1);
                assert!(seen.into_iter().eq(expected));
            }
        }
        (0..12).for_each(|connection| topics.unsubscribe_all(connection));
        assert!(topics.names.is_empty() && topics.topics.is_empty());
    }
}
