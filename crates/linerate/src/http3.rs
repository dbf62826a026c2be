//! WebSockets over HTTP/3, each on a stream of its own (RFC 9220).
//!
//! QUIC is quinn's. What HTTP/3 puts on its streams is ours: frames, settings, and header fields with
//! the static table of QPACK only, since no crate has it with WebSockets. So nothing of a message ever waits
//! for another stream, and all that a peer can make us keep is bounded by windows.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `client` | one stream, from the client's side |
//! | `closing` | connections that end with those who need them |
//! | `connection` | the streams of one connection, from the server's side |
//! | `control` | what the peer says about the connection |
//! | `exchange` | fields as they come on a stream |
//! | `fault` | what peers do wrong, and how they are told |
//! | `frame` | the heads of frames |
//! | `incoming` | a stream that a client has opened |
//! | `limits` | how much one connection may ask for |
//! | `message` | requests and responses made of fields |
//! | `peer` | the streams on which the peer speaks about the connection |
//! | `qpack` | fields as bytes |
//! | `quic` | configurations of QUIC |
//! | `settings` | what the two sides tell each other first |
//! | `stream` | one stream as a byte stream |
//! | `varint` | integers |

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
