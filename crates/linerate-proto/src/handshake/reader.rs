//! Reads request heads as their bytes arrive (RFC 9112 §2).

use alloc::vec::Vec;
use core::fmt;
use core::mem;

use super::scan::{HeadKind, HeadScanner};
use super::{HandshakeError, HandshakeLimits, Request};

/// Reads request heads from a connection, in whatever pieces their bytes arrive.
///
/// The head is copied into a buffer that grows with what was received, and holds at most
/// [`HandshakeLimits::head_bytes_max`] bytes; each byte is looked at once, and the head parsed once.
///
/// ```
/// use linerate_proto::handshake::{HandshakeLimits, RequestReader};
///
/// # fn main() -> Result<(), Box<dyn core::error::Error>> {
/// let mut reader = RequestReader::new(HandshakeLimits::default());
/// assert!(reader.handle_input(b"GET /chat?room=1 HTTP/1.1\r\nHo")?.is_none());
/// // The peer did not wait for the answer: the rest of this input is its first frame.
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
    /// Starts before the first byte of a connection.
    pub fn new(limits: HandshakeLimits) -> Self {
        Self {
            limits,
            scanner: HeadScanner::new(HeadKind::Request),
            head: Vec::new(),
            failed: None,
        }
    }

    /// Takes the bytes that arrived.
    ///
    /// `Ok(None)` means that all of them were taken and more are needed. With a request comes the
    /// number of bytes of *this* input that belong to its head; what follows them was neither
    /// taken nor looked at. The reader then stands before the next request, for callers that
    /// answer several on one connection.
    ///
    /// # Errors
    ///
    /// When the head breaks the rules of HTTP/1.1 or a limit, at the first byte that does where
    /// that can be told. Answer with [`Refusal::from`](super::Refusal) and close the connection;
    /// the reader repeats the error from then on.
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

    /// Takes the end of the stream.
    ///
    /// # Errors
    ///
    /// [`HandshakeError::HeadTruncated`] within a head; an end before its first byte is no error.
    pub fn handle_eof(&self) -> Result<(), HandshakeError> {
        match self.scanner.bytes() {
            0 => Ok(()),
            head_bytes => Err(HandshakeError::HeadTruncated { head_bytes }),
        }
    }

    /// Times a byte of the current head was looked at, for tests that bound the work.
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
    /// Shows how far the head has come, and none of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestReader")
            .field("head_bytes", &self.scanner.bytes())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}
