//! The client side of the opening handshake (RFC 6455 §4.1, RFC 8441 §5).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use super::accept::Key;
use super::authority::Authority;
#[cfg(feature = "deflate")]
use super::compression;
#[cfg(feature = "deflate")]
use super::extension::parse_offers;
use super::headers::{ApplicationHeaders, Headers, append_header};
use super::response_reader::{ResponseReader, parse};
use super::target::invalid_target_byte;
use super::token::{elements, is_token, list_contains};
use super::{BuildError, HandshakeError, HandshakeLimits, Origin};
#[cfg(feature = "deflate")]
use crate::deflate::{Agreement, Deflate};

/// Opens a WebSocket: writes the request, then checks the response.
///
/// ```
/// use linerate_proto::handshake::ClientHandshake;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// // Sixteen random bytes, new for each connection.
/// let key = *b"the sample nonce";
/// let mut handshake = ClientHandshake::new("example.com", "/chat?room=1", key)?
///     .with_subprotocol("wamp")?
///     .with_header("Cookie", "id=7")?;
/// let mut output = Vec::new();
/// handshake.encode(&mut output);
///
/// assert!(handshake.handle_input(b"HTTP/1.1 101 Switching Protocols\r\n")?.is_none());
/// // The server has already sent its first frame in the same input.
/// let input = b"Upgrade: websocket\r\nConnection: Upgrade\r\n\
///     Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x89\x00";
/// let (negotiated, head_bytes) = handshake.handle_input(input)?.ok_or("the head is whole")?;
/// assert_eq!(negotiated.subprotocol(), None);
/// assert_eq!(input[head_bytes..], *b"\x89\x00");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ClientHandshake {
    host: String,
    target: String,
    key: Key,
    subprotocols: Vec<String>,
    origin: Option<Origin>,
    #[cfg(feature = "deflate")]
    deflate: Option<Deflate>,
    headers: ApplicationHeaders,
    limits: HandshakeLimits,
    reader: ResponseReader,
    refusal: Option<Headers>,
    refusal_head_bytes: usize,
    failed: Option<HandshakeError>,
}

impl ClientHandshake {
    /// Starts a handshake with `host` for `target`.
    ///
    /// `host` is a name or address, with a port unless it is the default one. `target` is a
    /// percent-encoded path with an optional query. The server derives its response from `key`;
    /// §4.1: "The nonce MUST be selected randomly for each connection."
    ///
    /// # Errors
    ///
    /// Fails if `host` or `target` is invalid, so that they cannot inject a header.
    pub fn new(host: &str, target: &str, key: [u8; 16]) -> Result<Self, BuildError> {
        Authority::parse(host.as_bytes()).ok_or(BuildError::HostInvalid)?;
        if let Some(offset) = invalid_target_byte(target) {
            return Err(BuildError::TargetInvalid { offset });
        }
        Ok(Self {
            host: host.to_owned(),
            target: target.to_owned(),
            key: Key::new(key),
            subprotocols: Vec::new(),
            origin: None,
            #[cfg(feature = "deflate")]
            deflate: None,
            headers: ApplicationHeaders::default(),
            limits: HandshakeLimits::default(),
            reader: ResponseReader::new(),
            refusal: None,
            refusal_head_bytes: 0,
            failed: None,
        })
    }

    /// Replaces the sixteen random bytes, so that one handshake can serve as a template for many.
    pub fn with_key(mut self, key: [u8; 16]) -> Self {
        self.key = Key::new(key);
        self
    }

    /// Offers a subprotocol. Call this in the order of preference, the most preferred one first.
    ///
    /// # Errors
    ///
    /// Fails if the subprotocol is not a token, or is already offered.
    pub fn with_subprotocol(mut self, subprotocol: &str) -> Result<Self, BuildError> {
        if !is_token(subprotocol.as_bytes()) {
            return Err(BuildError::SubprotocolInvalid);
        }
        if self
            .subprotocols
            .iter()
            .any(|offered| offered == subprotocol)
        {
            return Err(BuildError::SubprotocolDuplicate);
        }
        self.subprotocols.push(subprotocol.to_owned());
        Ok(self)
    }

    /// Sets the origin of the page that opens the connection. Programs other than browsers do not
    /// need this.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Offers message compression.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: Deflate) -> Self {
        self.deflate = Some(options);
        self
    }

    /// Adds a header, for example `Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the name is not a token, the value contains a control character, or the handshake
    /// sets the header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Sets the limits on the server's response.
    pub fn with_limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Appends the request to `output`. Send nothing after it until the response has been checked.
    pub fn encode(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(format!("GET {} HTTP/1.1\r\n", self.target).as_bytes());
        let mut add = |name: &str, value: &[u8]| append_header(output, name, value);
        add("Host", self.host.as_bytes());
        add("Upgrade", b"websocket");
        add("Connection", b"Upgrade");
        add("Sec-WebSocket-Key", self.key.as_bytes());
        for (name, value) in self.fields() {
            add(name, value.as_bytes());
        }
        output.extend_from_slice(b"\r\n");
    }

    /// Returns the headers of a request over HTTP/2 (RFC 8441 §5).
    ///
    /// These are the headers that [`encode`](Self::encode) writes, without those that upgrade
    /// HTTP/1.1, and without the host, which HTTP/2 sends in the pseudo-header field `:authority`.
    pub fn fields(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let subprotocols = (!self.subprotocols.is_empty()).then(|| self.subprotocols.join(", "));
        let subprotocols = subprotocols.map(|all| ("Sec-WebSocket-Protocol", all));
        let origin = self.origin.as_ref();
        let origin = origin.map(|origin| ("Origin", origin.to_string()));
        #[cfg(feature = "deflate")]
        let extension = self.deflate.as_ref().map(compression::offers);
        #[cfg(not(feature = "deflate"))]
        let extension: Option<String> = None;
        let application = self.headers.iter();
        [("Sec-WebSocket-Version", Cow::Borrowed("13"))]
            .into_iter()
            .chain(subprotocols.map(|(name, value)| (name, value.into())))
            .chain(origin.map(|(name, value)| (name, value.into())))
            .chain(extension.map(|offers| ("Sec-WebSocket-Extensions", offers.into())))
            .chain(application.map(|(name, value)| (name, value.into())))
    }

    /// Checks the final response to a request over HTTP/2 (RFC 8441 §5). Do not pass interim
    /// responses.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses, or selects something that was not offered.
    pub fn handle_response<'a>(
        &mut self,
        status: u16,
        headers: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) -> Result<Negotiated, HandshakeError> {
        let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
        let mut header_lines = 0;
        for (name, value) in headers {
            append_header(&mut head, name, value);
            header_lines += 1;
        }
        head.extend_from_slice(b"\r\n");
        let (_, headers) = parse(head, header_lines)?;
        if !(200..300).contains(&status) {
            self.refusal = Some(headers);
            return Err(HandshakeError::StatusUnexpected { status });
        }
        self.negotiate(status, headers)
    }

    /// Processes received bytes.
    ///
    /// Returns `Ok(None)` if it has used all bytes and needs more. On success it also returns how
    /// many bytes of *this* input belong to the handshake; the bytes after them are the server's
    /// first frames.
    ///
    /// # Errors
    ///
    /// Fails if the response does not open the WebSocket, or violates the rules or a limit. Close
    /// the connection; further calls return the same error. Redirects are not followed:
    /// [`HandshakeError::StatusUnexpected`] contains the status, and
    /// [`refusal_headers`](Self::refusal_headers) returns the headers.
    pub fn handle_input(
        &mut self,
        input: &[u8],
    ) -> Result<Option<(Negotiated, usize)>, HandshakeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read(input)
            .inspect_err(|error| self.failed = Some(*error))
    }

    /// Returns the error for a stream that ends before the handshake is complete.
    pub fn handle_eof(&self) -> HandshakeError {
        self.failed.unwrap_or_else(|| self.reader.handle_eof())
    }

    /// Returns the headers of a response whose status does not open the WebSocket. They can contain
    /// a redirect or the time to retry.
    pub fn refusal_headers(&self) -> Option<&Headers> {
        self.refusal.as_ref()
    }

    /// Returns the headers of that response without copying them; empty if there is none.
    pub fn into_refusal_headers(self) -> Headers {
        self.refusal
            .unwrap_or_else(|| Headers::new(Vec::new(), Vec::new()))
    }

    /// Returns how many bytes of the input that was processed last belong to the head of that
    /// response. The bytes after them are the beginning of its body.
    pub fn refusal_head_bytes(&self) -> usize {
        self.refusal_head_bytes
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(Negotiated, usize)>, HandshakeError> {
        let Some(response) = self.reader.read(input, &self.limits)? else {
            return Ok(None);
        };
        let status = response.status;
        if status != 101 {
            self.refusal = Some(response.headers);
            self.refusal_head_bytes = response.taken;
            return Err(HandshakeError::StatusUnexpected { status });
        }
        Ok(Some((self.judge(response.headers)?, response.taken)))
    }

    /// Checks a 101 response by the list in RFC 6455 §4.1.
    fn judge(&self, headers: Headers) -> Result<Negotiated, HandshakeError> {
        if !list_contains(headers.all("Upgrade"), "websocket") {
            return Err(HandshakeError::UpgradeNotWebSocket);
        }
        if !list_contains(headers.all("Connection"), "upgrade") {
            return Err(HandshakeError::ConnectionNotUpgrade);
        }
        let accept =
            headers
                .single("Sec-WebSocket-Accept")?
                .ok_or(HandshakeError::HeaderMissing {
                    name: "Sec-WebSocket-Accept",
                })?;
        if accept != self.key.accept().as_str().as_bytes() {
            return Err(HandshakeError::AcceptMismatch);
        }
        self.negotiate(101, headers)
    }

    /// Checks the subprotocol and the extensions that the server has selected.
    fn negotiate(&self, status: u16, headers: Headers) -> Result<Negotiated, HandshakeError> {
        #[cfg(feature = "deflate")]
        let deflate = self.judge_extensions(&headers)?;
        #[cfg(not(feature = "deflate"))]
        check_no_extension(&headers)?;
        let subprotocol = match headers.single("Sec-WebSocket-Protocol")? {
            None => None,
            Some(chosen) => Some(
                self.subprotocols
                    .iter()
                    .find(|offered| offered.as_bytes() == chosen)
                    .ok_or(HandshakeError::SubprotocolUnoffered)?
                    .clone(),
            ),
        };
        Ok(Negotiated {
            status,
            subprotocol,
            #[cfg(feature = "deflate")]
            deflate,
            headers,
        })
    }

    /// Checks the extensions that the server has selected.
    ///
    /// §4.1: an extension "that was not present in the client's handshake" fails the connection.
    #[cfg(feature = "deflate")]
    fn judge_extensions(&self, headers: &Headers) -> Result<Option<Agreement>, HandshakeError> {
        let Some(options) = &self.deflate else {
            return check_no_extension(headers).map(|()| None);
        };
        let lines = headers.all("Sec-WebSocket-Extensions");
        compression::judge(&parse_offers(lines, &self.limits)?, options)
    }
}

impl fmt::Debug for ClientHandshake {
    /// Omits the key, the target and the application's headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandshake")
            .field("host", &self.host)
            .field("subprotocols", &self.subprotocols)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// The result of a client's opening handshake.
#[derive(Clone, Debug)]
pub struct Negotiated {
    status: u16,
    subprotocol: Option<String>,
    #[cfg(feature = "deflate")]
    deflate: Option<Agreement>,
    headers: Headers,
}

impl Negotiated {
    /// Returns the status of the response: 101, or over HTTP/2 one from 200 to 299.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the selected subprotocol, which is one of those offered.
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// Returns the compression parameters; `None` if messages are not compressed.
    #[cfg(feature = "deflate")]
    pub fn deflate(&self) -> Option<Agreement> {
        self.deflate
    }

    /// Returns the headers of the response.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Returns the headers of the response without copying them.
    pub fn into_headers(self) -> Headers {
        self.headers
    }
}

fn check_no_extension(headers: &Headers) -> Result<(), HandshakeError> {
    match elements(headers.all("Sec-WebSocket-Extensions")).next() {
        Some(_) => Err(HandshakeError::ExtensionUnoffered),
        None => Ok(()),
    }
}
