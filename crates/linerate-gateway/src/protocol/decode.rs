//! What the decoders of commands share: limits and errors.

/// The limits on one frame of commands. The transport limits its bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Limits {
    /// The maximum number of commands in a frame. An SDK sends all its subscriptions in one frame
    /// when it connects.
    pub commands_max: usize,
    /// The maximum nesting depth of JSON, payloads included. Some clients cannot parse deeper JSON.
    pub depth_max: usize,
}

/// Why a frame cannot be decoded. None of its commands may be executed, and the connection must be
/// closed with [`BAD_REQUEST`](super::codes::Disconnect::BAD_REQUEST).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DecodeError {
    /// The frame contains no command.
    #[error("frame without a command")]
    Empty,
    /// The bytes are not JSON, or not the JSON of a command.
    #[error("command {nth} is malformed JSON at byte {at} of its line")]
    Json {
        /// The number of the command in the frame, counted from 1.
        nth: usize,
        /// The position of the error, in bytes.
        at: usize,
    },
    /// A command that needs an ID has none.
    #[error("command {nth} needs an id")]
    MissingId {
        /// The number of the command in the frame, counted from 1.
        nth: usize,
    },
    /// The message is not a packet of Socket.IO, or not a binary message of Phoenix.
    #[error("malformed packet: {what}")]
    Packet {
        /// The part that is malformed.
        what: &'static str,
    },
    /// The bytes are not Protobuf, or not the Protobuf of a command.
    #[error("command {nth} is malformed Protobuf")]
    Protobuf {
        /// The number of the command in the frame, counted from 1.
        nth: usize,
    },
    /// The JSON is nested too deeply.
    #[error("command {nth} is nested deeper than {depth_max} levels")]
    TooDeep {
        /// The number of the command in the frame, counted from 1.
        nth: usize,
        /// The maximum nesting depth.
        depth_max: usize,
    },
    /// A part of the command is too long.
    #[error("{what} has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// The part.
        what: &'static str,
        /// Its length, in bytes.
        bytes: usize,
        /// The maximum length, in bytes.
        bytes_max: usize,
    },
    /// The frame has too many commands.
    #[error("frame has more than {commands_max} commands")]
    TooManyCommands {
        /// The maximum number of commands.
        commands_max: usize,
    },
}

/// Commands sent in a separate request, for a client with a one-way stream over HTTP.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Emulation {
    /// The ID of the node that serves the stream.
    pub node: String,
    /// The ID of the stream's session.
    pub session: String,
    /// A frame of commands.
    pub frame: Vec<u8>,
}

impl Default for Limits {
    /// Allows 1,024 commands and 64 levels.
    fn default() -> Self {
        Self {
            commands_max: 1_024,
            depth_max: 64,
        }
    }
}
