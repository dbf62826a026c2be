//! Tunnels through HTTP proxies (RFC 9110 §9.3.6), which RFC 6455 §4.1 asks clients behind a proxy
//! to open.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::authority::Authority;
use super::headers::{ApplicationHeaders, append_header};
use super::response_reader::ResponseReader;
use super::{BuildError, HandshakeError, HandshakeLimits};

/// Asks a proxy for a tunnel, then checks the response.
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
    reader: ResponseReader,
    failed: Option<HandshakeError>,
}

impl TunnelHandshake {
    /// Starts a handshake for a tunnel to `destination`, a name or address with a port.
    ///
    /// # Errors
    ///
    /// Fails if `destination` is invalid, so that it cannot inject a header.
    pub fn new(destination: &str) -> Result<Self, BuildError> {
        let authority = Authority::parse(destination.as_bytes()).ok_or(BuildError::HostInvalid)?;
        // RFC 9112 §3.2.3: the target is a host and a port; the port is mandatory.
        authority.port.ok_or(BuildError::HostInvalid)?;
        Ok(Self {
            destination: destination.to_owned(),
            headers: ApplicationHeaders::default(),
            limits: HandshakeLimits::default(),
            reader: ResponseReader::new(),
            failed: None,
        })
    }

    /// Adds a header, for example `Proxy-Authorization`.
    ///
    /// # Errors
    ///
    /// Fails if the name is not a token, the value contains a control character, or the handshake
    /// sets the header itself.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, BuildError> {
        self.headers.add(name, value)?;
        Ok(self)
    }

    /// Sets the limits on the proxy's response.
    pub fn with_limits(mut self, limits: HandshakeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Appends the request to `output`. Send nothing after it until the response has been checked.
    pub fn encode(&self, output: &mut Vec<u8>) {
        let request_line = format!("CONNECT {} HTTP/1.1\r\n", self.destination);
        output.extend_from_slice(request_line.as_bytes());
        append_header(output, "Host", self.destination.as_bytes());
        for (name, value) in self.headers.iter() {
            append_header(output, name, value.as_bytes());
        }
        output.extend_from_slice(b"\r\n");
    }

    /// Processes received bytes.
    ///
    /// Returns `Ok(None)` if it has used all bytes and needs more. Once the tunnel is established,
    /// returns how many bytes of *this* input belong to the handshake. If the client speaks first,
    /// the server cannot have sent anything yet: any further input comes from the proxy, or from an
    /// attacker that impersonates the server.
    ///
    /// # Errors
    ///
    /// Fails if the proxy refuses ([`HandshakeError::StatusUnexpected`] contains the status; 407
    /// asks for credentials), or its response violates the rules or a limit. Close the connection;
    /// further calls return the same error.
    pub fn handle_input(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
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

    fn read(&mut self, input: &[u8]) -> Result<Option<usize>, HandshakeError> {
        let Some(response) = self.reader.read(input, &self.limits)? else {
            return Ok(None);
        };
        // §9.3.6: "Any 2xx (Successful) response indicates that the sender (and all inbound
        // proxies) will switch to tunnel mode immediately after the response header section".
        // Headers that describe a body must be ignored in such a response.
        match response.status {
            200..=299 => Ok(Some(response.taken)),
            status => Err(HandshakeError::StatusUnexpected { status }),
        }
    }
}

impl fmt::Debug for TunnelHandshake {
    /// Omits the headers, which may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelHandshake")
            .field("destination", &self.destination)
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
