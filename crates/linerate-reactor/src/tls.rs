//! TLS for `wss://`, with rustls but without additional buffers: records are decrypted where they
//! were read, and output is encrypted from where it is.
//!
//! rustls performs the handshake, with its unbuffered interface. The records that follow are
//! handled here, with the ciphers of the provider in the configuration. The unbuffered interface of
//! rustls 0.23 could handle them as well, but it copies each record that it decrypts into newly
//! allocated memory. Decrypting does not allocate here. Encrypting allocates memory for each
//! record, because a rustls cipher returns it (`MessageEncrypter`); the record is written from that
//! memory.
//!
//! The secrets of a server are kept here too, because its connections must be able to move to
//! another process. rustls keeps those of a client, which it needs for session tickets.
//!
//! Two features are turned off regardless of the configuration: early data, which an attacker can
//! replay (RFC 8446 §8), and application protocols other than HTTP/1.1.

#[cfg(feature = "rustls")]
pub(crate) mod adopted;
#[cfg(feature = "rustls")]
mod capture;
#[cfg(feature = "rustls")]
mod connection;
#[cfg(feature = "rustls")]
mod handshake;
#[cfg(feature = "rustls")]
pub(crate) mod info;
#[cfg(feature = "rustls")]
mod key;
#[cfg(all(unix, feature = "rustls"))]
mod portable;
#[cfg(feature = "rustls")]
mod record;
#[cfg(feature = "rustls")]
mod schedule;
#[cfg(feature = "rustls")]
mod session;

#[cfg(not(feature = "rustls"))]
#[path = "tls/absent.rs"]
mod connection;
#[cfg(not(feature = "rustls"))]
pub(crate) use connection::adopted;

pub(crate) mod outcome;
#[cfg(all(test, feature = "rustls"))]
mod tests;

pub(crate) use connection::{Peer, ServerConfig, Tls};
#[cfg(feature = "rustls")]
pub(crate) use connection::{prepare_client, prepare_server};
