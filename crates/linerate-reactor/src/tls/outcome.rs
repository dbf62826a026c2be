//! What processing the input of a TLS connection yields.

use std::io;

#[cfg(feature = "rustls")]
use rustls::AlertDescription;

/// Ciphertext to be written; each element contains one record or more.
pub(crate) type Sealed = Vec<Vec<u8>>;

/// The reason that one side reports before it ends the connection (RFC 8446 §6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Alert(pub(super) u8);

impl Alert {
    /// No more data follows.
    pub(crate) const CLOSE_NOTIFY: Self = Self(0);
}

/// The secrets of a TLS connection cannot be exported.
#[cfg(unix)]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SecretsUnavailable;

/// The error after which a TLS connection cannot continue.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// The alert to send to the peer, unless one has been sent already.
    pub(crate) alert: Option<Alert>,
    /// The cause, if it is of interest to the application.
    pub(crate) cause: Option<io::Error>,
}

#[cfg(feature = "rustls")]
impl Failed {
    /// Returns the cause as an error.
    pub(super) fn into_error(self) -> io::Error {
        let unknown =
            || io::Error::new(io::ErrorKind::InvalidData, "TLS protocol violated by peer");
        self.cause.unwrap_or_else(unknown)
    }

    /// Returns a failure that is reported to the peer with this alert.
    pub(super) fn telling(alert: AlertDescription) -> Self {
        Self {
            alert: Some(Alert(alert.into())),
            cause: None,
        }
    }
}

#[cfg(feature = "rustls")]
impl From<io::Error> for Failed {
    /// A failure that the peer is not told.
    fn from(cause: io::Error) -> Self {
        Self {
            alert: None,
            cause: Some(cause),
        }
    }
}

/// The result of processing a part of the input.
pub(crate) struct Processed {
    /// How many bytes of the input were processed.
    pub(crate) bytes: usize,
    pub(crate) plaintext: Plaintext,
    pub(crate) outcome: Outcome,
}

/// The location of the plaintext.
#[cfg_attr(
    not(feature = "rustls"),
    expect(dead_code, reason = "never constructed without TLS")
)]
pub(crate) enum Plaintext {
    /// The given number of bytes at the start of the input.
    InPlace(usize),
    /// The given number of bytes at the start of this memory. The record arrived in pieces.
    Joined(Vec<u8>, usize),
}

/// How the stream from the peer continues after the plaintext.
#[cfg_attr(
    not(feature = "rustls"),
    expect(dead_code, reason = "never constructed without TLS")
)]
pub(crate) enum Outcome {
    Continues,
    /// The peer has closed its side.
    Ended,
    Failed(Failed),
}
