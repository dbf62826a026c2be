//! From a client's bytes to its commands.

use super::{Command, json, protobuf};

/// How commands and replies are written.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Format {
    /// A JSON object a line.
    Json,
    /// Protobuf messages, each behind its length.
    Protobuf,
}

/// How much a client may say at once. How many bytes is the transport's business.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The most commands in a frame. An SDK sends all its subscriptions in one when it connects.
    pub commands_max: usize,
    /// The most levels of nesting in JSON, payloads included. Some clients can't read what is deeper.
    pub depth_max: usize,
}

/// Why bytes are no commands. None of those in the frame may be done; the connection is to be ended with
/// [`BAD_REQUEST`](super::Disconnect::BAD_REQUEST).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// Not a single command.
    #[error("frame without a command")]
    Empty,
    /// Not JSON, or not the JSON of a command.
    #[error("command {nth} is malformed JSON at byte {at} of its line")]
    Json {
        /// Which command of the frame, from 1.
        nth: usize,
        /// Where it was seen.
        at: usize,
    },
    /// A command without an id that must have one.
    #[error("command {nth} needs an id")]
    MissingId {
        /// Which command of the frame, from 1.
        nth: usize,
    },
    /// Not Protobuf, or not that of a command.
    #[error("command {nth} is malformed Protobuf")]
    Protobuf {
        /// Which command of the frame, from 1.
        nth: usize,
    },
    /// JSON within JSON within JSON.
    #[error("command {nth} is nested deeper than {depth_max} levels")]
    TooDeep {
        /// Which command of the frame, from 1.
        nth: usize,
        /// How deep it may be.
        depth_max: usize,
    },
    /// More commands than allowed.
    #[error("frame has more than {commands_max} commands")]
    TooManyCommands {
        /// How many there may be.
        commands_max: usize,
    },
}

/// Commands that come by a request of their own, beside a stream over HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Emulation {
    /// The node that has the stream.
    pub node: String,
    /// The stream.
    pub session: String,
    /// A frame of commands.
    pub frame: Vec<u8>,
}

impl Default for Limits {
    /// 1,024 commands, 64 levels.
    fn default() -> Self {
        Self {
            commands_max: 1_024,
            depth_max: 64,
        }
    }
}

/// Decodes a frame of commands: the payload of a WebSocket message, or the body of a request.
///
/// Unknown fields are passed over. A command of an unknown kind is [`Request::Unknown`](super::Request::Unknown).
///
/// # Errors
/// Anything in the frame is no command; then none of it may be done.
///
/// ```
/// use linerate_gateway::protocol::centrifuge::{Format, Limits, Request, decode};
///
/// let commands = decode(Format::Json, b"{\"id\":1,\"ping\":{}}\n{}", &Limits::default())?;
/// assert_eq!(commands[0].id, 1);
/// assert_eq!(commands[0].request, Request::Ping);
/// assert_eq!(commands[1].request, Request::Pong);
/// # Ok::<(), linerate_gateway::protocol::centrifuge::DecodeError>(())
/// ```
pub fn decode(format: Format, frame: &[u8], limits: &Limits) -> Result<Vec<Command>, DecodeError> {
    let commands = match format {
        Format::Json => json::decode(frame, limits)?,
        Format::Protobuf => protobuf::decode(frame, limits)?,
    };
    if commands.is_empty() {
        return Err(DecodeError::Empty);
    }
    Ok(commands)
}

/// Decodes the body of a request to `/emulation`. The frame in it is for [`decode`].
///
/// # Errors
/// It is none.
pub fn decode_emulation(format: Format, body: &[u8]) -> Result<Emulation, DecodeError> {
    match format {
        Format::Json => json::decode_emulation(body),
        Format::Protobuf => protobuf::decode_emulation(body),
    }
}
