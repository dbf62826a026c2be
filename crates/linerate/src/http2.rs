//! WebSockets over HTTP/2, each on a stream of its own (RFC 8441).
//!
//! Frames go straight into DATA frames and come straight out of them. A peer may send as much as its
//! window allows, which grows again only as the application takes what has come; what we send waits
//! for the peer's window.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `client` | one stream, from the client's side |
//! | `connection` | the streams of one connection, from the server's side |
//! | `limits` | how much one connection may ask for |
//! | `request` | what opens a WebSocket, in the form of HTTP/1.1, and what answers it |
//! | `resets` | streams that are given up, which are counted |
//! | `sniff` | which HTTP a connection speaks |
//! | `stream` | one stream as a byte stream |

mod client;
mod connection;
mod limits;
mod request;
mod resets;
mod sniff;
mod stream;

pub(crate) use client::connect;
pub(crate) use connection::{Incoming, serve_connection};
pub use limits::Http2Limits;
pub(crate) use request::{refuse, request, response};
pub(crate) use sniff::speaks_http2;
pub(crate) use stream::Stream;

/// How many frames with data of few bytes may wait to be taken by the tasks of their streams, as many
/// as a connection can read before these have their turn. h2 charges 256 bytes less the payload.
const SMALL_FRAMES_MAX: usize = 80_000;
