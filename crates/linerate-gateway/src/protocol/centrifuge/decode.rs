//! Decodes the bytes of a client to commands.

use super::{json, protobuf};
use crate::protocol::{
    command::Command,
    decode::{DecodeError, Emulation, Limits},
};

/// The format of commands and replies.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Format {
    /// One JSON object per line.
    Json,
    /// Protobuf messages, each preceded by its length.
    Protobuf,
}

/// Decodes a frame of commands: the payload of a WebSocket message, or the body of a request.
///
/// Unknown fields are ignored. An unknown command becomes
/// [`Request::Unknown`](crate::protocol::command::Request::Unknown).
///
/// # Errors
/// Any part of the frame is not a valid command. In that case, none of its commands may be
/// executed.
pub(crate) fn decode(
    format: Format,
    frame: &[u8],
    limits: &Limits,
) -> Result<Vec<Command>, DecodeError> {
    let commands = match format {
        Format::Json => json::decode(frame, limits)?,
        Format::Protobuf => protobuf::decode(frame, limits)?,
    };
    if commands.is_empty() {
        return Err(DecodeError::Empty);
    }
    Ok(commands)
}

/// Decodes the body of a request to `/emulation`. Decode the frame in it with [`decode`].
///
/// # Errors
/// The body is not a valid emulation request.
pub(crate) fn decode_emulation(format: Format, body: &[u8]) -> Result<Emulation, DecodeError> {
    match format {
        Format::Json => json::decode_emulation(body),
        Format::Protobuf => protobuf::decode_emulation(body),
    }
}
