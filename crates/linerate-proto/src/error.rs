//! Errors on an open connection: those of the peer and those of the caller.

use core::time::Duration;

use crate::{close_code::CloseCode, opcode::Opcode};

/// The peer violated the protocol or a limit; the connection must be failed (RFC 6455 §7.1.7).
///
/// [`close_code`](Self::close_code) maps each error to the code that is sent to the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A Close frame carries a code that must not be sent (§7.4).
    #[error("close code {code} must not be sent")]
    CloseCode {
        /// The code that was received.
        code: u16,
    },
    /// A Close frame has a payload of one byte (§5.5.1).
    #[error("close frame with a payload of one byte")]
    CloseTooShort,
    /// The memory to inflate an unfinished compressed message does not fit into the
    /// [`Budget`](crate::deflate::Budget).
    #[cfg(feature = "deflate")]
    #[error("no room for {bytes} bytes in the compression budget of {bytes_max} bytes")]
    CompressionMemory {
        /// The bytes that the message needs.
        bytes: usize,
        /// The limit for all connections together, in bytes.
        bytes_max: usize,
    },
    /// A control frame is fragmented (§5.5).
    #[error("fragmented {opcode} frame")]
    ControlFragmented {
        /// The opcode of the control frame.
        opcode: Opcode,
    },
    /// A control frame has more than 125 bytes (§5.5).
    #[error("control frame of more than 125 bytes")]
    ControlTooLong {
        /// The 7-bit length field: 126 or 127.
        length_field: u8,
    },
    /// A new message begins inside a fragmented one (§5.4).
    #[error("{opcode} frame inside a fragmented message")]
    ExpectedContinuation {
        /// The opcode of the frame that was received instead of a continuation.
        opcode: Opcode,
    },
    /// A frame is larger than [`Limits::frame_bytes_max`](crate::Limits::frame_bytes_max).
    #[error("frame of {bytes} bytes exceeds the limit of {bytes_max}")]
    FrameTooBig {
        /// The payload length in the frame's header, in bytes.
        bytes: u64,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// The compression ratio of a message exceeds
    /// [`Deflate::ratio_max`](crate::deflate::Deflate::ratio_max).
    #[cfg(feature = "deflate")]
    #[error("{bytes} bytes inflated to {inflated_bytes}, over the ratio limit of {ratio_max}")]
    InflateRatio {
        /// The compressed bytes received so far.
        bytes: u64,
        /// The bytes that these inflated to.
        inflated_bytes: u64,
        /// The largest allowed ratio of `inflated_bytes` to `bytes`.
        ratio_max: u32,
    },
    /// A compressed message is malformed, refers back too far, or is incomplete (RFC 7692 §7.2.2).
    #[cfg(feature = "deflate")]
    #[error("invalid compressed data after {offset} inflated bytes")]
    InvalidCompression {
        /// The number of bytes that were inflated before the error.
        offset: u64,
    },
    /// Text, or the reason of a Close frame, is not UTF-8 (§8.1).
    #[error("invalid UTF-8 at byte {offset}")]
    InvalidUtf8 {
        /// The offset, in bytes, of the first byte that cannot be part of valid text.
        offset: u64,
    },
    /// Nothing arrived after a keepalive Ping.
    #[error("nothing received for {timeout:?} after a ping")]
    KeepaliveTimeout {
        /// How long the peer had to respond.
        timeout: Duration,
    },
    /// The 64-bit length has its most significant bit set (§5.2).
    #[error("payload length {bytes} exceeds 63 bits")]
    LengthOverflow {
        /// The length that was received, in bytes.
        bytes: u64,
    },
    /// A server sent a masked frame (§5.1).
    #[error("masked frame from a server")]
    MaskedFrame,
    /// A message is larger than [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
    #[error("message of {bytes} bytes or more exceeds the limit of {bytes_max}")]
    MessageTooBig {
        /// The size of the message so far, in bytes, including the length in the newest header.
        bytes: u64,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// The bit that marks a compressed message is set on a frame that does not begin a message
    /// (RFC 7692 §6).
    #[error("compression bit on a {opcode} frame")]
    MisplacedCompression {
        /// The opcode of the frame.
        opcode: Opcode,
    },
    /// A length is not encoded in its shortest form (§5.2).
    #[error("payload length {bytes} is not in its shortest form")]
    NonMinimalLength {
        /// The length, in bytes.
        bytes: u64,
    },
    /// A reserved bit is set and no extension gives it a meaning (§5.2).
    #[error("reserved bits {rsv:03b} without an extension")]
    ReservedBits {
        /// RSV1, RSV2 and RSV3 as bits with the values 4, 2 and 1.
        rsv: u8,
    },
    /// A frame has a reserved opcode (§5.2).
    #[error("reserved opcode {opcode:#x}")]
    ReservedOpcode {
        /// The four bits of the opcode.
        opcode: u8,
    },
    /// A compressed message contains too many blocks that are marked as final.
    #[cfg(feature = "deflate")]
    #[error("more than {blocks_max} final blocks in a compressed message")]
    TooManyFinalBlocks {
        /// The largest allowed number of final blocks in one message.
        blocks_max: u32,
    },
    /// A message has more frames than [`Limits::fragments_max`](crate::Limits::fragments_max).
    #[error("message of more than {fragments_max} fragments")]
    TooManyFragments {
        /// The limit.
        fragments_max: u32,
    },
    /// A continuation frame arrived while no message was in progress (§5.4).
    #[error("continuation frame where no message is in progress")]
    UnexpectedContinuation,
    /// A client sent an unmasked frame (§5.1).
    #[error("unmasked frame from a client")]
    UnmaskedFrame,
}

impl ProtocolError {
    /// Returns the code to send in the Close frame (RFC 6455 §7.4.1).
    pub const fn close_code(&self) -> CloseCode {
        match self {
            Self::CloseCode { .. }
            | Self::CloseTooShort
            | Self::ControlFragmented { .. }
            | Self::ControlTooLong { .. }
            | Self::ExpectedContinuation { .. }
            | Self::LengthOverflow { .. }
            | Self::MaskedFrame
            | Self::MisplacedCompression { .. }
            | Self::NonMinimalLength { .. }
            | Self::ReservedBits { .. }
            | Self::ReservedOpcode { .. }
            | Self::UnexpectedContinuation
            | Self::UnmaskedFrame => CloseCode::PROTOCOL_ERROR,
            // RFC 7692 does not specify a code.
            #[cfg(feature = "deflate")]
            Self::InvalidCompression { .. } => CloseCode::INVALID_PAYLOAD,
            #[cfg(feature = "deflate")]
            Self::CompressionMemory { .. } => CloseCode::TRY_AGAIN_LATER,
            #[cfg(feature = "deflate")]
            Self::InflateRatio { .. } => CloseCode::MESSAGE_TOO_BIG,
            #[cfg(feature = "deflate")]
            Self::TooManyFinalBlocks { .. } => CloseCode::POLICY_VIOLATION,
            Self::InvalidUtf8 { .. } => CloseCode::INVALID_PAYLOAD,
            Self::TooManyFragments { .. } => CloseCode::POLICY_VIOLATION,
            Self::FrameTooBig { .. } | Self::MessageTooBig { .. } => CloseCode::MESSAGE_TOO_BIG,
            Self::KeepaliveTimeout { .. } => CloseCode::INTERNAL_ERROR,
        }
    }
}

/// The caller asked to send something that cannot be sent; the connection is not affected.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The reason of a Close frame is longer than 123 bytes (§5.5.1).
    #[error("close reason of {bytes} bytes exceeds the limit of 123")]
    CloseReasonTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A Close frame has been sent or received; nothing may follow it (§5.5.1).
    #[error("connection is closing or closed")]
    Closed,
    /// The payload of a Ping or Pong is longer than 125 bytes (§5.5).
    #[error("control payload of {bytes} bytes exceeds the limit of 125")]
    ControlTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The fragmented message that is being sent is compressed, so its fragments cannot be sent
    /// from the caller's memory unchanged.
    #[error("the message being sent is compressed; continue it with send_fragment")]
    MessageCompressed,
    /// A fragmented message is being sent; it must end before another message begins (§5.4).
    #[error("a fragmented message is still being sent")]
    MessageInProgress,
    /// A fragment should continue a message, but no message is being sent.
    #[error("no fragmented message is being sent")]
    NoMessageInProgress,
}
