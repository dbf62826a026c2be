//! The HTTP/1.1 request that opens a connection (RFC 9112 §3, §6; RFC 6455 §4.2.1).

mod pseudo;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::authority::Authority;
use super::headers::{Headers, Span, append_header, check_header};
use super::target::{TargetParts, invalid_target_byte};
use super::token::{is_token, list_contains};
use super::{BuildError, HandshakeError, HandshakeLimits, RequestReader, Upgrade};

pub use pseudo::PseudoHeaders;

/// The version of HTTP of a request. There are no others that this crate can read or be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HttpVersion {
    /// HTTP/1.0, which knows no upgrades (RFC 9110 §7.8).
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, where a WebSocket is a stream (RFC 8441).
    Http2,
    /// HTTP/3, where a WebSocket is a stream too (RFC 9220).
    Http3,
}

impl HttpVersion {
    /// Returns whether a WebSocket is a stream of its own, opened by an extended CONNECT (RFC 8441, RFC
    /// 9220), rather than what a connection becomes by an upgrade.
    pub const fn has_streams(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
    }
}

/// How the body of a request is framed (RFC 9112 §6.3). The three ways are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// In chunks; their framing is the caller's to read.
    Chunked,
    /// So many bytes, possibly none.
    Length(u64),
    /// There is no body.
    None,
}

/// A request, whole but for its body, owned.
///
/// Any well-formed request is one; [`websocket`](Self::websocket) tells whether it opens a
/// WebSocket.
#[derive(Clone)]
pub struct Request {
    headers: Headers,
    method: Span,
    target: Span,
    path: Span,
    query: Option<Span>,
    version: HttpVersion,
    protocol: Option<Box<str>>,
    body: RequestBody,
    limits: HandshakeLimits,
}

impl Request {
    /// Builds the request from what another HTTP implementation has parsed, so that it is judged
    /// by the same rules. `target` is a path with an optional query.
    ///
    /// ```
    /// use linerate_proto::handshake::{HandshakeLimits, HttpVersion, Request};
    ///
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let headers = [("host", &b"example.com"[..]), ("accept", b"*/*")];
    /// let limits = HandshakeLimits::default();
    /// let request = Request::from_parts("GET", "/chat", HttpVersion::Http11, headers, limits)?;
    /// assert!(!request.asks_for_websocket());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`RequestReader::handle_input`], also for parts that no parser could have found. Requests of
    /// HTTP/2 and HTTP/3 are for [`from_pseudo`](Self::from_pseudo).
    pub fn from_parts<'a>(
        method: &str,
        target: &str,
        version: HttpVersion,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        limits: HandshakeLimits,
    ) -> Result<Self, HandshakeError> {
        if !is_token(method.as_bytes()) {
            return Err(HandshakeError::StartLineInvalid);
        }
        if invalid_target_byte(target).is_some() {
            return Err(HandshakeError::TargetInvalid);
        }
        let version = match version {
            HttpVersion::Http10 => "HTTP/1.0",
            HttpVersion::Http11 => "HTTP/1.1",
            // Its requests have no first line: `from_pseudo` takes them.
            HttpVersion::Http2 | HttpVersion::Http3 => {
                return Err(HandshakeError::HttpVersionUnsupported);
            }
        };
        let mut head = [method, " ", target, " ", version, "\r\n"]
            .concat()
            .into_bytes();
        for (name, value) in headers {
            check_header(name, value).map_err(|error| match error {
                BuildError::HeaderValueInvalid { .. } => HandshakeError::HeaderValueInvalid,
                _ => HandshakeError::HeaderNameInvalid,
            })?;
            append_header(&mut head, name, value);
        }
        head.extend_from_slice(b"\r\n");
        let mut reader = RequestReader::new(limits);
        match reader.handle_input(&head)? {
            Some((request, _)) => Ok(request),
            None => Err(HandshakeError::HeadTruncated {
                head_bytes: head.len(),
            }),
        }
    }

    /// Checks that the request opens a WebSocket (RFC 6455 §4.2.1), the origin excepted, which is
    /// for [`OriginPolicy`](super::OriginPolicy) to judge.
    ///
    /// # Errors
    ///
    /// When it does not; [`Refusal::from`](super::Refusal) makes the answer.
    pub fn websocket(&self) -> Result<Upgrade<'_>, HandshakeError> {
        Upgrade::check(self, &self.limits)
    }

    /// Tells whether the request asks for a WebSocket at all, well or badly: a server that serves
    /// pages too asks this first.
    pub fn asks_for_websocket(&self) -> bool {
        match self.version.has_streams() {
            true => self.protocol() == Some("websocket"),
            false => list_contains(self.headers.all("Upgrade"), "websocket"),
        }
    }

    /// Returns the protocol that an extended CONNECT asks for (RFC 8441 §4).
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// Returns the method, as it was sent.
    pub fn method(&self) -> &str {
        self.headers.text_at(self.method)
    }

    /// Returns the request target as it was sent: visible ASCII.
    pub fn target(&self) -> &str {
        self.headers.text_at(self.target)
    }

    /// Returns the path: it starts with `/` (or is `*` for OPTIONS), and is not decoded. A path
    /// that starts with `//` is a path, whatever a URL parser makes of it.
    pub fn path(&self) -> &str {
        match self.headers.text_at(self.path) {
            "" => "/",
            path => path,
        }
    }

    /// Returns what follows the first `?`, not decoded.
    pub fn query(&self) -> Option<&str> {
        self.query.map(|query| self.headers.text_at(query))
    }

    /// Returns the version of HTTP.
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// Returns how the body is framed.
    pub fn body(&self) -> RequestBody {
        self.body
    }

    /// Returns the host and port that the client means, if it says so: HTTP/1.1 makes it.
    pub fn host(&self) -> Option<&str> {
        self.headers.first_text("Host")
    }

    /// Returns the origin of the page that opens the connection, as it was sent; other programs
    /// than browsers usually send none.
    pub fn origin(&self) -> Option<&[u8]> {
        self.headers.first("Origin")
    }

    /// Returns the value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.first(name)
    }

    /// Returns all headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Parses a head that the scanner found whole, with so many header lines.
    pub(super) fn parse(
        head: Vec<u8>,
        header_lines: usize,
        limits: HandshakeLimits,
    ) -> Result<Self, HandshakeError> {
        if head.starts_with(b"PRI * HTTP/2.0\r\n") {
            return Err(HandshakeError::Http2Preface);
        }
        let version = version(&head)?;
        let mut lines = vec![httparse::EMPTY_HEADER; header_lines];
        let mut parsed = httparse::Request::new(&mut lines);
        check_parsed(parsed.parse(&head), &head)?;
        let (Some(method), Some(target)) = (parsed.method, parsed.path) else {
            return Err(HandshakeError::StartLineInvalid);
        };
        let parts = TargetParts::parse(method, target).ok_or(HandshakeError::TargetInvalid)?;
        let span = |part: &str| Span::of(part.as_bytes(), &head);
        let (method, target) = (span(method), span(target));
        let (path, query) = (span(parts.path), parts.query.map(span));
        let uri = parts.uri.map(|uri| (uri.port_default, span(uri.authority)));
        let fields = parsed
            .headers
            .iter()
            .map(|header| Span::of_header(header, &head))
            .collect();
        let headers = Headers::new(head, fields);
        check_host(&headers, version, uri)?;
        let body = body(&headers, version)?;
        Ok(Self {
            headers,
            method,
            target,
            path,
            query,
            version,
            protocol: None,
            body,
            limits,
        })
    }
}

impl fmt::Debug for Request {
    /// Leaves the query and the values of headers out: they hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method())
            .field("path", &self.path())
            .field("version", &self.version)
            .field("headers", &self.headers)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// Reads the version at the end of the request line. Our own look comes first, because the parser
/// calls a line without any version and one with a version to come by the same error.
fn version(head: &[u8]) -> Result<HttpVersion, HandshakeError> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    match line.rsplit(|&byte| byte == b' ').next() {
        Some(b"HTTP/1.1") => Ok(HttpVersion::Http11),
        Some(b"HTTP/1.0") => Ok(HttpVersion::Http10),
        Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9']) => {
            Err(HandshakeError::HttpVersionUnsupported)
        }
        _ => Err(HandshakeError::StartLineInvalid),
    }
}

/// Checks that the parser found the head whole, as the scanner did, and names in our terms what
/// it found wrong.
pub(super) fn check_parsed(
    result: httparse::Result<usize>,
    head: &[u8],
) -> Result<(), HandshakeError> {
    match result {
        Ok(httparse::Status::Complete(head_bytes)) if head_bytes == head.len() => Ok(()),
        Err(httparse::Error::HeaderName) => Err(HandshakeError::HeaderNameInvalid),
        Err(httparse::Error::HeaderValue) => Err(HandshakeError::HeaderValueInvalid),
        Ok(_) | Err(_) => Err(HandshakeError::StartLineInvalid),
    }
}

/// RFC 9112 §3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1
/// request message that lacks a Host header field and to any request message that contains more
/// than one Host header field line or a Host header field with an invalid field value."
///
/// A target in absolute-form names the host a second time. §3.2.2 would have us believe the
/// target; we take such a request only if both agree, so that nobody in front of us can have
/// routed it by the other one.
fn check_host(
    headers: &Headers,
    version: HttpVersion,
    uri: Option<(u16, Span)>,
) -> Result<(), HandshakeError> {
    let Some(value) = headers.single("Host")? else {
        return match (version, uri) {
            (HttpVersion::Http10, None) => Ok(()),
            _ => Err(HandshakeError::HeaderMissing { name: "Host" }),
        };
    };
    let host = Authority::parse(value).ok_or(HandshakeError::HostInvalid)?;
    let Some((port_default, authority)) = uri else {
        return Ok(());
    };
    match Authority::parse(headers.text_at(authority).as_bytes()) {
        Some(authority) if authority.is_same(&host, port_default) => Ok(()),
        _ => Err(HandshakeError::TargetInvalid),
    }
}

/// Judges the framing of the body more strictly than RFC 9112 §6.3 asks: whatever two parsers
/// could read differently is refused.
fn body(headers: &Headers, version: HttpVersion) -> Result<RequestBody, HandshakeError> {
    let length = headers.single("Content-Length")?;
    let coding = headers.single("Transfer-Encoding")?;
    match (length, coding) {
        (None, None) => Ok(RequestBody::None),
        (Some(digits), None) => {
            // `parse` would take a sign.
            let digits = core::str::from_utf8(digits)
                .ok()
                .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
            digits
                .and_then(|digits| digits.parse().ok())
                .map(RequestBody::Length)
                .ok_or(HandshakeError::ContentLengthInvalid)
        }
        // §6.1: "A server or client that receives an HTTP/1.0 message containing a
        // Transfer-Encoding header field MUST treat the message as if the framing is faulty". Both
        // headers together "ought to be handled as an error" (§6.3), and so is any coding but
        // `chunked` alone.
        (None, Some(coding))
            if coding.eq_ignore_ascii_case(b"chunked") && version == HttpVersion::Http11 =>
        {
            Ok(RequestBody::Chunked)
        }
        _ => Err(HandshakeError::TransferEncodingInvalid),
    }
}
