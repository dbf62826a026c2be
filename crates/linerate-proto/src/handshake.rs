//! The opening handshake over HTTP/1.1 (RFC 6455 §4) and HTTP/2 (RFC 8441), for client and server.
//!
//! Like the rest of this crate it sees no socket and no clock: bytes go in as they arrive,
//! messages are appended to a buffer of the caller, and what the peer sent behind its head is
//! left to the caller untouched.
//!
//! - A server feeds a [`RequestReader`], asks the [`Request`] for its [`Upgrade`]
//!   ([`Request::websocket`]), asks an [`OriginPolicy`], and writes an [`Acceptance`]
//!   ([`Upgrade::accept`]) or a [`Refusal`].
//! - A client writes a [`ClientHandshake`] and feeds it the response; behind a proxy there is a
//!   [`TunnelHandshake`] first.
//!
//! Where the RFCs leave a choice between lenient and strict, this is strict: the two ends of a
//! WebSocket are programs, and what two parsers read differently is how requests are smuggled
//! past proxies.
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
mod answer;
mod authority;
mod client;
mod error;
mod extension;
mod headers;
mod limits;
mod origin;
mod reader;
mod request;
mod response;
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
pub use reader::RequestReader;
pub use request::{HttpVersion, PseudoHeaders, Request, RequestBody};
pub use response::{Acceptance, Refusal};
pub use tunnel::TunnelHandshake;
pub use upgrade::Upgrade;

#[cfg(test)]
mod tests;
