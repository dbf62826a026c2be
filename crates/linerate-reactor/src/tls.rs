//! TLS for `wss://`, with rustls but without additional buffers: records are decrypted where they
//! were read, and output is encrypted from where it is.
//!
//! rustls performs the handshake (with its unbuffered interface) and keeps the secrets. The records
//! that follow are handled here, with the ciphers of the provider in the configuration. The
//! unbuffered interface of rustls 0.23 could handle them as well, but it copies each record that it
//! decrypts into newly allocated memory. Decrypting does not allocate here. Encrypting allocates
//! memory for each record, because a rustls cipher returns it (`MessageEncrypter`); the record is
//! written from that memory.
//!
//! Two features are turned off regardless of the configuration: early data, which an attacker can
//! replay (RFC 8446 §8), and application protocols other than HTTP/1.1.

use std::io;

#[cfg(feature = "rustls")]
mod connection;
#[cfg(feature = "rustls")]
mod handshake;
#[cfg(feature = "rustls")]
mod record;
#[cfg(feature = "rustls")]
mod session;

#[cfg(not(feature = "rustls"))]
#[path = "tls/absent.rs"]
mod connection;

#[cfg(all(test, feature = "rustls"))]
mod tests;

pub(crate) use connection::{Peer, ServerConfig, Tls};
#[cfg(feature = "rustls")]
pub(crate) use connection::{prepare_client, prepare_server};

/// Ciphertext to be written; each element contains one record or more.
pub(crate) type Sealed = Vec<Vec<u8>>;

/// The reason that one side reports before it ends the connection (RFC 8446 §6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Alert(u8);

impl Alert {
    /// No more data follows.
    pub(crate) const CLOSE_NOTIFY: Self = Self(0);
}

/// The error after which a TLS connection cannot continue.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// The alert to send to the peer, unless one has been sent already.
    pub(crate) alert: Option<Alert>,
    /// The cause, if it is of interest to the application.
    pub(crate) cause: Option<io::Error>,
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
