//! WebSockets over HTTP/2, each on its own stream (RFC 8441).
//!
//! HTTP/2 is provided by [`h2`]. This crate makes a byte stream of each HTTP/2 stream that carries
//! a WebSocket, and limits what a peer can make us store and do. WebSocket frames are carried
//! directly in DATA frames. A peer may send as much as its flow-control window allows, and the
//! window grows again only as the application consumes data. What we send waits for the peer's
//! window.
//!
//! It is for programs that have their own WebSocket code, such as the library `linerate`, which
//! most programs should use instead. A server that accepts every valid request:
//!
//! ```
//! use linerate_h2::{Http2Limits, Incoming, Stream, response, serve_connection};
//! use linerate_proto::handshake::{HandshakeLimits, Refusal};
//! use std::{error::Error, io, time::Duration};
//! use tokio::net::TcpStream;
//!
//! async fn serve(socket: TcpStream) -> io::Result<()> {
//!     let limits = Http2Limits::default();
//!     let time_max = Duration::from_secs(10);
//!     let goodbye = std::future::pending();
//!     serve_connection(socket, &limits, time_max, goodbye, |incoming| match open(incoming) {
//!         Ok(stream) => _ = tokio::spawn(talk(stream)),
//!         Err(error) => eprintln!("{error}"),
//!     })
//!     .await
//! }
//!
//! fn open(incoming: Incoming) -> Result<Stream, Box<dyn Error>> {
//!     let request = match incoming.request(HandshakeLimits::default()) {
//!         Ok(request) => request,
//!         Err(error) => {
//!             incoming.refuse(&Refusal::from(error))?;
//!             return Err(error.into());
//!         }
//!     };
//!     let response = response(&request.websocket()?.accept())?;
//!     Ok(incoming.accept(response)?)
//! }
//!
//! async fn talk(stream: Stream) {
//!     // WebSocket frames are read from and written to `stream`.
//!     # drop(stream);
//! }
//! ```
//!
//! The feature `service` adds a server for tower services, which answer ordinary requests on the
//! same connections.
//!
//! | module | contents |
//! | --- | --- |
//! | `answer` | responses to requests that do not open a WebSocket |
//! | `body` | the bodies of such requests |
//! | `client` | one stream, from the client's side |
//! | `connection` | the streams of one connection, from the server's side |
//! | `guard` | faults of a client that h2 overlooks |
//! | `incoming` | a request, until it becomes a WebSocket or is refused |
//! | `limits` | the limits of a connection |
//! | `linger` | requests that are answered before they have arrived completely |
//! | `request` | conversion of WebSocket requests to the form of HTTP/1.1, and of the responses |
//! | `service` | a tower service on the streams of a connection |
//! | `sniff` | detection of the HTTP version of a connection |
//! | `stream` | one stream as a byte stream |
#![forbid(unsafe_code)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(feature = "service")]
mod answer;
#[cfg(feature = "service")]
mod body;
mod client;
mod connection;
mod guard;
mod incoming;
mod limits;
mod linger;
mod request;
#[cfg(feature = "service")]
mod service;
mod sniff;
mod stream;

#[cfg(feature = "service")]
pub use body::RequestBody;
pub use client::{Outgoing, connect};
pub use connection::serve_connection;
#[cfg(fuzzing)]
pub use guard::fuzzing;
pub use incoming::Incoming;
pub use limits::Http2Limits;
pub use request::{request, response};
#[cfg(feature = "service")]
pub use service::{Connect, serve_http2};
pub use sniff::{is_http2, speaks_http2};
pub use stream::Stream;
