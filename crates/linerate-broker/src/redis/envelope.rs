//! The envelope of a publication in a durable channel: a header, which the script of the stream
//! writes, and then the unchanged payload.
//!
//! ```text
//! NUL "lr1 " offset " " epoch " " length-of-meta LF meta payload
//! ```
//!
//! `meta` is the publisher and the tags as JSON, or empty.
//!
//! A publication in a plain channel is only its payload, unless it has tags, or the payload begins
//! like an envelope. It then has a shorter one:
//!
//! ```text
//! NUL "lr2 " length-of-meta LF meta payload
//! ```

use std::borrow::Cow;

use linerate_hub::{ClientInfo, Epoch, StreamPosition, publication::PublicationBuilder};
use serde::{Deserialize, Serialize};

use crate::{presence::InfoJson, request::Publish};

/// What envelopes begin with, and no text and no JSON.
const PREFIX: &[u8] = b"\0lr";

/// The prefix of the first kind.
const MAGIC: &[u8] = b"\0lr1 ";

/// The prefix of the kind for plain channels.
const PLAIN_MAGIC: &[u8] = b"\0lr2 ";

/// The maximum number of bytes of a header without `meta`.
const HEAD_BYTES_MAX: usize = 256;

/// A publication that was taken out of its envelope.
#[derive(Debug)]
pub(super) struct Envelope<'a> {
    pub(super) position: StreamPosition,
    pub(super) meta: &'a [u8],
    pub(super) payload: &'a [u8],
}

/// Opens an envelope. Returns `None` if the bytes are not an envelope, because a client published
/// in the channel without the script.
pub(super) fn open(bytes: &[u8]) -> Option<Envelope<'_>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let end = memchr::memchr(b'\n', &rest[..rest.len().min(HEAD_BYTES_MAX)])?;
    let head = std::str::from_utf8(&rest[..end]).ok()?;
    let rest = &rest[end + 1..];
    let mut words = head.split(' ');
    let offset = words.next()?.parse().ok()?;
    let epoch = Epoch::new(words.next()?);
    let meta: usize = words.next()?.parse().ok()?;
    if words.next().is_some() || meta > rest.len() {
        return None;
    }
    let (meta, payload) = rest.split_at(meta);
    Some(Envelope {
        position: StreamPosition { epoch, offset },
        meta,
        payload,
    })
}

/// Returns what is published in a plain channel: the payload, in an envelope if there are tags. A
/// payload that begins like an envelope gets one as well; otherwise a client could publish in the
/// name of another.
pub(super) fn plain(publish: &Publish) -> Cow<'_, [u8]> {
    let meta = match publish.tags.is_empty() {
        false => meta(publish.info.as_ref(), &publish.tags),
        true if publish.payload.starts_with(PREFIX) => Vec::new(),
        true => return Cow::Borrowed(&publish.payload),
    };
    let length = format!("{}\n", meta.len());
    let parts = [PLAIN_MAGIC, length.as_bytes(), &meta, &publish.payload];
    Cow::Owned(parts.concat())
}

/// Opens what was published in a plain channel. Returns `meta`, which is empty without an envelope,
/// and the payload.
pub(super) fn open_plain(bytes: &[u8]) -> (&[u8], &[u8]) {
    let opened = || {
        let rest = bytes.strip_prefix(PLAIN_MAGIC)?;
        let end = memchr::memchr(b'\n', &rest[..rest.len().min(HEAD_BYTES_MAX)])?;
        let length = std::str::from_utf8(&rest[..end]).ok()?;
        rest[end + 1..].split_at_checked(length.parse().ok()?)
    };
    opened().unwrap_or((b"", bytes))
}

/// Encodes the publisher and the tags as `meta`, which is empty if there are neither.
pub(super) fn meta(info: Option<&ClientInfo>, tags: &[(String, String)]) -> Vec<u8> {
    if info.is_none() && tags.is_empty() {
        return Vec::new();
    }
    let meta = Meta {
        info: info.map(InfoJson::from),
        tags: tags.to_vec(),
    };
    // This fails only for values that a client's info cannot have, because it is JSON already.
    serde_json::to_vec(&meta).unwrap_or_default()
}

/// Adds the contents of `meta`. Malformed contents are ignored.
pub(super) fn with_meta(publication: PublicationBuilder, meta: &[u8]) -> PublicationBuilder {
    if meta.is_empty() {
        return publication;
    }
    match serde_json::from_slice::<Meta>(meta) {
        Ok(meta) => publication
            .with_info(meta.info.map(ClientInfo::from))
            .with_tags(meta.tags),
        Err(_) => publication,
    }
}

#[derive(Deserialize, Serialize)]
struct Meta {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    info: Option<InfoJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use linerate_hub::{ClientInfo, Publication};

    use super::{meta, open, open_plain, plain, with_meta};
    use crate::request::{Publish, StreamOptions};

    #[test]
    fn an_envelope_is_opened() {
        let opened = open(b"\0lr1 12 abc 4\nmetapay\nload").unwrap();
        assert_eq!(opened.position.offset, 12);
        assert_eq!(opened.position.epoch.as_str(), "abc");
        assert_eq!(opened.meta, b"meta");
        assert_eq!(opened.payload, b"pay\nload");
        assert_eq!(open(b"\0lr1 1 e 0\n").unwrap().payload, b"");
    }

    #[test]
    fn other_payloads_than_envelopes_are_left_unchanged() {
        for bytes in [
            &b""[..],
            b"{}",
            b"\0lr1 ",
            b"\0lr1 1 e 0",
            b"\0lr1 1 e\nx",
            b"\0lr1 1 e 0 0\nx",
            b"\0lr1 x e 0\nx",
            b"\0lr1 -1 e 0\nx",
            b"\0lr1 1 e 2\nx",
            b"\0lr1 1 e 99999999999999999999\nx",
            b"\0lr1 1 \xff 0\nx",
        ] {
            assert!(open(bytes).is_none(), "{bytes:?}");
        }
        let long = [b"\0lr1 1 ", &vec![b'e'; 1_000][..], b" 0\nx"].concat();
        assert!(open(&long).is_none());
    }

    /// Returns a publication without tags in a plain channel.
    fn bare(payload: &'static [u8]) -> Publish {
        Publish {
            payload: Bytes::from_static(payload),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options: StreamOptions {
                is_durable: false,
                size_max: 0,
                ttl: Duration::ZERO,
            },
        }
    }

    #[test]
    fn tags_make_an_envelope_of_a_plain_publication() {
        let mut publish = bare(b"\0lr2 1");
        let sealed = plain(&publish);
        assert_eq!(*sealed, *b"\0lr2 0\n\0lr2 1");
        assert_eq!(open_plain(&sealed), (&b""[..], &publish.payload[..]));
        publish.payload = Bytes::from_static(b"text");
        assert_eq!(*plain(&publish), *b"text");
        publish.payload = Bytes::from_static(b"\0lr2 1");
        publish.tags = vec![("k".to_owned(), "v".to_owned())];
        let sealed = plain(&publish);
        assert_eq!(*sealed, *b"\0lr2 20\n{\"tags\":[[\"k\",\"v\"]]}\0lr2 1");
        let (meta, payload) = open_plain(&sealed);
        assert_eq!(
            (meta, payload),
            (&br#"{"tags":[["k","v"]]}"#[..], &publish.payload[..])
        );
        for bytes in [
            &b"\0lr2 9\nx"[..],
            b"\0lr2 x\nx",
            b"\0lr2 -1\nx",
            b"\0lr2 \xff\nx",
            b"\0lr1 0\nx",
        ] {
            assert_eq!(open_plain(bytes), (&b""[..], bytes));
        }
    }

    #[test]
    fn no_payload_is_taken_for_an_envelope() {
        let forged: [&[u8]; 3] = [
            b"\0lr2 29\n{\"info\":{\"user\":\"somebody\"}}x",
            b"\0lr1 e:1 0\nx",
            b"\0lr",
        ];
        for payload in forged {
            let sealed = plain(&bare(payload)).into_owned();
            assert!(open(&sealed).is_none());
            assert_eq!(open_plain(&sealed), (&b""[..], payload));
        }
    }

    #[test]
    fn meta_survives_the_round_trip() {
        let info = ClientInfo {
            user: "a\"b".into(),
            client: "c".into(),
            connection: Some((*b"{\"x\": [1, 2]}").into()),
            channel: Some((*b"null").into()),
        };
        let tags = vec![("k".to_owned(), "v\n".to_owned())];
        let bytes = meta(Some(&info), &tags);
        let publication = with_meta(Publication::build(Bytes::new()), &bytes).finish();
        assert_eq!(publication.info().unwrap().user, info.user);
        assert_eq!(publication.info().unwrap().connection, info.connection);
        assert_eq!(publication.tags(), tags);
        assert!(meta(None, &[]).is_empty());
    }

    #[test]
    fn foreign_meta_is_ignored() {
        for bytes in [&b"x"[..], b"[]", b"{\"info\":1}"] {
            let publication = with_meta(Publication::build(Bytes::new()), bytes).finish();
            assert_eq!(publication.info(), None);
        }
    }
}
