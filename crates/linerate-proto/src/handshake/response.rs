//! The responses of a server: 101, or 200 over HTTP/2, or a refusal (RFC 6455 §4.2.2, RFC 8441 §5).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::accept::Accept;
#[cfg(feature = "deflate")]
use super::compression;
use super::headers::{ApplicationHeaders, append_header, check_header};
use super::{BuildError, ExtensionOffer, HandshakeError};
#[cfg(feature = "deflate")]
use crate::deflate::{Agreement, Deflate};

/// The response that opens a WebSocket.
///
/// ```
/// use linerate_proto::handshake::{HandshakeLimits, RequestReader};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut reader = RequestReader::new(HandshakeLimits::default());
/// let input = b"GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\n\
///     Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
///     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
///     Sec-WebSocket-Protocol: soap, wamp\r\n\r\n";
/// let (request, _) = reader.handle_input(input)?.ok_or("the head is whole")?;
/// let upgrade = request.websocket()?;
///
/// let mut acceptance = upgrade.accept();
/// if let Some(subprotocol) = upgrade.choose_subprotocol(&["wamp", "mqtt"]) {
///     acceptance = acceptance.with_subprotocol(subprotocol)?;
/// }
/// let mut output = Vec::new();
/// acceptance.encode(&mut output);
/// assert_eq!(
///     String::from_utf8(output)?,
///     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
///      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
///      Sec-WebSocket-Protocol: wamp\r\n\r\n"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Acceptance<'u> {
    accept: Option<&'u Accept>,
    offered: &'u [&'u str],
    subprotocol: Option<&'u str>,
    #[cfg_attr(
        not(feature = "deflate"),
        expect(dead_code, reason = "without deflate there is no extension to choose")
    )]
    extensions: &'u [ExtensionOffer<'u>],
    #[cfg(feature = "deflate")]
    deflate: Option<Agreement>,
    extension: Option<String>,
    headers: ApplicationHeaders,
}

impl<'u> Acceptance<'u> {
    pub(super) fn new(
        accept: Option<&'u Accept>,
        offered: &'u [&'u str],
        extensions: &'u [ExtensionOffer<'u>],
    ) -> Self {
        Self {
            accept,
            offered,
            subprotocol: None,
            extensions,
            #[cfg(feature = "deflate")]
            deflate: None,
            extension: None,
            headers: ApplicationHeaders::default(),
        }
    }

    /// Selects a subprotocol; replaces one that was selected before.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError::SubprotocolNotOffered`] if the client did not offer it, because the
    /// client would then have to fail the connection.
    pub fn with_subprotocol(mut self, subprotocol: &str) -> Result<Self, BuildError> {
        let offered = self.offered.iter().find(|&&offered| offered == subprotocol);
        self.subprotocol = Some(*offered.ok_or(BuildError::SubprotocolNotOffered)?);
        Ok(self)
    }

    /// Enables compression if the client offers it with parameters that `options` allows.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: &Deflate) -> Self {
        if let Some((agreement, answer)) = compression::choose(self.extensions, options) {
            self.deflate = Some(agreement);
            self.extension = Some(answer);
        }
        self
    }

    /// Adds a header, for example `Set-Cookie`.
    ///
    /// # Errors
    ///
    /// Fails if the name is not a token, the value contains a control character, or the handshake
    /// sets the header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Returns the selected subprotocol.
    pub fn subprotocol(&self) -> Option<&'u str> {
        self.subprotocol
    }

    /// Returns the status: 101, or 200 over HTTP/2.
    pub fn status(&self) -> u16 {
        match self.accept {
            Some(_) => 101,
            None => 200,
        }
    }

    /// Returns the compression parameters; `None` if messages are not compressed.
    #[cfg(feature = "deflate")]
    pub fn deflate(&self) -> Option<Agreement> {
        self.deflate
    }

    /// Returns all headers of the response, for callers that do not use [`encode`](Self::encode).
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = self.accept.map(|accept| {
            [
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade"),
                ("Sec-WebSocket-Accept", accept.as_str()),
            ]
        });
        let subprotocol = self
            .subprotocol
            .map(|chosen| ("Sec-WebSocket-Protocol", chosen));
        let extension = self.extension.as_deref();
        let extension = extension.map(|answer| ("Sec-WebSocket-Extensions", answer));
        own.into_iter()
            .flatten()
            .chain(subprotocol)
            .chain(extension)
            .chain(self.headers.iter())
    }

    /// Appends the response to `output` in the form of HTTP/1.1. Frames may follow it immediately.
    pub fn encode(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        for (name, value) in self.headers() {
            append_header(output, name, value.as_bytes());
        }
        output.extend_from_slice(b"\r\n");
    }
}

impl fmt::Debug for Acceptance<'_> {
    /// Omits the application's headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptance")
            .field("subprotocol", &self.subprotocol)
            .finish_non_exhaustive()
    }
}

/// The complete response that refuses a request and announces the end of the connection.
///
/// Write it, shut down the sending side, and keep reading for a moment before closing: closing a
/// socket that has unread bytes can destroy the response in transit (RFC 9112 §9.6). Do not treat
/// anything that the peer sent after the refused request as another request.
///
/// ```
/// use linerate_proto::handshake::Refusal;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let refusal = Refusal::new(503, "draining")?.with_header("Retry-After", "7")?;
/// let mut output = Vec::new();
/// refusal.encode(&mut output);
/// assert_eq!(
///     String::from_utf8(output)?,
///     "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 7\r\n\
///      Content-Type: text/plain; charset=utf-8\r\nContent-Length: 9\r\n\r\ndraining\n"
/// );
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Refusal {
    status: u16,
    headers: ApplicationHeaders,
    content_type: Cow<'static, str>,
    body: Vec<u8>,
    sends_body: bool,
}

impl Refusal {
    /// The maximum length of a body in bytes: it is a message for people or a few fields for
    /// programs, and is kept in memory until the client has read it.
    pub const BODY_BYTES_MAX: usize = 64 << 10;

    /// Creates a refusal with a status from 300 to 599 and a line of text for people to read. A
    /// newline is added to the text.
    ///
    /// # Errors
    ///
    /// Fails with [`BuildError::StatusInvalid`] for any other status, and for 304, which has no
    /// body. Fails if the text is longer than [`BODY_BYTES_MAX`](Self::BODY_BYTES_MAX).
    pub fn new(status: u16, text: &str) -> Result<Self, BuildError> {
        match status {
            300..=303 | 305..=599 if text.len() < Self::BODY_BYTES_MAX => {
                Ok(Self::with_status(status, format!("{text}\n")))
            }
            300..=303 | 305..=599 => Err(BuildError::BodyTooLarge {
                bytes: text.len() + 1,
                bytes_max: Self::BODY_BYTES_MAX,
            }),
            _ => Err(BuildError::StatusInvalid { status }),
        }
    }

    /// Adds a header, for example `WWW-Authenticate`.
    ///
    /// # Errors
    ///
    /// Fails if the name is not a token, the value contains a control character, or the refusal
    /// sets the header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        if name.eq_ignore_ascii_case("Content-Type") {
            return Err(BuildError::HeaderReserved);
        }
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Replaces the text with another body, for example JSON.
    ///
    /// ```
    /// # use linerate_proto::handshake::Refusal;
    /// # fn main() -> Result<(), Box<dyn core::error::Error>> {
    /// let problem = r#"{"error": "session expired"}"#;
    /// let refusal = Refusal::new(401, "")?.with_body("application/json", problem)?;
    /// assert_eq!(refusal.body(), problem.as_bytes());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the body is longer than [`BODY_BYTES_MAX`](Self::BODY_BYTES_MAX), or the content
    /// type contains a control character.
    pub fn with_body(
        mut self,
        content_type: &str,
        body: impl Into<Vec<u8>>,
    ) -> Result<Self, BuildError> {
        let body = body.into();
        if body.len() > Self::BODY_BYTES_MAX {
            return Err(BuildError::BodyTooLarge {
                bytes: body.len(),
                bytes_max: Self::BODY_BYTES_MAX,
            });
        }
        check_header("Content-Type", content_type.as_bytes())?;
        self.content_type = Cow::Owned(content_type.into());
        self.body = body;
        Ok(self)
    }

    /// Omits the body, as required in the response to a HEAD request (RFC 9110 §9.3.2);
    /// `Content-Length` is still sent.
    pub fn without_body(mut self) -> Self {
        self.sends_body = false;
        self
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the body: the text with its newline, unless it was replaced.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns all headers of the response except `Content-Length`, for callers that do not use
    /// [`encode`](Self::encode).
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own: &[_] = match self.status {
            // RFC 9110 §15.5.22: "The server MUST send an Upgrade header field in a 426 response",
            // and `Upgrade` must be listed in `Connection` (§7.8).
            426 => &[
                ("Upgrade", "websocket"),
                ("Connection", "Upgrade, close"),
                ("Sec-WebSocket-Version", "13"),
            ],
            // RFC 9110 §15.5.6: "The origin server MUST generate an Allow header field in a 405
            // response".
            405 => &[("Connection", "close"), ("Allow", "GET")],
            _ => &[("Connection", "close")],
        };
        let content_type = ("Content-Type", &*self.content_type);
        own.iter()
            .copied()
            .chain(self.headers.iter())
            .chain([content_type])
    }

    /// Appends the response to `output`.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let reason = reason_phrase(self.status);
        output.extend_from_slice(format!("HTTP/1.1 {} {reason}\r\n", self.status).as_bytes());
        for (name, value) in self.headers() {
            append_header(output, name, value.as_bytes());
        }
        output.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.body.len()).as_bytes());
        if self.sends_body {
            output.extend_from_slice(&self.body);
        }
    }

    fn with_status(status: u16, text: String) -> Self {
        Self {
            status,
            headers: ApplicationHeaders::default(),
            content_type: Cow::Borrowed("text/plain; charset=utf-8"),
            body: text.into_bytes(),
            sends_body: true,
        }
    }
}

impl From<HandshakeError> for Refusal {
    /// Creates a refusal with the error's status and its message, which never contains bytes that
    /// the peer sent.
    fn from(error: HandshakeError) -> Self {
        Self::with_status(error.status(), format!("{error}\n"))
    }
}

impl fmt::Debug for Refusal {
    /// Omits the application's headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("body", &String::from_utf8_lossy(&self.body))
            .finish_non_exhaustive()
    }
}

/// Returns the reason phrase of a status (RFC 9110 §15); it may be empty (RFC 9112 §4).
pub(super) fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        414 => "URI Too Long",
        421 => "Misdirected Request",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
