//! WebSockets over HTTP/2, each on its own stream (RFC 8441).
//!
//! WebSocket frames are carried directly in DATA frames. A peer may send as much as its
//! flow-control window allows, and the window grows again only as the application consumes data.
//! What we send waits for the peer's window.
//!
//! | module | contents |
//! | --- | --- |
//! | `answer` | responses to requests that do not open a WebSocket |
//! | `body` | the bodies of such requests |
//! | `client` | one stream, from the client's side |
//! | `connect` | passes a stream to the code that answers the CONNECT request |
//! | `connection` | the streams of one connection, from the server's side |
//! | `guard` | client input that must not reach h2 |
//! | `limits` | the limits of a connection |
//! | `linger` | requests that are answered before they have arrived completely |
//! | `request` | conversion of WebSocket requests to the form of HTTP/1.1, and of the responses |
//! | `service` | a tower service on the streams of a connection |
//! | `sniff` | detection of the HTTP version of a connection |
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

/// How many DATA frames with small payloads may be queued for the tasks of their streams: as many
/// as a connection can read before those tasks run. h2 charges 256 bytes minus the payload for
/// each.
const SMALL_FRAMES_MAX: usize = 80_000;
