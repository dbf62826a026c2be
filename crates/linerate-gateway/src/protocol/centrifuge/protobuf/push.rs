//! Writes the push of a publication directly into the output.

use bytes::Bytes;
use linerate_hub::Publication;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len},
};

use super::schema;

/// The field numbers, as in `schema`.
const REPLY_PUSH: u32 = 4;
const PUSH_CHANNEL: u32 = 2;
const PUSH_PUBLICATION: u32 = 4;
const PUBLICATION_DATA: u32 = 4;
const PUBLICATION_INFO: u32 = 5;
const PUBLICATION_OFFSET: u32 = 6;
const PUBLICATION_TAGS: u32 = 7;
const PUBLICATION_DELTA: u32 = 8;
const PUBLICATION_CHANNEL: u32 = 10;
const TAG_KEY: u32 = 1;
const TAG_VALUE: u32 = 2;

/// Appends the push of a publication, preceded by its length. `delta` replaces its payload.
pub(in crate::protocol) fn publication_push(
    channel: &str,
    publication: &Publication,
    delta: Option<&Bytes>,
    out: &mut Vec<u8>,
) {
    let info = publication.info().map(schema::ClientInfo::from);
    let publication_bytes = publication_len(publication, delta, info.as_ref());
    let push_bytes = default_free_len(PUSH_CHANNEL, channel.len())
        + field_len(PUSH_PUBLICATION, publication_bytes);
    encode_varint(field_len(REPLY_PUSH, push_bytes) as u64, out);
    head(REPLY_PUSH, push_bytes, out);
    bytes(PUSH_CHANNEL, channel.as_bytes(), out);
    head(PUSH_PUBLICATION, publication_bytes, out);
    append_publication(publication, delta, info.as_ref(), out);
}

fn append_publication(
    publication: &Publication,
    delta: Option<&Bytes>,
    info: Option<&schema::ClientInfo>,
    out: &mut Vec<u8>,
) {
    let data = delta.unwrap_or(publication.payload());
    bytes(PUBLICATION_DATA, data, out);
    if let Some(info) = info {
        head(PUBLICATION_INFO, info.encoded_len(), out);
        info.encode(out).expect("a Vec grows as needed");
    }
    if publication.offset() != 0 {
        encode_key(PUBLICATION_OFFSET, WireType::Varint, out);
        encode_varint(publication.offset(), out);
    }
    for (key, value) in publication.tags() {
        head(PUBLICATION_TAGS, tag_len(key, value), out);
        bytes(TAG_KEY, key.as_bytes(), out);
        bytes(TAG_VALUE, value.as_bytes(), out);
    }
    if delta.is_some() {
        encode_key(PUBLICATION_DELTA, WireType::Varint, out);
        encode_varint(1, out);
    }
    if let Some(source) = publication.source() {
        bytes(PUBLICATION_CHANNEL, source.as_str().as_bytes(), out);
    }
}

fn publication_len(
    publication: &Publication,
    delta: Option<&Bytes>,
    info: Option<&schema::ClientInfo>,
) -> usize {
    let data = delta.unwrap_or(publication.payload());
    let delta = delta.map_or(0, |_| key_len(PUBLICATION_DELTA) + encoded_len_varint(1));
    let info = info.map_or(0, |info| field_len(PUBLICATION_INFO, info.encoded_len()));
    let offset = match publication.offset() {
        0 => 0,
        offset => key_len(PUBLICATION_OFFSET) + encoded_len_varint(offset),
    };
    let tags = publication.tags().iter();
    let tags = tags.map(|(key, value)| field_len(PUBLICATION_TAGS, tag_len(key, value)));
    let source = publication.source();
    let source = source.map_or(0, |source| {
        default_free_len(PUBLICATION_CHANNEL, source.as_str().len())
    });
    default_free_len(PUBLICATION_DATA, data.len())
        + delta
        + info
        + offset
        + tags.sum::<usize>()
        + source
}

fn tag_len(key: &str, value: &str) -> usize {
    default_free_len(TAG_KEY, key.len()) + default_free_len(TAG_VALUE, value.len())
}

/// Returns the encoded length of a field of `bytes` bytes, including its number and length.
fn field_len(number: u32, bytes: usize) -> usize {
    key_len(number) + encoded_len_varint(bytes as u64) + bytes
}

/// Like [`field_len`], but for a field that is left out if it is empty.
fn default_free_len(number: u32, bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    field_len(number, bytes)
}

fn head(number: u32, bytes: usize, out: &mut Vec<u8>) {
    encode_key(number, WireType::LengthDelimited, out);
    encode_varint(bytes as u64, out);
}

fn bytes(number: u32, bytes: &[u8], out: &mut Vec<u8>) {
    if !bytes.is_empty() {
        head(number, bytes.len(), out);
        out.extend_from_slice(bytes);
    }
}
