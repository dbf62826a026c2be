//! WebSockets over HTTP/3, each on its own stream (RFC 9220).
//!
//! QUIC comes from quinn. The HTTP/3 layer on its streams is our own, because no crate supports
//! WebSockets there: frames, settings, and header fields that use only the static table of QPACK.
//! As a result, no message ever waits for another stream, and flow-control windows limit all the
//! memory that a peer can make us use.
//!
//! | module | contents |
//! | --- | --- |
//! | `client` | one stream, from the client's side |
//! | `closing` | closes a connection when its last user is gone |
//! | `connection` | the streams of one connection, from the server's side |
//! | `control` | the peer's control stream |
//! | `exchange` | header fields as they arrive on a stream |
//! | `fault` | errors of the peer, and the codes that report them |
//! | `frame` | frame headers |
//! | `incoming` | a stream opened by a client |
//! | `limits` | the limits of a connection |
//! | `message` | requests and responses as header fields |
//! | `peer` | the peer's unidirectional streams |
//! | `qpack` | encoding and decoding of header fields |
//! | `quic` | QUIC configuration |
//! | `settings` | the settings that the two sides exchange first |
//! | `stream` | one stream as a byte stream |
//! | `varint` | variable-length integers |

mod client;
mod closing;
mod connection;
mod control;
mod exchange;
mod fault;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod incoming;
mod limits;
mod message;
mod peer;
mod qpack;
mod quic;
mod settings;
mod stream;
mod varint;

pub(crate) use client::connect;
pub(crate) use connection::serve_connection;
pub(crate) use fault::Code;
pub(crate) use incoming::{Asked, Incoming};
pub use limits::Http3Limits;
pub(crate) use message::acceptance;
pub(crate) use quic::{client_config, server_config};
