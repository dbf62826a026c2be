//! The HTTP/1.1 request that opens a connection (RFC 9112 §3, §6; RFC 6455 §4.2.1).

mod pseudo;
mod values;

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use super::authority::Authority;
use super::headers::{Headers, Span, append_checked};
use super::scan::{HeadKind, HeadScanner};
use super::target::{TargetParts, invalid_target_byte};
use super::token::{is_token, list_contains};
use super::{HandshakeError, HandshakeLimits};

pub use pseudo::PseudoHeaders;

/// The HTTP version of a request. This crate does not support any others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a new version of HTTP would be a breaking change"
)]
pub enum HttpVersion {
    /// HTTP/1.0, which does not support upgrades (RFC 9110 §7.8).
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2, where a WebSocket is a stream (RFC 8441).
    Http2,
    /// HTTP/3, where a WebSocket is also a stream (RFC 9220).
    Http3,
}

impl HttpVersion {
    /// Returns whether a WebSocket is a stream, opened by an extended CONNECT (RFC 8441, RFC 9220),
    /// rather than an upgraded connection.
    pub const fn has_streams(self) -> bool {
        matches!(self, Self::Http2 | Self::Http3)
    }
}

/// How the body of a request is framed (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "RFC 9112 §6.3 has no other kinds")]
pub enum RequestBody {
    /// The body is sent in chunks, which the caller must parse.
    Chunked,
    /// The body has this many bytes, possibly 0.
    Length(u64),
    /// There is no body.
    None,
}

/// A complete request head, without the body.
///
/// This can be any well-formed request; [`websocket`](Self::websocket) checks whether it opens a
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
    /// Builds a request from the parts that another HTTP implementation has parsed, and checks it
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
    /// Fails like [`RequestReader::handle_input`], also for parts that no parser could have
    /// produced. For requests of HTTP/2 and HTTP/3, use [`from_pseudo`](Self::from_pseudo).
    ///
    /// [`RequestReader::handle_input`]: super::RequestReader::handle_input
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
            // These requests have no request line: `from_pseudo` accepts them.
            HttpVersion::Http2 | HttpVersion::Http3 => {
                return Err(HandshakeError::HttpVersionUnsupported);
            }
        };
        let mut head = [method, " ", target, " ", version, "\r\n"]
            .concat()
            .into_bytes();
        for (name, value) in headers {
            append_checked(&mut head, name, value)?;
        }
        head.extend_from_slice(b"\r\n");
        Self::read(head, limits)
    }

    /// Returns whether the request asks for a WebSocket, correctly or not. Call this first on a
    /// server that also serves pages.
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

    /// Returns the method as it was sent.
    pub fn method(&self) -> &str {
        self.headers.text_at(self.method)
    }

    /// Returns the request target as it was sent, which is visible ASCII.
    pub fn target(&self) -> &str {
        self.headers.text_at(self.target)
    }

    /// Returns the path, not decoded. It starts with `/`, or is `*` for OPTIONS. It may also start
    /// with `//`, which a URL parser could take for a host.
    pub fn path(&self) -> &str {
        match self.headers.text_at(self.path) {
            "" => "/",
            path => path,
        }
    }

    /// Returns the part after the first `?`, not decoded.
    pub fn query(&self) -> Option<&str> {
        self.query.map(|query| self.headers.text_at(query))
    }

    /// Returns the HTTP version.
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// Returns how the body is framed.
    pub fn body(&self) -> RequestBody {
        self.body
    }

    /// Returns the host and port to which the client sent the request. Always present in HTTP/1.1.
    pub fn host(&self) -> Option<&str> {
        self.headers.first_text("Host")
    }

    /// Returns the origin of the page that opens the connection, as it was sent. Programs other
    /// than browsers usually do not send one.
    pub fn origin(&self) -> Option<&[u8]> {
        self.headers.first("Origin")
    }

    /// Returns the value of the first header with this name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.first(name)
    }

    /// Returns all headers.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    pub(super) fn limits(&self) -> &HandshakeLimits {
        &self.limits
    }

    /// Reads a head that was built here.
    fn read(mut head: Vec<u8>, limits: HandshakeLimits) -> Result<Self, HandshakeError> {
        let mut scanner = HeadScanner::new(HeadKind::Request);
        match scanner.scan(&head, &limits)? {
            Some(head_bytes) => {
                head.truncate(head_bytes);
                Self::parse(head, scanner.headers(), limits)
            }
            None => Err(HandshakeError::HeadTruncated {
                head_bytes: head.len(),
            }),
        }
    }

    /// Parses a complete head with `header_lines` header lines, as counted by the scanner.
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
    /// Omits the query and the values of headers, which may contain credentials.
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

/// Reads the version at the end of the request line. This happens before parsing, because the
/// parser returns the same error for a line without a version and for an unsupported version.
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

/// Checks that the parser, like the scanner, found the head complete; translates its errors to
/// ours.
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

/// Checks the `Host` header.
///
/// RFC 9112 §3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1
/// request message that lacks a Host header field and to any request message that contains more
/// than one Host header field line or a Host header field with an invalid field value."
///
/// A target in absolute-form names the host a second time. §3.2.2 says that the target takes
/// precedence. We accept such a request only if both agree, so that no proxy in front of us can
/// have routed it by the other one.
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

/// Determines the framing of the body. This is stricter than RFC 9112 §6.3: anything that two
/// parsers could read differently is refused.
fn body(headers: &Headers, version: HttpVersion) -> Result<RequestBody, HandshakeError> {
    let length = headers.single("Content-Length")?;
    let coding = headers.single("Transfer-Encoding")?;
    match (length, coding) {
        (None, None) => Ok(RequestBody::None),
        (Some(digits), None) => {
            // Check the digits, because `parse` also accepts a sign.
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
