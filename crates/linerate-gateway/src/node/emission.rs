//! Events for the subscribers of any of several channels, as Socket.IO emits them to rooms.
//!
//! An event becomes a publication in each of its channels, so that it takes the usual way to
//! subscribers of all protocols. Each publication excludes the subscribers of the channels before
//! its own, to whom the event was published there already; see [`Exclusion`].

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientId, Exclusion, Publication};

use super::{
    Node, Notice,
    shard::{Client, Shard},
};

/// An event.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Emission {
    pub(crate) to: Audience,
    pub(crate) payload: Bytes,
    pub(crate) tags: Vec<(String, String)>,
}

/// The clients that subscribe to one of `channels`, and to none of `except`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Audience {
    pub(crate) channels: Vec<ChannelName>,
    pub(crate) except: Vec<ChannelName>,
}

impl Emission {
    /// Returns a publication for each of the channels that have subscribers here.
    pub(super) fn into_publications(
        self,
        has_subscribers: impl Fn(&ChannelName) -> bool,
    ) -> Vec<(ChannelName, Publication)> {
        let Self { to, payload, tags } = self;
        let keep = |channels: Vec<ChannelName>| -> Vec<ChannelName> {
            channels.into_iter().filter(&has_subscribers).collect()
        };
        let (channels, except) = (keep(to.channels), keep(to.except));
        let exclusion = Exclusion::new(except.iter().chain(&channels));
        let numbered = channels.into_iter().zip(except.len()..);
        let publications = numbered.map(|(channel, before)| {
            let publication = Publication::build(payload.clone()).with_tags(tags.clone());
            let publication = publication.with_exclusion(exclusion.first(before));
            (channel, publication.finish())
        });
        publications.collect()
    }
}

impl Audience {
    /// Returns all channels that it names.
    pub(super) fn names(&self) -> impl Iterator<Item = &ChannelName> {
        self.channels.iter().chain(&self.except)
    }
}

impl Node {
    /// Notifies the clients of a protocol on this node that belong to an audience.
    pub(crate) async fn notify_audience(
        &self,
        audience: Audience,
        protocol: &'static str,
        notice: Notice,
    ) {
        let notify = move |shard: &Shard| {
            for (_, client) in shard.audience(&audience, protocol) {
                client.outlet.notify(notice.clone());
            }
        };
        self.inboxes.run(notify).await;
    }
}

impl Shard {
    /// Returns the clients of a protocol that belong to an audience.
    pub(super) fn audience(
        &self,
        audience: &Audience,
        protocol: &str,
    ) -> impl Iterator<Item = (ClientId, &Client)> {
        let channels = Exclusion::new(&audience.channels);
        let except = Exclusion::new(&audience.except);
        let clients = self.clients.iter();
        clients.filter(move |(_, client)| {
            client.connection.dialect.0 == protocol
                && channels.has_any(client.channels.keys())
                && !except.has_any(client.channels.keys())
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Audience, Emission};
    use crate::node::tests::channel;

    fn audience(channels: &[&str], except: &[&str]) -> Audience {
        let names = |names: &[&str]| names.iter().map(|name| channel(name)).collect();
        Audience {
            channels: names(channels),
            except: names(except),
        }
    }

    #[test]
    fn an_event_excludes_the_channels_before_and_the_exceptions() {
        let emission = Emission {
            to: audience(&["a", "gone", "b"], &["x", "gone"]),
            payload: Bytes::from_static(b"1"),
            tags: Vec::new(),
        };
        let publications = emission.into_publications(|channel| channel.as_str() != "gone");
        let excludes = |index: usize, name: &str| {
            let exclusion = publications[index].1.exclusion().unwrap();
            exclusion.has_any(&[channel(name)])
        };
        let channels: Vec<_> = publications.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(channels, ["a", "b"]);
        assert!(excludes(0, "x") && !excludes(0, "a") && !excludes(0, "b"));
        assert!(excludes(1, "x") && excludes(1, "a") && !excludes(1, "b"));
        assert!(publications.iter().all(|(_, one)| one.payload() == "1"));
    }

    #[test]
    fn an_event_for_one_channel_excludes_nothing() {
        let emission = Emission {
            to: audience(&["a"], &[]),
            payload: Bytes::new(),
            tags: Vec::new(),
        };
        let publications = emission.into_publications(|_| true);
        assert!(publications[0].1.exclusion().is_none());
    }
}
