//! Publications of durable channels as NATS messages: data other than the payload goes into
//! headers.

use std::{str::FromStr, sync::Arc};

use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;
use linerate_hub::{
    ClientInfo, Epoch, Publication, StreamPosition, publication::PublicationBuilder,
};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use serde_json::{Value, json};

use super::home::Home;
use crate::request::Publish;

/// The characters that a header cannot contain, or would lose at its ends.
const NOT_IN_HEADERS: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The header with the position of the last publication of a message, its number of publications,
/// and the home of the channel.
const POSITION: &str = "Linerate-Position";

/// The header with the size, the publisher and the tags of each publication, as JSON, in a message
/// with several.
const PARTS: &str = "Linerate-Parts";

/// The header with the publisher, as JSON.
const INFO: &str = "Linerate-Info";

/// The header with the tags, as JSON.
const TAGS: &str = "Linerate-Tags";

/// The longest epoch that is accepted, in bytes.
const EPOCH_BYTES_MAX: usize = 64;

/// The maximum number of publications in a message.
pub(super) const PARTS_MAX: usize = 32;

/// Where a channel is after a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Head {
    /// The position of the last publication up to this message.
    pub(super) position: StreamPosition,
    /// The number of publications in the message. A message without any only sets the position.
    pub(super) count: u64,
    /// Which stream has the channel's next publication.
    pub(super) home: Home,
}

impl Head {
    /// Returns the head of a message without publications.
    pub(super) fn of(position: StreamPosition, home: Home) -> Self {
        let count = 0;
        Self {
            position,
            count,
            home,
        }
    }

    /// Returns the headers of a message with this head.
    pub(super) fn headers(&self) -> HeaderMap {
        let StreamPosition { epoch, offset } = &self.position;
        let mut headers = HeaderMap::new();
        let value = format!("{epoch} {offset} {} {}", self.count, self.home);
        insert(&mut headers, POSITION, &value);
        headers
    }

    /// Parses the header of a message. Returns `None` if it is missing or malformed, or if it
    /// cannot be the head of a message.
    pub(super) fn parse(headers: &HeaderMap) -> Option<Self> {
        let mut words = headers.get(POSITION)?.as_str().split(' ');
        let epoch = words.next().filter(|epoch| !epoch.is_empty())?;
        let mut number = || words.next()?.parse::<u64>().ok();
        // Offsets stay far from the largest number, so that the next one always exists.
        let offset = number().filter(|offset| *offset < u64::MAX / 2)?;
        let count = number().filter(|count| *count <= offset)?;
        let home = Home::parse(words.next()?)?;
        let is_valid = epoch.len() <= EPOCH_BYTES_MAX && count <= PARTS_MAX as u64;
        (is_valid && words.next().is_none()).then(|| Self {
            position: StreamPosition {
                epoch: Epoch::new(epoch),
                offset,
            },
            count,
            home,
        })
    }
}

/// The size of a publication in bytes, its publisher and its tags.
type Part = (usize, Option<Value>, Vec<(String, String)>);

/// Returns the headers and the payload of a message with one or more publications.
pub(super) fn message(head: &Head, publications: &[&Publish]) -> (HeaderMap, Bytes) {
    let mut headers = head.headers();
    if let [publish] = publications {
        return (single_headers(publish, headers), publish.payload.clone());
    }
    let part = |publish: &&Publish| {
        let info = publish.info.as_ref().map(encode_info);
        json!([publish.payload.len(), info, publish.tags])
    };
    let parts: Vec<_> = publications.iter().map(part).collect();
    insert(&mut headers, PARTS, &json!(parts).to_string());
    let payloads: Vec<&[u8]> = publications.iter().map(|one| &one.payload[..]).collect();
    (headers, payloads.concat().into())
}

/// Returns the headers of a message in a plain channel; `None` if the publication has no tags.
pub(super) fn plain_headers(publish: &Publish) -> Option<HeaderMap> {
    (!publish.tags.is_empty()).then(|| single_headers(publish, HeaderMap::new()))
}

/// Adds the publisher and the tags of the only publication in a message.
fn single_headers(publish: &Publish, mut headers: HeaderMap) -> HeaderMap {
    if let Some(info) = &publish.info {
        insert(&mut headers, INFO, &encode_info(info).to_string());
    }
    if !publish.tags.is_empty() {
        insert(&mut headers, TAGS, &json!(publish.tags).to_string());
    }
    headers
}

/// Returns the publication in a message of a plain channel.
pub(super) fn plain(payload: Bytes, headers: Option<&HeaderMap>) -> PublicationBuilder {
    match headers {
        Some(headers) => single(payload, headers),
        None => Publication::build(payload),
    }
}

/// Returns the size of a publication in a message with several, in bytes.
pub(super) fn part_bytes(publish: &Publish) -> usize {
    let tags = publish.tags.iter();
    let tags: usize = tags.map(|(key, value)| key.len() + value.len()).sum();
    publish.payload.len() + publish.info.as_ref().map_or(0, ClientInfo::bytes) + tags
}

/// Returns a message id for an idempotency key in the channel of `subject`. Both may contain any
/// text.
pub(super) fn message_id(subject: &str, key: &str) -> String {
    let encode = |text: &str| percent_encode(text.as_bytes(), NOT_IN_HEADERS).to_string();
    format!("{} {}", encode(subject), encode(key))
}

/// Returns the head of a message, and its publications with their positions. Returns `None` if it
/// is not a message of a durable channel. Unknown or malformed publishers and tags are ignored.
pub(super) fn publications(
    payload: &Bytes,
    headers: &HeaderMap,
) -> Option<(Head, Vec<Publication>)> {
    let head = Head::parse(headers)?;
    let publications = match head.count {
        0 => Vec::new(),
        1 => vec![single(payload.clone(), headers)],
        count => parts(payload, headers).filter(|parts| parts.len() as u64 == count)?,
    };
    let first = head.position.offset + 1 - head.count;
    let positions = (first..).map(|offset| StreamPosition {
        epoch: head.position.epoch.clone(),
        offset,
    });
    let numbered = publications.into_iter().zip(positions);
    let finish = |(one, position): (PublicationBuilder, _)| one.with_position(position).finish();
    let publications = numbered.map(finish).collect();
    Some((head, publications))
}

fn single(payload: Bytes, headers: &HeaderMap) -> PublicationBuilder {
    let parse = |name: &str| serde_json::from_str(headers.get(name)?.as_str()).ok();
    let info = parse(INFO).map(|info: Value| decode_info(&info));
    let tags = headers.get(TAGS).map(HeaderValue::as_str);
    let tags = tags.and_then(|tags| serde_json::from_str(tags).ok());
    Publication::build(payload)
        .with_info(info)
        .with_tags(tags.unwrap_or_default())
}

fn parts(payload: &Bytes, headers: &HeaderMap) -> Option<Vec<PublicationBuilder>> {
    let parts = headers.get(PARTS)?.as_str();
    let parts: Vec<Part> = serde_json::from_str(parts).ok()?;
    let (mut publications, mut left) = (Vec::with_capacity(parts.len()), &payload[..]);
    for (bytes, info, tags) in parts {
        let (part, after) = left.split_at_checked(bytes)?;
        left = after;
        // A copy, because a part would keep the whole message in memory.
        let publication = Publication::build(Bytes::copy_from_slice(part));
        let info = info.as_ref().map(decode_info);
        publications.push(publication.with_info(info).with_tags(tags));
    }
    left.is_empty().then_some(publications)
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &str) {
    // Positions and JSON as written here contain neither line ends nor other control characters.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn encode_info(info: &ClientInfo) -> Value {
    let text = |json: &Option<Arc<[u8]>>| {
        let text = json.as_deref().map(String::from_utf8_lossy);
        text.map(|text| text.into_owned())
    };
    json!({
        "user": &*info.user,
        "client": &*info.client,
        "connection": text(&info.connection),
        "channel": text(&info.channel),
    })
}

fn decode_info(info: &Value) -> ClientInfo {
    let text = |name: &str| info[name].as_str();
    let bytes = |name: &str| text(name).map(|text| text.as_bytes().into());
    ClientInfo {
        user: text("user").unwrap_or_default().into(),
        client: text("client").unwrap_or_default().into(),
        connection: bytes("connection"),
        channel: bytes("channel"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_nats::HeaderMap;
    use bytes::Bytes;
    use linerate_hub::{ClientInfo, Epoch, Publication, StreamPosition};

    use super::{Head, PARTS_MAX, message, message_id, publications};
    use crate::{
        nats::home::Home,
        request::{Publish, StreamOptions},
    };

    const OPTIONS: StreamOptions = StreamOptions {
        is_durable: true,
        size_max: 10,
        ttl: Duration::from_secs(60),
    };

    fn publish(payload: &'static [u8]) -> Publish {
        Publish {
            payload: Bytes::from_static(payload),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options: OPTIONS,
        }
    }

    fn head(offset: u64, count: u64) -> Head {
        let epoch = Epoch::new("e");
        let head = Head::of(StreamPosition { epoch, offset }, Home::of(OPTIONS));
        Head { count, ..head }
    }

    fn round_trip(head: &Head, sent: &[&Publish]) -> Vec<Publication> {
        let (headers, payload) = message(head, sent);
        let (arrived, publications) = publications(&payload, &headers).unwrap();
        assert_eq!(&arrived, head);
        publications
    }

    #[test]
    fn publisher_and_tags_survive_the_round_trip() {
        let mut one = publish(b"\0\xff\r\n");
        one.info = Some(ClientInfo {
            user: "zoë\r\n".into(),
            client: "c\"1".into(),
            connection: Some((*b"{\n\"a\": 1}").into()),
            channel: None,
        });
        one.tags = vec![("a".to_owned(), "1\r\nEvil: x".to_owned())];
        let (other, empty) = (publish(b"other"), publish(b""));
        let sent = [&one, &other, &empty];
        for sent in [&sent[..1], &sent] {
            let arrived = round_trip(&head(7, sent.len() as u64), sent);
            for (arrived, sent) in arrived.iter().zip(sent) {
                assert_eq!(arrived.payload(), &sent.payload);
                assert_eq!(arrived.info(), sent.info.as_ref());
                assert_eq!(arrived.tags(), sent.tags);
            }
            let offsets: Vec<u64> = arrived.iter().map(Publication::offset).collect();
            assert_eq!(*offsets.last().unwrap(), 7);
            assert_eq!(offsets.len(), sent.len());
        }
    }

    #[test]
    fn keys_stay_different() {
        let keys = ["a b", "a%20b", " a b", "a\r\nb", "ä"];
        let mut ids: Vec<_> = keys.iter().map(|key| message_id("c", key)).collect();
        ids.extend(keys.iter().map(|key| message_id(key, "c")));
        ids.extend([message_id("a", "b.c"), message_id("a.b", "c")]);
        for (number, id) in ids.iter().enumerate() {
            let is_legal = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
            assert!(id.bytes().all(is_legal), "{id}");
            assert_eq!(id.trim(), id);
            assert!(!ids[..number].contains(id), "{id}");
        }
    }

    #[test]
    fn messages_of_others_are_ignored() {
        let parse = |position: &str, parts: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("Linerate-Position", position);
            headers.insert("Linerate-Info", "no json");
            headers.insert("Linerate-Tags", "{\"a\":1}");
            if let Some(parts) = parts {
                headers.insert("Linerate-Parts", parts);
            }
            let (_, publications) = publications(&Bytes::from_static(b"abc"), &headers)?;
            Some(publications.len())
        };
        assert_eq!(parse("e 1 1 10-60000", None), Some(1));
        assert_eq!(parse("e 1 0 10-60000", None), Some(0));
        for position in [
            "",
            "e 1 1",
            "e 1 2 10-60000",
            "e 1 1 10-60000 x",
            "e x 1 10-60000",
            "e 1 1 10",
            "e 18446744073709551615 1 10-60000",
            " 1 1 10-60000",
        ] {
            assert_eq!(parse(position, None), None, "{position}");
        }
        let two = "e 2 2 10-60000";
        assert_eq!(parse(two, None), None);
        assert_eq!(parse(two, Some("[[1,null,[]],[2,null,[]]]")), Some(2));
        for parts in [
            "[[1,null,[]],[1,null,[]]]",
            "[[1,null,[]],[3,null,[]]]",
            "[[3,null,[]]]",
            "[[18446744073709551615,null,[]],[2,null,[]]]",
            "{}",
        ] {
            assert_eq!(parse(two, Some(parts)), None, "{parts}");
        }
        let many = format!("e 99 {} 10-60000", PARTS_MAX + 1);
        assert_eq!(parse(&many, None), None);
        assert!(publications(&Bytes::new(), &HeaderMap::new()).is_none());
    }
}
