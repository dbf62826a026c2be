//! The client protocols: wire formats as literals.
//!
//! The Protobuf literals were written by the codec of the npm package `centrifuge`.

mod codes;
mod commands;
mod deltas;
mod event_stream;
mod gaps;
mod lines;
mod native;
mod publications;
mod registry;
mod replies;
mod round_trips;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use linerate_hub::{
    Batch, ChannelName, ClientInfo, Epoch, Payloads, Publication, StreamPosition, Unencodable,
};

use super::{
    Dialect, centrifuge,
    decode::{DecodeError, Emulation},
    dialect::{Commands, SessionKind},
};

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
        connection: Some((*b"{}").into()),
        channel: Some((*b"1").into()),
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
    dialect: &Dialect,
    name: &str,
    publications: &[Publication],
) -> Result<Vec<u8>, Unencodable> {
    encode_as(dialect, name, publications, Payloads::Full)
}

fn encode_as(
    dialect: &Dialect,
    name: &str,
    publications: &[Publication],
    payloads: Payloads<'_>,
) -> Result<Vec<u8>, Unencodable> {
    let batch = Batch {
        channel: &channel(name),
        channel_id: 300,
        publications,
        conflated: 0,
        payloads,
        with_channel_id: false,
        with_positions: false,
    };
    let mut out = Vec::new();
    (dialect.encode)(&batch, &mut out)?;
    Ok(out)
}

/// Returns the commands of a dialect whose clients send some.
fn commands(dialect: &'static Dialect) -> &'static Commands {
    match &dialect.session {
        SessionKind::Commands(commands) => commands,
        SessionKind::Fixed(_) => panic!("{:?} has no commands", dialect.name),
    }
}

/// Decodes the body of a request to `/emulation`.
fn emulation(content_type: &'static str, body: &[u8]) -> Result<Emulation, DecodeError> {
    let content_type = HeaderValue::from_static(content_type);
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
    let endpoint = centrifuge::PROTOCOL.emulation.as_ref().unwrap();
    (endpoint.read)(&headers, body)
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}
