//! Errors of the peer, and the codes that report them (RFC 9114 §8, RFC 9204 §6).

use std::io;

use quinn::VarInt;

/// An HTTP/3 error code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Code(u32);

impl Code {
    /// The connection is closed without an error (`H3_NO_ERROR`).
    pub const NO_ERROR: Self = Self(0x100);
    pub(crate) const STREAM_CREATION_ERROR: Self = Self(0x103);
    pub(crate) const CLOSED_CRITICAL_STREAM: Self = Self(0x104);
    pub(crate) const FRAME_UNEXPECTED: Self = Self(0x105);
    pub(crate) const FRAME_ERROR: Self = Self(0x106);
    pub(crate) const EXCESSIVE_LOAD: Self = Self(0x107);
    pub(crate) const ID_ERROR: Self = Self(0x108);
    pub(crate) const SETTINGS_ERROR: Self = Self(0x109);
    pub(crate) const MISSING_SETTINGS: Self = Self(0x10a);
    pub(crate) const REQUEST_REJECTED: Self = Self(0x10b);
    pub(crate) const REQUEST_CANCELLED: Self = Self(0x10c);
    pub(crate) const REQUEST_INCOMPLETE: Self = Self(0x10d);
    pub(crate) const MESSAGE_ERROR: Self = Self(0x10e);
    pub(crate) const QPACK_DECOMPRESSION_FAILED: Self = Self(0x200);
    pub(crate) const QPACK_ENCODER_STREAM_ERROR: Self = Self(0x201);
    pub(crate) const QPACK_DECODER_STREAM_ERROR: Self = Self(0x202);
}

impl From<Code> for VarInt {
    fn from(code: Code) -> Self {
        Self::from_u32(code.0)
    }
}

/// The scope of a fault: what must be closed because of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    Connection,
    Stream,
}

/// A violation of the protocol by the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("peer violated HTTP/3: {what} ({:#x})", code.0)]
pub(crate) struct Fault {
    pub(crate) code: Code,
    pub(crate) scope: Scope,
    what: &'static str,
}

impl Fault {
    pub(crate) const fn connection(code: Code, what: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Connection,
            what,
        }
    }

    pub(crate) const fn stream(code: Code, what: &'static str) -> Self {
        Self {
            code,
            scope: Scope::Stream,
            what,
        }
    }

    /// Closes the connection if the fault requires it. Resetting the stream is left to the caller.
    pub(crate) fn close(&self, connection: &quinn::Connection) {
        if self.scope == Scope::Connection {
            connection.close(self.code.into(), self.what.as_bytes());
        }
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}

/// The reason why no more input arrives: a fault, or the loss of the stream or the connection.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) enum Failure {
    Fault(#[from] Fault),
    Lost(io::Error),
}

impl From<quinn::ReadError> for Failure {
    fn from(error: quinn::ReadError) -> Self {
        Self::Lost(error.into())
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Fault(fault) => fault.into(),
            Failure::Lost(error) => error,
        }
    }
}
