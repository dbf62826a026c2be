//! Centrifuge on WebSockets.

use std::convert::Infallible;

use linerate_hub::{Batch, Unencodable};
use linerate_proto::{Opcode, frame::OpenFrame};

use super::{json, protobuf};
use crate::protocol::{
    dialect::{
        Commands, Dialect, GapNotice, SessionKind, Transport, WEBSOCKET, WebSocketTransport,
    },
    pieces::Frames,
    reply::ServerMessage,
};

pub(in crate::protocol) const PATH: &str = "/connection/websocket";

/// JSON in text frames, one line per command, reply or push. Used without a subprotocol as well.
pub(crate) static JSON: Dialect = Dialect {
    name: (super::JSON, WEBSOCKET),
    path: PATH,
    accepts: |_| true,
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: Some(super::JSON),
        farewell: Clone::clone,
        has_exceptions: false,
    }),
    session: SessionKind::Commands(Commands {
        read: json::decode,
        read_binary: None,
        write: |messages, out| append_text(messages, json::Binary::Refuse, out),
        connects: None,
        heartbeat: None,
        greeting: None,
        has_server_subscriptions: true,
        has_positions: true,
        has_deltas: true,
        has_compaction: true,
        first_in_query: None,
        first_in_body: false,
    }),
    encode: encode_json,
    gaps: GapNotice::None,
};

/// Protobuf in binary frames, each message preceded by its length.
pub(crate) static PROTOBUF: Dialect = Dialect {
    name: (super::PROTOBUF, WEBSOCKET),
    path: PATH,
    accepts: |opening| opening.subprotocol == Some(super::PROTOBUF) || asks_protobuf(opening.query),
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: Some(super::PROTOBUF),
        farewell: Clone::clone,
        has_exceptions: false,
    }),
    session: SessionKind::Commands(Commands {
        read: protobuf::decode,
        read_binary: None,
        write: append_binary,
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
        first_in_body: false,
    }),
    encode: encode_protobuf,
    gaps: GapNotice::None,
};

fn asks_protobuf(query: &str) -> bool {
    url::form_urlencoded::parse(query.as_bytes())
        .any(|(key, value)| matches!(&*key, "cf_protocol" | "format") && value == "protobuf")
}

/// Appends messages as one text frame with a line for each.
pub(in crate::protocol) fn append_text(
    messages: &[ServerMessage],
    binary: json::Binary,
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let frame = OpenFrame::start(out);
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        json::message(message, binary, out)?;
    }
    frame.finish(out, Opcode::Text);
    Ok(())
}

fn append_binary(messages: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let frame = OpenFrame::start(out);
    for message in messages {
        protobuf::message(message, out);
    }
    frame.finish(out, Opcode::Binary);
    Ok(())
}

fn encode_json(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let channel = json::channel_member(batch);
    let mut frames = Frames::open(out, Opcode::Text, b"\n");
    for (publication, delta) in batch.payloads.of(batch.publications) {
        let data = (batch.payloads, delta.as_ref());
        frames.piece(|out| json::publication_push(&channel, publication, data, out))?;
    }
    frames.close();
    Ok(())
}

fn encode_protobuf(batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
    let mut frames = Frames::open(out, Opcode::Binary, b"");
    for (publication, delta) in batch.payloads.of(batch.publications) {
        let push = |out: &mut Vec<u8>| {
            let channel = batch.channel.as_str();
            protobuf::publication_push(channel, publication, delta.as_ref(), out);
            Ok::<(), Infallible>(())
        };
        let Ok(()) = frames.piece(push);
    }
    frames.close();
    Ok(())
}
