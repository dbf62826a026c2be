//! What a server answers: 101 or, over HTTP/2, 200; or a refusal (RFC 6455 §4.2.2, RFC 8441 §5).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::accept::Accept;
use super::headers::{ApplicationHeaders, append_header};
use super::{BuildError, ExtensionOffer, HandshakeError};
#[cfg(feature = "deflate")]
use crate::deflate::{self, Agreement, Deflate};

/// The answer that opens a WebSocket.
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
        expect(dead_code, reason = "there is no extension to choose")
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

    /// Chooses a subprotocol, in place of one chosen before.
    ///
    /// # Errors
    ///
    /// [`BuildError::SubprotocolNotOffered`]; a client would have to fail the connection.
    pub fn with_subprotocol(mut self, subprotocol: &str) -> Result<Self, BuildError> {
        let offered = self.offered.iter().find(|&&offered| offered == subprotocol);
        self.subprotocol = Some(*offered.ok_or(BuildError::SubprotocolNotOffered)?);
        Ok(self)
    }

    /// Compresses messages, if the client offers it in a way that `options` allow.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: &Deflate) -> Self {
        if let Some((agreement, answer)) = deflate::choose(self.extensions, options) {
            self.deflate = Some(agreement);
            self.extension = Some(answer);
        }
        self
    }

    /// Adds a header, `Set-Cookie` for instance.
    ///
    /// # Errors
    ///
    /// When the name is no token, the value holds a control character, or the handshake sets the
    /// header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Returns the subprotocol in use from here on.
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

    /// Returns how messages are compressed from here on, `None` if they are not.
    #[cfg(feature = "deflate")]
    pub fn deflate(&self) -> Option<Agreement> {
        self.deflate
    }

    /// Returns all headers of the response, for those who write it by other means than
    /// [`encode`](Self::encode).
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

    /// Appends the response to `output`, as HTTP/1.1 has it. Frames may follow it at once.
    pub fn encode(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(b"HTTP/1.1 101 Switching Protocols\r\n");
        for (name, value) in self.headers() {
            append_header(output, name, value.as_bytes());
        }
        output.extend_from_slice(b"\r\n");
    }
}

impl fmt::Debug for Acceptance<'_> {
    /// Leaves the application's headers out: they may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptance")
            .field("subprotocol", &self.subprotocol)
            .finish_non_exhaustive()
    }
}

/// The answer that refuses a request, whole: it says that the connection ends with it.
///
/// Write it, shut the sending side down, and read on for a moment before closing: closing a
/// socket with unread bytes in it can destroy the answer on its way (RFC 9112 §9.6). Nothing that
/// the peer sent behind the refused request may be taken for a request.
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
    text: String,
    has_body: bool,
}

impl Refusal {
    /// Refuses with a status from 300 to 599 and a line of text for a person to read, to which a
    /// newline is added.
    ///
    /// # Errors
    ///
    /// [`BuildError::StatusInvalid`] for any other status, and for 304, which has no body.
    pub fn new(status: u16, text: &str) -> Result<Self, BuildError> {
        match status {
            300..=303 | 305..=599 => Ok(Self::with_status(status, format!("{text}\n"))),
            _ => Err(BuildError::StatusInvalid { status }),
        }
    }

    /// Adds a header, `WWW-Authenticate` for instance.
    ///
    /// # Errors
    ///
    /// When the name is no token, the value holds a control character, or the refusal sets the
    /// header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        if name.eq_ignore_ascii_case("Content-Type") {
            return Err(BuildError::HeaderReserved);
        }
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Leaves the body out, as the answer to a HEAD request must (RFC 9110 §9.3.2); its length is
    /// still announced.
    pub fn without_body(mut self) -> Self {
        self.has_body = false;
        self
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the text, its newline included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns all headers of the response but `Content-Length`, for those who write it by other
    /// means than [`encode`](Self::encode).
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own: &[_] = match self.status {
            // RFC 9110 §15.5.22: "The server MUST send an Upgrade header field in a 426 response",
            // and `Upgrade` has to be named in `Connection` (§7.8).
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
        let content_type = ("Content-Type", "text/plain; charset=utf-8");
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
        output.extend_from_slice(format!("Content-Length: {}\r\n\r\n", self.text.len()).as_bytes());
        if self.has_body {
            output.extend_from_slice(self.text.as_bytes());
        }
    }

    fn with_status(status: u16, text: String) -> Self {
        Self {
            status,
            headers: ApplicationHeaders::default(),
            text,
            has_body: true,
        }
    }
}

impl From<HandshakeError> for Refusal {
    /// Answers with the error's status, and its message as text: it holds nothing of the peer's.
    fn from(error: HandshakeError) -> Self {
        Self::with_status(error.status(), format!("{error}\n"))
    }
}

impl fmt::Debug for Refusal {
    /// Leaves the application's headers out: they may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal")
            .field("status", &self.status)
            .field("text", &self.text)
            .finish_non_exhaustive()
    }
}

/// Returns the phrase that goes with a status (RFC 9110 §15); it may be empty (RFC 9112 §4).
fn reason_phrase(status: u16) -> &'static str {
    match status {
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
