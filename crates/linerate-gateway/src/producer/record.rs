//! A publication as a record: the channel is the key, and the payload is the value.

use bytes::Bytes;
use linerate_broker::Publish;
use linerate_hub::{ChannelName, StreamPosition};
use linerate_kafka::NewRecord;

use super::Author;
use crate::protocol::exceptions;

/// A publication as a record.
#[derive(Debug)]
pub(crate) struct PublicationRecord {
    channel: ChannelName,
    payload: Bytes,
    headers: Vec<(String, Vec<u8>)>,
}

impl PublicationRecord {
    /// Describes a publication of `author`.
    pub(crate) fn new(channel: ChannelName, publish: &Publish, author: Author<'_>) -> Self {
        let mut headers = vec![header("channel", channel.as_str())];
        if let Author::Client(who) = author {
            // The client as others see it in the channel, if they are told who has published.
            let who = publish.info.as_ref().unwrap_or(who);
            headers.push(header("client", &who.client));
            if !who.user.is_empty() {
                headers.push(header("user", &who.user));
            }
        }
        if let Some(key) = &publish.idempotency_key {
            headers.push(header("idempotency-key", key));
        }
        let tags = exceptions::without_tag(&publish.tags);
        headers.extend(tags.map(|(name, value)| header(&format!("tag-{name}"), value)));
        Self {
            channel,
            payload: publish.payload.clone(),
            headers,
        }
    }

    /// Returns the channel.
    pub(crate) const fn channel(&self) -> &ChannelName {
        &self.channel
    }

    /// Returns the headers, with the position of the publication if it is known.
    pub(super) fn headers(&self, position: Option<&StreamPosition>) -> Vec<(String, Vec<u8>)> {
        let position = position.map(|position| {
            [
                header("epoch", position.epoch.as_str()),
                header("offset", &position.offset.to_string()),
            ]
        });
        let headers = self.headers.iter().cloned();
        headers.chain(position.into_iter().flatten()).collect()
    }

    /// Returns the record with these headers.
    pub(super) fn with<'a>(&'a self, headers: &'a [(String, Vec<u8>)]) -> NewRecord<'a> {
        NewRecord {
            key: self.channel.as_str(),
            value: &self.payload,
            headers,
        }
    }
}

fn header(name: &str, value: &str) -> (String, Vec<u8>) {
    (format!("linerate-{name}"), value.into())
}

#[cfg(test)]
mod tests {
    use std::{str, time::Duration};

    use linerate_broker::StreamOptions;
    use linerate_hub::{ClientInfo, Epoch};

    use super::*;

    fn publish() -> Publish {
        Publish {
            payload: Bytes::from_static(b"\xff{}"),
            info: None,
            tags: vec![
                ("event".to_owned(), "typing".to_owned()),
                ("except".to_owned(), "1.2".to_owned()),
            ],
            idempotency_key: Some("k1".to_owned()),
            options: StreamOptions {
                is_durable: false,
                size_max: 0,
                ttl: Duration::ZERO,
            },
        }
    }

    fn texts(headers: &[(String, Vec<u8>)]) -> Vec<(&str, &str)> {
        let headers = headers.iter();
        let text = headers.map(|(name, value)| (name.as_str(), str::from_utf8(value).unwrap()));
        text.collect()
    }

    #[test]
    fn a_publication_of_a_client_is_a_record_with_its_channel_as_the_key() {
        let who = ClientInfo {
            user: "ada".into(),
            client: "c1".into(),
            ..ClientInfo::default()
        };
        let channel = ChannelName::new("chat:1").unwrap();
        let record = PublicationRecord::new(channel, &publish(), Author::Client(&who));
        let position = StreamPosition {
            epoch: Epoch::new("e1"),
            offset: 7,
        };
        let headers = record.headers(Some(&position));
        let written = record.with(&headers);
        assert_eq!((written.key, written.value), ("chat:1", &b"\xff{}"[..]));
        let expected = [
            ("linerate-channel", "chat:1"),
            ("linerate-client", "c1"),
            ("linerate-user", "ada"),
            ("linerate-idempotency-key", "k1"),
            ("linerate-tag-event", "typing"),
            ("linerate-epoch", "e1"),
            ("linerate-offset", "7"),
        ];
        assert_eq!(texts(&headers), expected);
    }

    #[test]
    fn a_publication_of_the_application_has_no_client_and_may_have_no_position() {
        let channel = ChannelName::new("news").unwrap();
        let record = PublicationRecord::new(channel, &publish(), Author::Application);
        let expected = [
            ("linerate-channel", "news"),
            ("linerate-idempotency-key", "k1"),
            ("linerate-tag-event", "typing"),
        ];
        let headers = record.headers(None);
        assert_eq!(texts(&headers), expected);
    }
}
