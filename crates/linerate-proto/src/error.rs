//! What can go wrong on an open connection: the peer's fault and ours.

use core::{error::Error, fmt, time::Duration};

use crate::{close::CloseCode, frame::Opcode};

/// The peer broke the rules; the connection must be failed (RFC 6455 §7.1.7).
///
/// [`close_code`](Self::close_code) is the only map from these errors to the wire.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A Close frame carries a code that must not be sent (§7.4).
    CloseCode {
        /// The code as it came.
        code: u16,
    },
    /// A Close frame has a payload of one byte (§5.5.1).
    CloseTooShort,
    /// A compressed message that has to wait for its rest finds no room in the
    /// [`Budget`](crate::deflate::Budget).
    #[cfg(feature = "deflate")]
    CompressionMemory {
        /// What it would take.
        bytes: usize,
        /// The limit for all connections together.
        bytes_max: usize,
    },
    /// A control frame is fragmented (§5.5).
    ControlFragmented {
        /// Which control frame.
        opcode: Opcode,
    },
    /// A control frame has more than 125 bytes (§5.5).
    ControlTooLong {
        /// The 7-bit length field: 126 or 127.
        length_field: u8,
    },
    /// A new message begins inside a fragmented one (§5.4).
    ExpectedContinuation {
        /// The opcode of the frame that came instead.
        opcode: Opcode,
    },
    /// A frame is larger than [`Limits::frame_bytes_max`](crate::Limits::frame_bytes_max).
    FrameTooBig {
        /// The length that its header claims.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A message shrank by more than [`Deflate::ratio_max`](crate::deflate::Deflate::ratio_max).
    #[cfg(feature = "deflate")]
    InflateRatio {
        /// Its bytes so far as they came.
        bytes: u64,
        /// Its bytes so far, inflated.
        inflated_bytes: u64,
        /// The limit.
        ratio_max: u32,
    },
    /// A compressed message is malformed, refers back too far, or is not whole (RFC 7692 §7.2.2).
    #[cfg(feature = "deflate")]
    InvalidCompression {
        /// How many bytes could be inflated.
        offset: u64,
    },
    /// Text, or the reason of a Close frame, is not UTF-8 (§8.1).
    InvalidUtf8 {
        /// The offset of the first byte that can't be part of valid text.
        offset: u64,
    },
    /// Nothing arrived after a keepalive Ping.
    KeepaliveTimeout {
        /// How long the peer had.
        timeout: Duration,
    },
    /// The 64-bit length has its most significant bit set (§5.2).
    LengthOverflow {
        /// The length as it came.
        bytes: u64,
    },
    /// A server sent a masked frame (§5.1).
    MaskedFrame,
    /// A message is larger than [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
    MessageTooBig {
        /// The bytes of the message so far and the length that the newest header claims.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The bit of compressed messages on a frame that does not begin a message (RFC 7692 §6).
    MisplacedCompression {
        /// Which frame.
        opcode: Opcode,
    },
    /// A length does not use the shortest form (§5.2).
    NonMinimalLength {
        /// The length.
        bytes: u64,
    },
    /// A reserved bit is set and no extension gives it a meaning (§5.2).
    ReservedBits {
        /// RSV1, RSV2 and RSV3 as the bits 4, 2 and 1.
        rsv: u8,
    },
    /// An opcode is one of the reserved (§5.2).
    ReservedOpcode {
        /// The opcode's four bits.
        opcode: u8,
    },
    /// A compressed message has more blocks that say that they are the last than are accepted.
    #[cfg(feature = "deflate")]
    TooManyFinalBlocks {
        /// The limit.
        blocks_max: u32,
    },
    /// A message has more frames than [`Limits::fragments_max`](crate::Limits::fragments_max).
    TooManyFragments {
        /// The limit.
        fragments_max: u32,
    },
    /// A continuation frame where no message is in progress (§5.4).
    UnexpectedContinuation,
    /// A client sent a frame that is not masked (§5.1).
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
            // RFC 7692 names no code.
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

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloseCode { code } => write!(f, "close code {code} must not be sent"),
            Self::CloseTooShort => f.write_str("close frame with a payload of one byte"),
            #[cfg(feature = "deflate")]
            Self::CompressionMemory { bytes, bytes_max } => write!(
                f,
                "{bytes} bytes to inflate an unfinished message exceed the budget of {bytes_max}"
            ),
            Self::ControlFragmented { opcode } => write!(f, "fragmented {opcode} frame"),
            Self::ControlTooLong { .. } => f.write_str("control frame of more than 125 bytes"),
            Self::ExpectedContinuation { opcode } => {
                write!(f, "{opcode} frame inside a fragmented message")
            }
            Self::FrameTooBig { bytes, bytes_max } => {
                write!(f, "frame of {bytes} bytes exceeds the limit of {bytes_max}")
            }
            #[cfg(feature = "deflate")]
            Self::InflateRatio {
                bytes,
                inflated_bytes,
                ratio_max,
            } => write!(
                f,
                "{bytes} bytes inflate to {inflated_bytes}, more than {ratio_max} times as many"
            ),
            #[cfg(feature = "deflate")]
            Self::InvalidCompression { offset } => {
                write!(f, "malformed compression after {offset} inflated bytes")
            }
            Self::InvalidUtf8 { offset } => write!(f, "invalid UTF-8 at byte {offset}"),
            Self::KeepaliveTimeout { timeout } => {
                write!(f, "nothing received for {timeout:?} after a ping")
            }
            Self::LengthOverflow { bytes } => write!(f, "payload length {bytes} exceeds 63 bits"),
            Self::MaskedFrame => f.write_str("masked frame from a server"),
            Self::MessageTooBig { bytes, bytes_max } => {
                write!(
                    f,
                    "message of {bytes} bytes or more exceeds the limit of {bytes_max}"
                )
            }
            Self::MisplacedCompression { opcode } => {
                write!(f, "compression bit on a {opcode} frame")
            }
            Self::NonMinimalLength { bytes } => {
                write!(f, "payload length {bytes} is not in its shortest form")
            }
            Self::ReservedBits { rsv } => write!(f, "reserved bits {rsv:03b} without an extension"),
            Self::ReservedOpcode { opcode } => write!(f, "reserved opcode {opcode:#x}"),
            #[cfg(feature = "deflate")]
            Self::TooManyFinalBlocks { blocks_max } => {
                write!(
                    f,
                    "more than {blocks_max} final blocks in a compressed message"
                )
            }
            Self::TooManyFragments { fragments_max } => {
                write!(f, "message of more than {fragments_max} fragments")
            }
            Self::UnexpectedContinuation => {
                f.write_str("continuation frame where no message is in progress")
            }
            Self::UnmaskedFrame => f.write_str("unmasked frame from a client"),
        }
    }
}

impl Error for ProtocolError {}

/// We were asked to send what can't be sent; the connection is unharmed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SendError {
    /// The reason of a Close frame is longer than 123 bytes (§5.5.1).
    CloseReasonTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// A Close frame has been sent or received; nothing may follow it (§5.5.1).
    Closed,
    /// The payload of a Ping or Pong is longer than 125 bytes (§5.5).
    ControlTooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The fragmented message that is being sent is compressed, so that its fragments can't be sent
    /// from where they are.
    MessageCompressed,
    /// A fragmented message is being sent; it must end before another one begins (§5.4).
    MessageInProgress,
    /// A fragment is to continue a message, and none is being sent.
    NoMessageInProgress,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CloseReasonTooLong { bytes } => {
                write!(f, "close reason of {bytes} bytes exceeds the limit of 123")
            }
            Self::Closed => f.write_str("connection is closing or closed"),
            Self::ControlTooLong { bytes } => {
                write!(
                    f,
                    "control payload of {bytes} bytes exceeds the limit of 125"
                )
            }
            Self::MessageCompressed => f.write_str("the message that is being sent is compressed"),
            Self::MessageInProgress => f.write_str("a fragmented message is still being sent"),
            Self::NoMessageInProgress => f.write_str("no fragmented message is being sent"),
        }
    }
}

impl Error for SendError {}
