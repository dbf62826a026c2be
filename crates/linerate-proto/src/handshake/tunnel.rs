//! Tunnels through HTTP proxies (RFC 9110 §9.3.6), as RFC 6455 §4.1 asks clients behind one to open.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::answer::AnswerReader;
use super::authority::Authority;
use super::headers::{ApplicationHeaders, append_header};
use super::{BuildError, HandshakeError, HandshakeLimits};

/// Asks a proxy for a tunnel, then judges what it answers.
///
/// ```
/// use linerate_proto::handshake::TunnelHandshake;
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut tunnel = TunnelHandshake::new("example.com:443")?;
/// let mut output = Vec::new();
/// tunnel.encode(&mut output);
/// assert!(output.starts_with(b"CONNECT example.com:443 HTTP/1.1\r\n"));
///
/// let input = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// assert_eq!(tunnel.handle_input(input)?, Some(input.len()));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct TunnelHandshake {
    destination: String,
    headers: ApplicationHeaders,
    limits: HandshakeLimits,
    reader: AnswerReader,
    failed: Option<HandshakeError>,
}

impl TunnelHandshake {
    /// Starts a handshake for a tunnel to `destination`, a name or address with a port.
    ///
    /// # Errors
    ///
    /// When it is not such: nothing in it can become a header of its own.
    pub fn new(destination: &str) -> Result<Self, BuildError> {
        let authority = Authority::parse(destination.as_bytes()).ok_or(BuildError::HostInvalid)?;
        // RFC 9112 §3.2.3: the target is a host and a port, which is never left out.
        authority.port.ok_or(BuildError::HostInvalid)?;
        Ok(Self {
            destination: destination.to_owned(),
            headers: ApplicationHeaders::default(),
            limits: HandshakeLimits::default(),
            reader: AnswerReader::new(),
            failed: None,
        })
    }

    /// Adds a header, `Proxy-Authorization` for instance.
    ///
    /// # Errors
    ///
    /// When the name is no token, the value holds a control character, or the handshake sets the
    /// header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Bounds what the proxy may make the handshake cost, in place of the defaults.
    pub fn with_limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Appends the request to `output`. Nothing may follow it until the response was judged.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let request_line = format!("CONNECT {} HTTP/1.1\r\n", self.destination);
        output.extend_from_slice(request_line.as_bytes());
        append_header(output, "Host", self.destination.as_bytes());
        for (name, value) in self.headers.iter() {
            append_header(output, name, value.as_bytes());
        }
        output.extend_from_slice(b"\r\n");
    }

    /// Takes the bytes that arrived.
    ///
    /// `Ok(None)` means that all of them were taken and more are needed. Once the tunnel stands,
    /// returns how many bytes of *this* input belong to the handshake. A server to which we speak
    /// first has sent nothing by then: more input than that comes from the proxy, or from somebody
    /// who would like to be taken for the server.
    ///
    /// # Errors
    ///
    /// The proxy refuses ([`HandshakeError::StatusUnexpected`] names the status; 407 asks for
    /// credentials), or its response breaks the rules or a limit. Close the connection; the
    /// handshake repeats the error from then on.
    pub fn handle_input(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
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

    fn read(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
        let Some(answer) = self.reader.read(input, &self.limits)? else {
            return Ok(None);
        };
        // §9.3.6: "Any 2xx (Successful) response indicates that the sender (and all inbound proxies)
        // will switch to tunnel mode immediately after the response header section". Whatever such a
        // response says about a body is to be ignored.
        match answer.status {
            200..=299 => Ok(Some(answer.taken)),
            status => Err(HandshakeError::StatusUnexpected { status }),
        }
    }
}

impl fmt::Debug for TunnelHandshake {
    /// Leaves the headers out: they may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelHandshake")
            .field("destination", &self.destination)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
