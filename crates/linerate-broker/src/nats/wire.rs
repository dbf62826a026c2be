//! Publications of durable channels as NATS messages: data other than the payload goes into
//! headers.

use std::str::FromStr;

use async_nats::{HeaderMap, HeaderValue, header::NATS_SEQUENCE};
use bytes::Bytes;
use linerate_hub::{ClientInfo, Publication, publication::PublicationBuilder};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use serde_json::{Value, json};

use crate::request::Publish;

/// The characters that a header cannot contain, or would lose at its ends.
const NOT_IN_HEADERS: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The header with the publisher, as JSON.
const INFO: &str = "Linerate-Info";

/// The header with the tags, as JSON.
const TAGS: &str = "Linerate-Tags";

/// Returns the headers with the publisher and the tags, or `None` if there are neither.
pub(super) fn headers(publish: &Publish) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if let Some(info) = &publish.info {
        insert(&mut headers, INFO, &encode_info(info));
    }
    if !publish.tags.is_empty() {
        insert(&mut headers, TAGS, &json!(publish.tags));
    }
    (!headers.is_empty()).then_some(headers)
}

/// Returns a message id for an idempotency key, which may contain any text.
pub(super) fn message_id(key: &str) -> String {
    percent_encode(key.as_bytes(), NOT_IN_HEADERS).to_string()
}

/// Starts the publication that a message contains. Unknown or malformed headers are ignored.
pub(super) fn publication(payload: Bytes, headers: Option<&HeaderMap>) -> PublicationBuilder {
    let publication = Publication::build(payload);
    let Some(headers) = headers else {
        return publication;
    };
    let parse = |name: &str| serde_json::from_str(headers.get(name)?.as_str()).ok();
    let info = parse(INFO).map(|info: Value| decode_info(&info));
    let tags = headers.get(TAGS).map(HeaderValue::as_str);
    let tags = tags.and_then(|tags| serde_json::from_str(tags).ok());
    publication
        .with_info(info)
        .with_tags(tags.unwrap_or_default())
}

/// Returns the offset in its stream that a republished message names.
pub(super) fn offset(headers: Option<&HeaderMap>) -> Option<u64> {
    headers?.get(NATS_SEQUENCE)?.as_str().parse().ok()
}

fn insert(headers: &mut HeaderMap, name: &'static str, value: &Value) {
    // JSON as written here contains neither line ends nor other control characters.
    if let Ok(value) = HeaderValue::from_str(&value.to_string()) {
        headers.insert(name, value);
    }
}

fn encode_info(info: &ClientInfo) -> Value {
    let text = |json: &Option<Bytes>| {
        let text = json.as_deref().map(String::from_utf8_lossy);
        text.map(|text| text.into_owned())
    };
    json!({
        "user": info.user,
        "client": info.client,
        "connection": text(&info.connection),
        "channel": text(&info.channel),
    })
}

fn decode_info(info: &Value) -> ClientInfo {
    let text = |name: &str| info[name].as_str().map(str::to_owned);
    ClientInfo {
        user: text("user").unwrap_or_default(),
        client: text("client").unwrap_or_default(),
        connection: text("connection").map(Bytes::from),
        channel: text("channel").map(Bytes::from),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use async_nats::HeaderMap;
    use bytes::Bytes;
    use linerate_hub::ClientInfo;

    use super::{headers, message_id, offset, publication};
    use crate::request::{Publish, StreamOptions};

    fn publish() -> Publish {
        Publish {
            payload: Bytes::from_static(b"\0\xff\r\n"),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options: StreamOptions {
                is_durable: true,
                size_max: 10,
                ttl: Duration::from_secs(60),
            },
        }
    }

    #[test]
    fn publisher_and_tags_survive_the_round_trip() {
        let mut publish = publish();
        publish.info = Some(ClientInfo {
            user: "zoë\r\n".to_owned(),
            client: "c\"1".to_owned(),
            connection: Some(Bytes::from_static(b"{\n\"a\": 1}")),
            channel: None,
        });
        publish.tags = vec![("a".to_owned(), "1\r\nEvil: x".to_owned())];
        let headers = headers(&publish).unwrap();
        assert_eq!(headers.len(), 2);
        let arrived = publication(publish.payload.clone(), Some(&headers)).finish();
        assert_eq!(arrived.payload(), &publish.payload);
        assert_eq!(arrived.info(), publish.info.as_ref());
        assert_eq!(arrived.tags(), publish.tags);
    }

    #[test]
    fn keys_stay_different() {
        let keys = ["a b", "a%20b", " a b", "a\r\nb", "ä"].map(message_id);
        for (number, key) in keys.iter().enumerate() {
            assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
            assert!(!keys[..number].contains(key), "{key}");
        }
    }

    #[test]
    fn headers_of_others_are_tolerated() {
        assert!(headers(&publish()).is_none());
        let mut foreign = HeaderMap::new();
        foreign.insert("Linerate-Info", "no json");
        foreign.insert("Linerate-Tags", "{\"a\":1}");
        foreign.insert("Nats-Sequence", "x");
        let arrived = publication(Bytes::new(), Some(&foreign)).finish();
        assert_eq!(arrived.info(), None);
        assert!(arrived.tags().is_empty());
        assert_eq!(offset(Some(&foreign)), None);
        foreign.insert("Nats-Sequence", "42");
        assert_eq!(offset(Some(&foreign)), Some(42));
        assert_eq!(offset(None), None);
    }
}
