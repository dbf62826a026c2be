//! WebSockets over HTTP/2, each on a stream of its own (RFC 8441).
//!
//! Frames go straight into DATA frames and come straight out of them. A peer may send as much as its
//! window allows, which grows again only as the application takes what has come; what we send waits
//! for the peer's window.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `answer` | responses to requests that are no WebSockets |
//! | `body` | the bodies of such requests |
//! | `client` | one stream, from the client's side |
//! | `connect` | a stream on its way to whoever answers the CONNECT |
//! | `connection` | the streams of one connection, from the server's side |
//! | `guard` | what h2 is not to see of a client |
//! | `limits` | how much one connection may ask for |
//! | `linger` | requests that are answered before they have come |
//! | `request` | what opens a WebSocket, in the form of HTTP/1.1, and what answers it |
//! | `service` | a tower service on the streams of a connection |
//! | `sniff` | which HTTP a connection speaks |
//! | `stream` | one stream as a byte stream |

#[cfg(feature = "axum")]
mod answer;
#[cfg(feature = "axum")]
mod body;
mod client;
#[cfg(feature = "axum")]
mod connect;
mod connection;
mod guard;
mod limits;
mod linger;
mod request;
#[cfg(feature = "axum")]
mod service;
mod sniff;
mod stream;

#[cfg(feature = "axum")]
pub use body::RequestBody;
pub(crate) use client::connect;
#[cfg(feature = "axum")]
pub(crate) use connect::Connect;
pub(crate) use connection::{Incoming, serve_connection};
#[cfg(fuzzing)]
pub use guard::fuzzing as guard_fuzzing;
pub use limits::Http2Limits;
pub(crate) use linger::linger;
pub(crate) use request::{refuse, request, response};
#[cfg(feature = "axum")]
pub use service::serve_http2;
#[cfg(not(feature = "axum"))]
pub(crate) use sniff::speaks_http2;
#[cfg(feature = "axum")]
pub use sniff::speaks_http2;
pub(crate) use stream::Stream;

/// How many frames with data of few bytes may wait to be taken by the tasks of their streams, as many
/// as a connection can read before these have their turn. h2 charges 256 bytes less the payload.
const SMALL_FRAMES_MAX: usize = 80_000;
