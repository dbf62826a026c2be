//! Requests of HTTP/2 and HTTP/3, which have pseudo-header fields instead of a request line (RFC
//! 9113 §8.3.1, RFC 9114 §4.3.1, RFC 8441 §4).

use alloc::vec::Vec;

use super::super::authority::Authority;
use super::super::headers::append_checked;
use super::super::target::invalid_target_byte;
use super::super::token::is_token;
use super::{HandshakeError, HandshakeLimits, HttpVersion, Request};

/// The pseudo-header fields of a request, and its HTTP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "callers build it, and must pass each field that they have received"
)]
pub struct PseudoHeaders<'a> {
    /// The HTTP version; must be HTTP/2 or HTTP/3.
    pub version: HttpVersion,
    /// `:method`.
    pub method: &'a str,
    /// `:protocol`, which marks an extended CONNECT (RFC 8441 §4).
    pub protocol: Option<&'a str>,
    /// `:authority`, the host and port to which the client sent the request.
    pub authority: Option<&'a str>,
    /// `:path`, with an optional query.
    pub path: &'a str,
}

impl Request {
    /// Builds a request from the fields that an implementation of HTTP/2 or HTTP/3 has parsed, and
    /// checks it by the same rules as a request of HTTP/1.1.
    ///
    /// The host is always available as the header `Host`, even if the client sent `:authority`.
    ///
    /// ```
    /// use linerate_proto::handshake::{HandshakeLimits, HttpVersion, PseudoHeaders, Request};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let pseudo = PseudoHeaders {
    ///     version: HttpVersion::Http2,
    ///     method: "CONNECT",
    ///     protocol: Some("websocket"),
    ///     authority: Some("example.com"),
    ///     path: "/chat",
    /// };
    /// let headers = [("sec-websocket-version", &b"13"[..])];
    /// let request = Request::from_pseudo(pseudo, headers, HandshakeLimits::default())?;
    /// assert_eq!(request.websocket()?.accept().status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails like [`RequestReader::handle_input`], and also if `:authority` and `Host` name
    /// different hosts, so that no proxy in front of us can have routed the request by the other
    /// one.
    ///
    /// [`RequestReader::handle_input`]: crate::handshake::RequestReader::handle_input
    pub fn from_pseudo<'a>(
        pseudo: PseudoHeaders<'_>,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        limits: HandshakeLimits,
    ) -> Result<Self, HandshakeError> {
        if !pseudo.version.has_streams() {
            return Err(HandshakeError::HttpVersionUnsupported);
        }
        let mut request = Self::read(head(pseudo, headers)?, limits)?;
        request.version = pseudo.version;
        request.protocol = pseudo.protocol.map(Into::into);
        Ok(request)
    }
}

/// Writes the request in the form of HTTP/1.1.
fn head<'a>(
    pseudo: PseudoHeaders<'_>,
    headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> Result<Vec<u8>, HandshakeError> {
    if !is_token(pseudo.method.as_bytes()) {
        return Err(HandshakeError::StartLineInvalid);
    }
    let asks_for_all = pseudo.method == "OPTIONS" && pseudo.path == "*";
    if !asks_for_all && invalid_target_byte(pseudo.path).is_some() {
        return Err(HandshakeError::TargetInvalid);
    }
    let mut head = [pseudo.method, " ", pseudo.path, " HTTP/1.1\r\n"]
        .concat()
        .into_bytes();
    if let Some(authority) = pseudo.authority {
        append_checked(&mut head, "host", authority.as_bytes())?;
    }
    for (name, value) in headers {
        if !is_same_host(name, value, pseudo.authority)? {
            append_checked(&mut head, name, value)?;
        }
    }
    head.extend_from_slice(b"\r\n");
    Ok(head)
}

/// Returns whether a header is a `Host` that repeats `:authority`; fails if it differs.
///
/// RFC 9113 §8.3.1: "A server SHOULD treat a request as malformed if it contains a Host header
/// field that identifies an entity that differs from the entity in the ":authority" pseudo-header
/// field."
fn is_same_host(name: &str, value: &[u8], authority: Option<&str>) -> Result<bool, HandshakeError> {
    let Some(authority) = authority.filter(|_| name.eq_ignore_ascii_case("host")) else {
        return Ok(false);
    };
    let parse = |value| Authority::parse(value).ok_or(HandshakeError::HostInvalid);
    // Without a scheme the default port is unknown, so a missing port matches only a missing port.
    match parse(authority.as_bytes())?.is_same(&parse(value)?, 0) {
        true => Ok(true),
        false => Err(HandshakeError::HostInvalid),
    }
}
