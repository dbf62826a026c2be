//! Entry points for fuzzers of the NATS messages. Compiled only for fuzzing.

use async_nats::{HeaderMap, HeaderName, HeaderValue};
use bytes::Bytes;
use linerate_hub::{ChannelName, Publication};

use super::{
    subject::{self, Subjects},
    wire::{self, Head},
};

/// Returns the publications that a message with these headers contains.
pub fn publications<'a>(
    payload: &[u8],
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Vec<Publication> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        // The parser of async-nats lets only such headers pass.
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            map.append(name, value);
        }
    }
    let payload = Bytes::copy_from_slice(payload);
    let Some((head, publications)) = wire::publications(&payload, &map) else {
        return Vec::new();
    };
    assert_eq!(publications.len() as u64, head.count);
    let last = publications.last().and_then(Publication::position);
    assert!(last.is_none_or(|last| *last == head.position));
    assert_eq!(Head::parse(&head.headers()), Some(head));
    publications
}

/// Converts a name to a subject and back. Checks that invalid names are refused and that no name
/// reaches a reserved subject of NATS.
pub fn names(prefix: &str, name: &str) {
    let (Ok(subjects), Ok(channel)) = (Subjects::new(prefix), ChannelName::new(name)) else {
        return;
    };
    if let Ok(subject) = subjects.of_channel(&channel) {
        assert_eq!(subjects.channel(&subject), Some(channel.clone()));
        assert!(!subject::is_pattern(&subject));
        assert!(!subject.starts_with(['$', '_']) || !prefix.is_empty());
        assert!(subject::stream(&subject).is_ascii());
        assert_eq!(
            subject::of_live(&subject::live(&subject)),
            Some(&subject[..])
        );
    }
    if let Ok(subject) = subjects.of_subscription(&channel) {
        assert!(prefix.is_empty() || subject.starts_with(prefix));
        assert!(!subject.starts_with(['$', '_', '*', '>']) || !prefix.is_empty());
    }
    let id = wire::message_id(prefix, name);
    let is_legal = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    assert!(id.bytes().all(is_legal));
}
