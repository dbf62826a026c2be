//! The client's side of the opening handshake (RFC 6455 §4.1, RFC 8441 §5).

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;

use super::accept::Key;
use super::answer::{AnswerReader, parse};
use super::authority::Authority;
#[cfg(feature = "deflate")]
use super::extension::parse_offers;
use super::headers::{ApplicationHeaders, Headers, append_header};
use super::target::invalid_target_byte;
use super::token::{elements, is_token, list_contains};
use super::{BuildError, HandshakeError, HandshakeLimits, Origin};
#[cfg(feature = "deflate")]
use crate::deflate::{self, Agreement, Deflate};

/// Opens a WebSocket: says what to send, then judges what comes back.
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
/// // The server did not wait: the rest of this input is its first frame.
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
    reader: AnswerReader,
    refusal: Option<Headers>,
    failed: Option<HandshakeError>,
}

impl ClientHandshake {
    /// Starts a handshake with `host` (a name or address, and a port unless it is the default
    /// one) for `target` (a path with an optional query, encoded).
    ///
    /// `key` is what the server has to answer to; §4.1: "The nonce MUST be selected randomly for
    /// each connection."
    ///
    /// # Errors
    ///
    /// When host or target are not such: nothing in them can become a header of its own.
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
            reader: AnswerReader::new(),
            refusal: None,
            failed: None,
        })
    }

    /// Sets the sixteen random bytes in place of those before, so that one handshake can be the
    /// pattern of many.
    pub fn with_key(mut self, key: [u8; 16]) -> Self {
        self.key = Key::new(key);
        self
    }

    /// Offers a subprotocol, behind those offered before: the best one goes first.
    ///
    /// # Errors
    ///
    /// When it is no token, or is offered already.
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

    /// Says which page opens the connection, in place of one named before; programs other than
    /// browsers need not.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Offers to compress messages.
    #[cfg(feature = "deflate")]
    pub fn with_deflate(mut self, options: Deflate) -> Self {
        self.deflate = Some(options);
        self
    }

    /// Adds a header, `Authorization` for instance.
    ///
    /// # Errors
    ///
    /// When the name is no token, the value holds a control character, or the handshake sets the
    /// header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Bounds what the server may make the handshake cost, in place of the defaults.
    pub fn with_limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Appends the request to `output`. Nothing may follow it until the response was judged.
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

    /// Returns the headers of a request over HTTP/2: what [`encode`](Self::encode) writes but for what
    /// upgrades HTTP/1.1, and for the host, which is the pseudo-header field `:authority` there
    /// (RFC 8441 §5).
    pub fn fields(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let subprotocols = (!self.subprotocols.is_empty()).then(|| self.subprotocols.join(", "));
        let subprotocols = subprotocols.map(|all| ("Sec-WebSocket-Protocol", all));
        let origin = self.origin.as_ref();
        let origin = origin.map(|origin| ("Origin", origin.to_string()));
        #[cfg(feature = "deflate")]
        let extension = self.deflate.as_ref().map(deflate::offers);
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

    /// Judges the response to a request over HTTP/2, interim responses excepted (RFC 8441 §5).
    ///
    /// # Errors
    ///
    /// The server refuses, or agrees to what was not offered.
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
        self.negotiate(headers)
    }

    /// Takes the bytes that arrived.
    ///
    /// `Ok(None)` means that all of them were taken and more are needed. With the outcome comes
    /// the number of bytes of *this* input that belong to the handshake; what follows them are
    /// the server's first frames.
    ///
    /// # Errors
    ///
    /// When the response does not open the WebSocket, or breaks the rules or a limit. Close the
    /// connection; the handshake repeats the error from then on. Redirects are not followed:
    /// [`HandshakeError::StatusUnexpected`] names the status, and
    /// [`refusal_headers`](Self::refusal_headers) has the rest.
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

    /// Takes the end of the stream before the handshake was over, and names the error that it is.
    pub fn handle_eof(&self) -> HandshakeError {
        self.failed.unwrap_or_else(|| self.reader.handle_eof())
    }

    /// Returns the headers of the response if that does not open the WebSocket by its status: where
    /// to go instead, or when to come back.
    pub fn refusal_headers(&self) -> Option<&Headers> {
        self.refusal.as_ref()
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(Negotiated, usize)>, HandshakeError> {
        let Some(answer) = self.reader.read(input, &self.limits)? else {
            return Ok(None);
        };
        let status = answer.status;
        if status != 101 {
            self.refusal = Some(answer.headers);
            return Err(HandshakeError::StatusUnexpected { status });
        }
        Ok(Some((self.judge(answer.headers)?, answer.taken)))
    }

    /// Checks a 101 by the list in RFC 6455 §4.1.
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
        self.negotiate(headers)
    }

    /// Checks what the server has agreed to.
    fn negotiate(&self, headers: Headers) -> Result<Negotiated, HandshakeError> {
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
            subprotocol,
            #[cfg(feature = "deflate")]
            deflate,
            headers,
        })
    }

    /// §4.1: an extension "that was not present in the client's handshake" fails the connection.
    #[cfg(feature = "deflate")]
    fn judge_extensions(&self, headers: &Headers) -> Result<Option<Agreement>, HandshakeError> {
        let Some(options) = &self.deflate else {
            return check_no_extension(headers).map(|()| None);
        };
        let lines = headers.all("Sec-WebSocket-Extensions");
        deflate::judge(&parse_offers(lines, &self.limits)?, options)
    }
}

impl fmt::Debug for ClientHandshake {
    /// Leaves the key, the query and the application's headers out: they may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientHandshake")
            .field("host", &self.host)
            .field("subprotocols", &self.subprotocols)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

/// What an opening handshake agreed on, as the client sees it.
#[derive(Clone, Debug)]
pub struct Negotiated {
    subprotocol: Option<String>,
    #[cfg(feature = "deflate")]
    deflate: Option<Agreement>,
    headers: Headers,
}

impl Negotiated {
    /// Returns the subprotocol in use, one of those offered.
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// Returns how messages are compressed, `None` if they are not.
    #[cfg(feature = "deflate")]
    pub fn deflate(&self) -> Option<Agreement> {
        self.deflate
    }

    /// Returns the headers of the response.
    pub fn headers(&self) -> &Headers {
        &self.headers
    }
}

fn check_no_extension(headers: &Headers) -> Result<(), HandshakeError> {
    match elements(headers.all("Sec-WebSocket-Extensions")).next() {
        Some(_) => Err(HandshakeError::ExtensionUnoffered),
        None => Ok(()),
    }
}
