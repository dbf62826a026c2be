//! The kinds of frames and messages (RFC 6455 §5.2, §5.6).

use core::fmt;

/// The kind of a frame (RFC 6455 §5.2).
///
/// Complete: the other ten values are reserved, and a frame that has one is an error.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "RFC 6455 §5.2 has six opcodes")]
pub enum Opcode {
    /// 0x2: a binary message, or its first fragment.
    Binary = 0x2,
    /// 0x8: starts or answers the closing handshake.
    Close = 0x8,
    /// 0x0: a further fragment of a message.
    Continuation = 0x0,
    /// 0x9: asks for a Pong.
    Ping = 0x9,
    /// 0xA: answers a Ping.
    Pong = 0xA,
    /// 0x1: a text message, or its first fragment.
    Text = 0x1,
}

impl Opcode {
    /// Returns the opcode that has these four bits, `None` if they are reserved.
    #[inline]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0x0 => Some(Self::Continuation),
            0x1 => Some(Self::Text),
            0x2 => Some(Self::Binary),
            0x8 => Some(Self::Close),
            0x9 => Some(Self::Ping),
            0xA => Some(Self::Pong),
            _ => None,
        }
    }

    /// Returns whether this is the opcode of a control frame (§5.5).
    #[inline]
    pub const fn is_control(self) -> bool {
        self as u8 & 0x8 != 0
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Binary => "binary",
            Self::Close => "close",
            Self::Continuation => "continuation",
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Text => "text",
        })
    }
}

/// The kind of a message (RFC 6455 §5.6).
///
/// This enum is exhaustive: all other opcodes belong to control frames or are reserved.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "RFC 6455 §5.6 has two kinds of messages"
)]
pub enum MessageKind {
    /// Arbitrary bytes.
    Binary,
    /// UTF-8 text.
    Text,
}

impl MessageKind {
    /// Returns the opcode of the first frame of a message of this kind.
    #[inline]
    pub const fn opcode(self) -> Opcode {
        match self {
            Self::Binary => Opcode::Binary,
            Self::Text => Opcode::Text,
        }
    }
}
