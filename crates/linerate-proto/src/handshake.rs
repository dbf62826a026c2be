//! The opening handshake over HTTP/1.1 (RFC 6455 §4) and HTTP/2 (RFC 8441), for clients and
//! servers.
//!
//! Like the rest of this crate it does not use sockets or clocks. It takes bytes as they arrive,
//! appends messages to the caller's buffer, and leaves the bytes after the peer's head to the
//! caller.
//!
//! - A server passes its input to a [`RequestReader`], gets the [`Upgrade`] of the [`Request`]
//!   ([`Request::websocket`]), checks an [`OriginPolicy`], and writes an [`Acceptance`]
//!   ([`Upgrade::accept`]) or a [`Refusal`].
//! - A client writes a [`ClientHandshake`] and passes the response to it. Behind a proxy, a
//!   [`TunnelHandshake`] comes first.
//!
//! Where the RFCs leave a choice between lenient and strict parsing, this module is strict: both
//! ends of a WebSocket are programs, and messages that two parsers read differently allow attackers
//! to smuggle requests past proxies.
//!
//! ```
//! use linerate_proto::handshake::{
//!     HandshakeError, HandshakeLimits, OriginPolicy, Refusal, RequestReader, Scheme,
//! };
//!
//! /// Answers one request; returns where the first frame starts in the input.
//! fn answer(
//!     reader: &mut RequestReader,
//!     input: &[u8],
//!     output: &mut Vec<u8>,
//! ) -> Result<Option<usize>, HandshakeError> {
//!     let Some((request, head_bytes)) = reader.handle_input(input)? else { return Ok(None) };
//!     let upgrade = request.websocket()?;
//!     OriginPolicy::SameOrigin.check(&request, Scheme::Http)?;
//!     upgrade.accept().encode(output);
//!     Ok(Some(head_bytes))
//! }
//!
//! let mut reader = RequestReader::new(HandshakeLimits::default());
//! let mut output = Vec::new();
//! let input = b"POST /chat HTTP/1.1\r\nHost: example.com\r\n\r\n";
//! if let Err(error) = answer(&mut reader, input, &mut output) {
//!     Refusal::from(error).encode(&mut output);
//! }
//! assert!(output.starts_with(b"HTTP/1.1 405 Method Not Allowed\r\n"));
//! ```

mod accept;
mod authority;
mod client;
#[cfg(feature = "deflate")]
mod compression;
mod error;
mod extension;
mod headers;
mod limits;
mod origin;
mod page;
mod reader;
mod request;
mod response;
mod response_reader;
mod scan;
mod target;
mod token;
mod tunnel;
mod upgrade;

pub use client::{ClientHandshake, Negotiated};
pub use error::{BuildError, HandshakeError};
pub use extension::ExtensionOffer;
pub use headers::Headers;
pub use limits::HandshakeLimits;
pub use origin::{Origin, OriginPolicy, Scheme};
pub use page::HttpResponse;
pub use reader::RequestReader;
pub use request::{HttpVersion, PseudoHeaders, Request, RequestBody};
pub use response::{Acceptance, Refusal};
pub use tunnel::TunnelHandshake;
pub use upgrade::Upgrade;

#[cfg(test)]
mod tests;
