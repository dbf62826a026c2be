//! Reads request heads as their bytes arrive (RFC 9112 §2).

use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::scan::{HeadKind, HeadScanner};
use super::{HandshakeError, HandshakeLimits, Request};

/// Reads request heads from a connection, in pieces of any size.
///
/// The head is copied into a buffer that grows with the received bytes, up to
/// [`HandshakeLimits::head_bytes_max`]. Each byte is scanned once, and the head is parsed once.
///
/// ```
/// use linerate_proto::handshake::{HandshakeLimits, RequestReader};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut reader = RequestReader::new(HandshakeLimits::default());
/// assert!(reader.handle_input(b"GET /chat?room=1 HTTP/1.1\r\nHo")?.is_none());
/// // The peer did not wait for the response: its first frame is in the same input.
/// let input = b"st: example.com\r\n\r\n\x81\x80\0\0\0\0";
/// let (request, head_bytes) = reader.handle_input(input)?.ok_or("the head is whole")?;
/// assert_eq!((request.path(), request.query()), ("/chat", Some("room=1")));
/// assert_eq!(input[head_bytes..], *b"\x81\x80\0\0\0\0");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RequestReader {
    limits: HandshakeLimits,
    scanner: HeadScanner,
    head: Vec<u8>,
    failed: Option<HandshakeError>,
}

impl RequestReader {
    /// Creates a reader for a new connection.
    pub fn new(limits: HandshakeLimits) -> Self {
        Self {
            limits,
            scanner: HeadScanner::new(HeadKind::Request),
            head: Vec::new(),
            failed: None,
        }
    }

    /// Processes received bytes.
    ///
    /// Returns `Ok(None)` if it has used all bytes and needs more. With a request it also returns
    /// how many bytes of *this* input belong to its head; the bytes after them are not examined.
    /// The reader is then ready for the next request, for callers that answer several requests on
    /// one connection.
    ///
    /// # Errors
    ///
    /// Fails if the head violates the rules of HTTP/1.1 or a limit, if possible at the first
    /// invalid byte. Answer with [`Refusal::from`](super::Refusal) and close the connection;
    /// further calls return the same error.
    pub fn handle_input(
        &mut self,
        input: &[u8],
    ) -> Result<Option<(Request, usize)>, HandshakeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read(input)
            .inspect_err(|error| self.failed = Some(*error))
    }

    /// Handles the end of the stream.
    ///
    /// # Errors
    ///
    /// Fails with [`HandshakeError::HeadTruncated`] if a head is incomplete. An end before the
    /// first byte of a head is not an error.
    pub fn handle_eof(&self) -> Result<(), HandshakeError> {
        match self.scanner.bytes() {
            0 => Ok(()),
            head_bytes => Err(HandshakeError::HeadTruncated { head_bytes }),
        }
    }

    /// Returns how many bytes of the current head were examined, for tests that limit the work.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.scanner.steps()
    }

    fn read(&mut self, input: &[u8]) -> Result<Option<(Request, usize)>, HandshakeError> {
        let Some(head_bytes) = self.scanner.scan(input, &self.limits)? else {
            self.head.extend_from_slice(input);
            return Ok(None);
        };
        self.head.extend_from_slice(&input[..head_bytes]);
        let scanner = mem::replace(&mut self.scanner, HeadScanner::new(HeadKind::Request));
        let request = Request::parse(mem::take(&mut self.head), scanner.headers(), self.limits)?;
        Ok(Some((request, head_bytes)))
    }
}

impl fmt::Debug for RequestReader {
    /// Shows how many bytes of the head have arrived, but not their content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestReader")
            .field("head_bytes", &self.scanner.bytes())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
