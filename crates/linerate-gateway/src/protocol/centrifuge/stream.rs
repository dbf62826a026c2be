//! Centrifuge on HTTP streams, for clients without WebSocket. Their commands arrive in separate
//! requests.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use linerate_hub::{Batch, Unencodable};

use super::{json, protobuf};
use crate::protocol::{
    codes::Disconnect,
    decode::{DecodeError, Emulation},
    dialect::{Commands, Dialect, GapNotice, SessionKind, StreamTransport, Transport},
    reply::{Push, ServerMessage},
};

const HTTP_STREAM: &str = "http_stream";
const HTTP_STREAM_PATH: &str = "/connection/http_stream";

/// Server-sent events for `EventSource`, in JSON.
pub(crate) static EVENTS: Dialect = Dialect {
    name: (super::JSON, "sse"),
    path: "/connection/sse",
    accepts: |_| true,
    transport: Transport::Stream(StreamTransport {
        content_type: "text/event-stream",
        farewell: |disconnect| farewell(write_events, disconnect),
    }),
    session: SessionKind::Commands(Commands {
        read: json::decode,
        read_binary: None,
        write: write_events,
        connects: None,
        heartbeat: None,
        greeting: None,
        has_server_subscriptions: true,
        has_positions: true,
        has_deltas: true,
        has_compaction: true,
        first_in_query: Some("cf_connect"),
        first_in_body: true,
    }),
    encode: |batch, out| encode_json(batch, b"data: ", b"\n\n", out),
    gaps: GapNotice::None,
};

/// Lines of JSON.
pub(crate) static JSON: Dialect = Dialect {
    name: (super::JSON, HTTP_STREAM),
    path: HTTP_STREAM_PATH,
    accepts: |_| true,
    transport: Transport::Stream(StreamTransport {
        content_type: "application/json",
        farewell: |disconnect| farewell(write_lines, disconnect),
    }),
    session: SessionKind::Commands(Commands {
        read: json::decode,
        read_binary: None,
        write: write_lines,
        connects: None,
        heartbeat: None,
        greeting: None,
        has_server_subscriptions: true,
        has_positions: true,
        has_deltas: true,
        has_compaction: true,
        first_in_query: None,
        first_in_body: true,
    }),
    encode: |batch, out| encode_json(batch, b"", b"\n", out),
    gaps: GapNotice::None,
};

/// Protobuf messages, each preceded by its length.
pub(crate) static PROTOBUF: Dialect = Dialect {
    name: (super::PROTOBUF, HTTP_STREAM),
    path: HTTP_STREAM_PATH,
    accepts: |opening| is_protobuf(opening.headers),
    transport: Transport::Stream(StreamTransport {
        content_type: "application/octet-stream",
        farewell: |disconnect| farewell(write_protobuf, disconnect),
    }),
    session: SessionKind::Commands(Commands {
        read: protobuf::decode,
        read_binary: None,
        write: write_protobuf,
        connects: None,
        heartbeat: None,
        greeting: None,
        has_server_subscriptions: true,
        has_positions: true,
        has_deltas: true,
        // The npm package `centrifuge` 5.8.0 asks for IDs, but cannot find a subscription by an ID
        // from Protobuf.
        has_compaction: false,
        first_in_query: None,
        first_in_body: true,
    }),
    encode: encode_protobuf,
    gaps: GapNotice::None,
};

/// Decodes the body of a request to `/emulation`.
pub(super) fn read_emulation(headers: &HeaderMap, body: &[u8]) -> Result<Emulation, DecodeError> {
    match is_protobuf(headers) {
        true => protobuf::decode_emulation(body),
        false => json::decode_emulation(body),
    }
}

fn is_protobuf(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    let is_protobuf =
        |value: &HeaderValue| value.as_bytes().starts_with(b"application/octet-stream");
    content_type.is_some_and(is_protobuf)
}

type Written = Result<(), Unencodable>;

/// Returns the push of a disconnect, which a Close frame replaces on a WebSocket.
fn farewell(
    write: fn(&[ServerMessage], &mut Vec<u8>) -> Written,
    disconnect: &Disconnect,
) -> Option<Bytes> {
    let push = ServerMessage::Push(Push::Disconnect(disconnect.clone()));
    let mut bytes = Vec::new();
    write(&[push], &mut bytes).ok().map(|()| bytes.into())
}

fn write_events(messages: &[ServerMessage], out: &mut Vec<u8>) -> Written {
    write_json(messages, b"data: ", b"\n\n", out)
}

fn write_lines(messages: &[ServerMessage], out: &mut Vec<u8>) -> Written {
    write_json(messages, b"", b"\n", out)
}

fn write_json(
    messages: &[ServerMessage],
    before: &[u8],
    behind: &[u8],
    out: &mut Vec<u8>,
) -> Written {
    messages.iter().try_for_each(|message| {
        out.extend_from_slice(before);
        json::message(message, json::Binary::Refuse, out)?;
        out.extend_from_slice(behind);
        Ok(())
    })
}

fn write_protobuf(messages: &[ServerMessage], out: &mut Vec<u8>) -> Written {
    for message in messages {
        protobuf::message(message, out);
    }
    Ok(())
}

fn encode_json(batch: &Batch<'_>, before: &[u8], behind: &[u8], out: &mut Vec<u8>) -> Written {
    let channel = json::channel_member(batch);
    for (publication, delta) in batch.payloads.of(batch.publications) {
        out.extend_from_slice(before);
        let data = (batch.payloads, delta.as_ref());
        json::publication_push(&channel, publication, data, out)?;
        out.extend_from_slice(behind);
    }
    Ok(())
}

fn encode_protobuf(batch: &Batch<'_>, out: &mut Vec<u8>) -> Written {
    for (publication, delta) in batch.payloads.of(batch.publications) {
        let channel = batch.channel.as_str();
        protobuf::publication_push(channel, publication, delta.as_ref(), out);
    }
    Ok(())
}
