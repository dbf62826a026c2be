//! From a record to a publication.

use std::borrow::Cow;

use bytes::Bytes;
use linerate_hub::{ChannelName, channel::ChannelNameError};
use linerate_source::Record;

use crate::{
    field::{Field, FieldError},
    member::member,
    options::TopicOptions,
    position::Position,
};

/// The payload of a record without a value.
const TOMBSTONE: &[u8] = b"null";

/// A record as Kafka has it.
#[derive(Debug)]
pub(crate) struct Raw<'a> {
    pub(crate) position: Position,
    pub(crate) key: Option<&'a [u8]>,
    /// `None` in a tombstone, which deletes the key in a compacted topic.
    pub(crate) value: Option<&'a [u8]>,
    pub(crate) headers: Vec<(&'a str, Option<&'a [u8]>)>,
}

/// The reason why a record cannot be published.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConvertError {
    #[error("{0}")]
    Channel(#[from] ChannelNameError),
    #[error("{0}")]
    Field(#[from] FieldError),
    #[error("value is not JSON with objects for each dot of {field}: {reason}")]
    Json {
        field: Field,
        reason: serde_json::Error,
    },
    #[error("record has no {0}")]
    Missing(Field),
    #[error("{0} is not a text, a number or a boolean")]
    NotAScalar(Field),
    #[error("{0} is not UTF-8")]
    NotUtf8(Field),
    #[error("size of {bytes} bytes exceeds record_bytes_max = {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
}

/// Converts a record. Returns `None` if it is not to be published: a record without a value, if a
/// part of the value is needed.
pub(crate) fn convert(
    raw: Raw<'_>,
    topic: &TopicOptions,
    is_suspect: bool,
    record_bytes_max: usize,
) -> Result<Option<Record<Position>>, ConvertError> {
    let header_bytes = |(name, value): &(&str, Option<&[u8]>)| name.len() + len(*value);
    let headers: usize = raw.headers.iter().map(header_bytes).sum();
    let (bytes, bytes_max) = (len(raw.key) + len(raw.value) + headers, record_bytes_max);
    if bytes > bytes_max {
        return Err(ConvertError::TooLarge { bytes, bytes_max });
    }
    if raw.value.is_none() && needs_value(topic) {
        return Ok(None);
    }
    let channel = topic.channel.fill(|name| {
        let field: Field = name.parse()?;
        raw.text(&field)
    })?;
    let payload = match &topic.payload {
        None => Bytes::copy_from_slice(raw.value.unwrap_or(TOMBSTONE)),
        Some(field) => Bytes::copy_from_slice(&raw.bytes(field)?),
    };
    let mut tags = Vec::with_capacity(topic.tags.len());
    for (name, field) in &topic.tags {
        match raw.text(field) {
            Ok(text) => tags.push((name.clone(), text)),
            Err(ConvertError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(Record {
        channel: ChannelName::new(&channel)?,
        payload,
        tags,
        key: raw.position.to_string(),
        position: raw.position,
        is_suspect,
    }))
}

fn len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(0, <[u8]>::len)
}

/// Returns whether the channel or the payload is a part of the value.
fn needs_value(topic: &TopicOptions) -> bool {
    let mut names = topic.channel.names();
    names.any(|name| name.starts_with("value.")) || matches!(topic.payload, Some(Field::Value(_)))
}

impl Raw<'_> {
    /// Returns a part as a text.
    fn text(&self, field: &Field) -> Result<String, ConvertError> {
        let bytes = self.bytes(field)?;
        if let Field::Value(_) = field {
            match bytes.first() {
                Some(b'"') => {
                    let text = serde_json::from_slice(&bytes);
                    return text.map_err(|reason| not_json(field, reason));
                }
                Some(b'{' | b'[') => return Err(ConvertError::NotAScalar(field.clone())),
                _ if *bytes == *b"null" => return Err(ConvertError::Missing(field.clone())),
                _ => {}
            }
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(ConvertError::NotUtf8(field.clone())),
        }
    }

    /// Returns the bytes of a part: JSON for a member of the value.
    fn bytes(&self, field: &Field) -> Result<Cow<'_, [u8]>, ConvertError> {
        let bytes = match field {
            Field::Header(name) => {
                let mut headers = self.headers.iter().rev();
                headers.find(|header| header.0 == name).and_then(|it| it.1)
            }
            Field::Key => self.key,
            Field::Partition => {
                return Ok(self.position.partition.to_string().into_bytes().into());
            }
            Field::Topic => Some(self.position.topic.as_bytes()),
            Field::Value(path) => match self.value {
                None => None,
                Some(value) => {
                    let found = member(value, path);
                    let found = found.map_err(|reason| not_json(field, reason))?;
                    found.map(str::as_bytes)
                }
            },
        };
        let bytes = bytes.ok_or_else(|| ConvertError::Missing(field.clone()))?;
        Ok(bytes.into())
    }
}

fn not_json(field: &Field, reason: serde_json::Error) -> ConvertError {
    let field = field.clone();
    ConvertError::Json { field, reason }
}

#[cfg(test)]
mod tests {
    use linerate_source::{Record, Template};

    use super::{ConvertError, Raw, convert};
    use crate::{options::TopicOptions, position::Position};

    const VALUE: &[u8] =
        br#"{"id": 7, "paid": true, "customer": {"name": "\u00e4nne"}, "note": null}"#;

    fn topic(channel: &str, payload: Option<&str>, tags: &[(&str, &str)]) -> TopicOptions {
        let tag = |(name, field): &(&str, &str)| ((*name).to_owned(), field.parse().unwrap());
        TopicOptions {
            topic: "orders".to_owned(),
            channel: Template::new(channel).unwrap(),
            payload: payload.map(|field| field.parse().unwrap()),
            tags: tags.iter().map(tag).collect(),
        }
    }

    fn raw<'a>(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Raw<'a> {
        Raw {
            position: Position {
                topic: "orders".to_owned(),
                partition: 3,
                offset: 9,
                at: 1_000,
            },
            key,
            value,
            headers: vec![
                ("type", Some(b"old")),
                ("type", Some(b"paid")),
                ("none", None),
            ],
        }
    }

    fn converted(options: &TopicOptions) -> Result<Record<Position>, ConvertError> {
        convert(raw(Some(b"k"), Some(VALUE)), options, false, 1_000).map(Option::unwrap)
    }

    #[test]
    fn parts_of_a_record_name_the_channel_and_become_payload_and_tags() {
        let all = "{topic}:{partition}:{key}:{header.type}:{value.id}:{value.customer.name}";
        let tags = [
            ("paid", "value.paid"),
            ("note", "value.note"),
            ("none", "header.none"),
        ];
        let record = converted(&topic(all, Some("value.customer"), &tags)).unwrap();
        assert_eq!(record.channel.as_str(), "orders:3:k:paid:7:\u{e4}nne");
        assert_eq!(&*record.payload, br#"{"name": "\u00e4nne"}"#);
        assert_eq!(record.tags, [("paid".to_owned(), "true".to_owned())]);
        assert_eq!(record.key, "orders:3:9:1000");
        let whole = converted(&topic("{key}", None, &[])).unwrap();
        assert_eq!(&*whole.payload, VALUE);
    }

    #[test]
    fn records_that_cannot_be_published_are_refused_with_the_reason() {
        for (channel, payload, reason) in [
            ("{value.none}", None, "record has no value.none"),
            ("{value.note}", None, "record has no value.note"),
            ("{value.note.x}", None, "record has no value.note.x"),
            ("{header.x}", None, "record has no header.x"),
            (
                "{value.customer}",
                None,
                "value.customer is not a text, a number or a boolean",
            ),
            (
                "{value.id.x}",
                None,
                "value is not JSON with objects for each dot of value.id.x",
            ),
            (
                "{value.}",
                None,
                "must be key, topic, partition, header.NAME or value.NAME",
            ),
            ("a b", None, "channel name contains a space"),
            ("{key}", Some("value.none"), "record has no value.none"),
        ] {
            let error = converted(&topic(channel, payload, &[]))
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(reason), "{channel}: {error}");
        }
        let refused = |key, value, bytes_max| {
            let options = topic("{key}", None, &[]);
            let converted = convert(raw(key, value), &options, false, bytes_max);
            converted.unwrap_err().to_string()
        };
        assert_eq!(refused(None, None, 1_000), "record has no key");
        assert_eq!(refused(Some(b"\xff"), None, 1_000), "key is not UTF-8");
        let too_large = "size of 21 bytes exceeds record_bytes_max = 20";
        assert_eq!(refused(Some(b"k"), Some(b"v"), 20), too_large);
    }

    #[test]
    fn a_tombstone_is_published_as_null_unless_a_part_of_the_value_is_needed() {
        let convert =
            |options: &TopicOptions| convert(raw(Some(b"k"), None), options, true, 21).unwrap();
        let record = convert(&topic("{key}", None, &[("id", "value.id")])).unwrap();
        assert!(record.tags.is_empty());
        assert_eq!((&*record.payload, record.is_suspect), (&b"null"[..], true));
        assert!(convert(&topic("{value.id}", None, &[])).is_none());
        assert!(convert(&topic("{key}", Some("value.id"), &[])).is_none());
    }
}
