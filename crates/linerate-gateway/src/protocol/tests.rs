//! The wire formats, as literals.
//!
//! The Protobuf literals were written by the codec of the npm package `centrifuge`.

mod codes;
mod commands;
mod event_stream;
mod gaps;
mod native;
mod publications;
mod replies;
mod round_trips;

use bytes::Bytes;
use linerate_hub::{
    Batch, ChannelName, ClientInfo, Encode, Epoch, Publication, StreamPosition, Unencodable,
};

use super::Encoding;

fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).unwrap()
}

fn position(epoch: &str, offset: u64) -> StreamPosition {
    StreamPosition {
        epoch: Epoch::new(epoch),
        offset,
    }
}

fn publication(payload: &'static [u8], offset: u64) -> Publication {
    let builder = Publication::build(Bytes::from_static(payload));
    builder.with_position(position("e", offset)).finish()
}

fn info() -> ClientInfo {
    ClientInfo {
        user: "u".into(),
        client: "x".into(),
        connection: Some(Bytes::from_static(b"{}")),
        channel: Some(Bytes::from_static(b"1")),
    }
}

/// Returns a publication with all optional fields.
fn full(payload: &'static [u8]) -> Publication {
    Publication::build(Bytes::from_static(payload))
        .with_position(position("e", 300))
        .with_info(Some(info()))
        .with_tags(vec![("k".into(), "v".into())])
        .with_source(channel("ticks:A"))
        .finish()
}

fn encode(
    encoding: Encoding,
    name: &str,
    publications: &[Publication],
) -> Result<Vec<u8>, Unencodable> {
    let batch = Batch {
        channel: &channel(name),
        channel_id: 300,
        publications,
        conflated: 0,
    };
    let mut out = Vec::new();
    encoding.encode(&batch, &mut out)?;
    Ok(out)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
