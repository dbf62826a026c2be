//! Encodes messages to one client as bytes for its transport.

use linerate_hub::Unencodable;
use linerate_proto::{Opcode, frame::OpenFrame};

use super::{Format, json, protobuf};
use crate::protocol::reply::ServerMessage;

/// How messages are framed for a transport.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Framing {
    /// Server-sent events for `EventSource`, in JSON.
    EventStream,
    /// A streaming response body.
    HttpStream(Format),
    /// WebSocket text frames in JSON; payloads that are not JSON are written as `b64data`.
    Native,
    /// WebSocket frames.
    WebSocket(Format),
}

/// Appends `messages` to `out` in their wire form: one WebSocket frame that contains all of them,
/// header included, or a piece of a body. If `messages` is empty, nothing is appended.
///
/// # Errors
/// A payload is not JSON, but the format requires JSON. `out` is unchanged in this case.
pub(crate) fn encode(
    framing: Framing,
    messages: &[ServerMessage],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    let start = out.len();
    let result = append(framing, messages, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append(
    framing: Framing,
    messages: &[ServerMessage],
    out: &mut Vec<u8>,
) -> Result<(), Unencodable> {
    if messages.is_empty() {
        return Ok(());
    }
    match framing {
        Framing::EventStream => messages.iter().try_for_each(|message| {
            out.extend_from_slice(b"data: ");
            json::message(message, json::Binary::Refuse, out)?;
            out.extend_from_slice(b"\n\n");
            Ok(())
        }),
        Framing::HttpStream(Format::Json) => messages.iter().try_for_each(|message| {
            json::message(message, json::Binary::Refuse, out)?;
            out.push(b'\n');
            Ok(())
        }),
        Framing::HttpStream(Format::Protobuf) => {
            for message in messages {
                protobuf::message(message, out);
            }
            Ok(())
        }
        Framing::Native => text_frame(messages, json::Binary::Base64, out),
        Framing::WebSocket(Format::Json) => text_frame(messages, json::Binary::Refuse, out),
        Framing::WebSocket(Format::Protobuf) => {
            let frame = OpenFrame::start(out);
            for message in messages {
                protobuf::message(message, out);
            }
            frame.finish(out, Opcode::Binary);
            Ok(())
        }
    }
}

fn text_frame(
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
