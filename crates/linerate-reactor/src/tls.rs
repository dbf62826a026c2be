//! TLS by rustls, for `wss://`, without buffers of its own: records are decrypted where they were
//! read, and output is encrypted from where it lies.
//!
//! rustls negotiates (its unbuffered interface) and keeps the secrets; the records that follow are
//! ours, by the ciphers of the provider that the configuration was made with. The unbuffered
//! interface of rustls 0.23 could do these too, but copies each record that it decrypts into memory
//! that it allocates for it. Decrypting allocates nothing here. Encrypting allocates the memory of
//! each record, because a rustls cipher returns it (`MessageEncrypter`); it is written from there.
//!
//! What is configured away, whatever a configuration says: early data, which an attacker can replay
//! (RFC 8446 §8), and application protocols other than HTTP/1.1.

use std::io;

#[cfg(feature = "rustls")]
mod end;
#[cfg(feature = "rustls")]
mod handshake;
#[cfg(feature = "rustls")]
mod record;
#[cfg(feature = "rustls")]
mod session;

#[cfg(not(feature = "rustls"))]
#[path = "tls/absent.rs"]
mod end;

#[cfg(all(test, feature = "rustls"))]
mod tests;

pub(crate) use end::{Peer, ServerConfig, Tls};
#[cfg(feature = "rustls")]
pub(crate) use end::{prepare_client, prepare_server};

/// Ciphertext that is to be written, a record or more each.
pub(crate) type Sealed = Vec<Vec<u8>>;

/// What one side tells the other before it ends the connection (RFC 8446 §6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Alert(u8);

impl Alert {
    /// Nothing follows.
    pub(crate) const CLOSE_NOTIFY: Self = Self(0);
}

/// The connection can't go on.
#[derive(Debug, Default)]
pub(crate) struct Failed {
    /// What is to be told to the peer, where nothing has said so yet.
    pub(crate) alert: Option<Alert>,
    /// What was wrong with it, if that may interest somebody.
    pub(crate) cause: Option<io::Error>,
}

/// What a part of the input came to.
pub(crate) struct Taken {
    /// How many bytes it was.
    pub(crate) bytes: usize,
    pub(crate) plaintext: Plaintext,
    pub(crate) outcome: Outcome,
}

/// Where the plaintext is.
#[cfg_attr(
    not(feature = "rustls"),
    expect(dead_code, reason = "nothing is taken without TLS")
)]
pub(crate) enum Plaintext {
    /// So many bytes at the start of the input.
    InPlace(usize),
    /// At the start of this memory, so many bytes; the record had arrived in pieces.
    Joined(Vec<u8>, usize),
}

/// How the stream from the peer goes on behind the plaintext.
#[cfg_attr(
    not(feature = "rustls"),
    expect(dead_code, reason = "nothing is taken without TLS")
)]
pub(crate) enum Outcome {
    Continues,
    /// The peer has closed its side.
    Ended,
    Failed(Failed),
}
