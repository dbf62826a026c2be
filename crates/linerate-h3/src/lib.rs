//! WebSockets over HTTP/3, each on its own stream (RFC 9220).
//!
//! QUIC comes from [`quinn`]. The HTTP/3 layer on its streams is our own, because no crate supports
//! WebSockets there: frames, settings, and header fields that use only the static table of QPACK.
//! As a result, no message ever waits for another stream, and flow-control windows limit all the
//! memory that a peer can make us use.
//!
//! It is for programs that have their own WebSocket code, such as the library `linerate`, which
//! most programs should use instead. A server that accepts every valid request:
//!
//! ```
//! use linerate_h3::{Http3Limits, Incoming, Stream, response, serve_connection};
//! use linerate_proto::handshake::HandshakeLimits;
//! use std::{io, time::Duration};
//!
//! const TIME_MAX: Duration = Duration::from_secs(10);
//!
//! async fn serve(connection: quinn::Connection) -> io::Result<()> {
//!     let limits = Http3Limits::default();
//!     let goodbye = std::future::pending();
//!     serve_connection(connection, &limits, TIME_MAX, goodbye, |incoming| {
//!         tokio::spawn(open(incoming));
//!     })
//!     .await
//! }
//!
//! async fn open(incoming: Incoming) -> io::Result<()> {
//!     let (request, incoming) = incoming.read(TIME_MAX, HandshakeLimits::default()).await?;
//!     let accepted = request.and_then(|request| Ok(response(&request.websocket()?.accept())));
//!     match accepted {
//!         Ok(response) => talk(incoming.accept(&response, TIME_MAX).await?).await,
//!         Err(error) => incoming.refuse(&error.into()).await,
//!     }
//!     Ok(())
//! }
//!
//! async fn talk(stream: Stream) {
//!     // WebSocket frames are read from and written to `stream`.
//!     # drop(stream);
//! }
//! ```
//!
//! | module | contents |
//! | --- | --- |
//! | `client` | one stream, from the client's side |
//! | `connection` | the streams of one connection, from the server's side |
//! | `control` | the peer's control stream |
//! | `exchange` | header fields as they arrive on a stream |
//! | `fault` | errors of the peer, and the codes that report them |
//! | `frame` | frame headers |
//! | `huffman` | decoding of Huffman-coded fields |
//! | `incoming` | a stream opened by a client |
//! | `limits` | the limits of a connection |
//! | `message` | requests and responses as header fields |
//! | `peer` | unidirectional streams, and the end of a connection |
//! | `qpack` | encoding and decoding of header fields |
//! | `quic` | QUIC configuration |
//! | `settings` | the settings that the two sides exchange first |
//! | `stream` | one stream as a byte stream |
//! | `varint` | variable-length integers |
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod client;
mod connection;
mod control;
mod exchange;
mod fault;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
mod huffman;
mod incoming;
mod limits;
mod message;
mod peer;
mod qpack;
mod quic;
mod settings;
mod stream;
mod varint;

pub use client::{Outgoing, connect};
pub use connection::serve_connection;
pub use fault::Code;
pub use incoming::Incoming;
pub use limits::Http3Limits;
pub use message::response;
pub use quic::{client_config, server_config};
pub use stream::Stream;
