//! Why a state cannot be exported or imported.

use super::Version;
use crate::role::Role;

/// The state of a connection cannot be exported now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// A compressed message is arriving, and the connection did not keep what is needed to continue
    /// it: see [`Deflate::exportable`](crate::deflate::Deflate::exportable).
    #[error("compressed message is arriving; wait for its end, or set `Deflate::exportable`")]
    CompressedMessage,
}

/// An exported state cannot be imported.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The connection compresses messages, and this program was built without the feature
    /// `deflate`.
    #[error("compression was negotiated, and this program was built without it")]
    Compression,
    /// A field has a value that no connection can have.
    #[error("invalid {field}: {value}")]
    Invalid {
        /// The name of the field.
        field: &'static str,
        /// The value, or the length of a field that holds bytes.
        value: u64,
    },
    /// The state is that of the other end of a connection.
    #[error("state is that of a {found:?}, and the endpoint is a {expected:?}")]
    Role {
        /// The role in the state.
        found: Role,
        /// The role of the endpoint.
        expected: Role,
    },
    /// A field with bytes is longer than it can be.
    #[error("{field} has {bytes} bytes, and the limit is {bytes_max}")]
    TooLong {
        /// The name of the field.
        field: &'static str,
        /// The length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// There are bytes after the end of the state.
    #[error("{bytes} bytes after the end of the state")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// The state ends before or inside a field.
    #[error("state ends in {field}, which needs {bytes} bytes more")]
    Truncated {
        /// The name of the field.
        field: &'static str,
        /// The number of bytes that are missing.
        bytes: usize,
    },
    /// The state has a version that this program does not read.
    #[error(
        "state has version {found}, and this program reads versions {} to {}",
        Version::OLDEST.number(),
        Version::NEWEST.number()
    )]
    Version {
        /// The version of the state.
        found: u16,
    },
}
