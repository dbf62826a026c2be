//! Finds the end of an HTTP/1.1 head as its bytes arrive (RFC 9112 §2.1, §2.2).
//!
//! Each byte is examined once, however the bytes are split, so a head that arrives byte by byte
//! costs no more than a whole one. The line structure is checked strictly, and errors are reported
//! at the first invalid byte:
//!
//! - A line ends with CRLF. RFC 9112 §2.2 allows accepting a bare LF as well, but parsers that
//!   disagree about it allow request smuggling, so a bare LF is refused like a bare CR.
//! - A line that starts with white space continues a header (obs-fold) and is refused (§5.2).
//! - A control character other than tab is refused everywhere.
//! - One empty line may precede a request (§2.2: "a server that is expecting to receive and parse
//!   a request-line SHOULD ignore at least one empty line"); a second one is refused.

use super::token::is_token_byte;
use super::{HandshakeError, HandshakeLimits};

/// The kind of message to which a head belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadKind {
    /// A request; its first line starts with a method.
    Request,
    /// A response; its first line starts with `HTTP/`.
    Response,
}

/// The position of the next byte in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At the first byte.
    Start,
    /// After the CR of an empty line before a request.
    BlankCr,
    /// At the first byte after an empty line.
    StartAfterBlank,
    /// Inside the first line or a header.
    Line,
    /// After the CR that ends a line.
    LineCr,
    /// At the first byte of a line that is not the first.
    NextLine,
    /// After the CR of the empty line that ends the head.
    LastCr,
    /// After the head.
    End,
}

/// Scans one head.
#[derive(Clone, Debug)]
pub(super) struct HeadScanner {
    kind: HeadKind,
    state: State,
    bytes: usize,
    headers: usize,
    #[cfg(test)]
    steps: usize,
}

impl HeadScanner {
    pub(super) fn new(kind: HeadKind) -> Self {
        Self {
            kind,
            state: State::Start,
            bytes: 0,
            headers: 0,
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Scans `input`, which continues the bytes scanned before. Returns how many of its bytes
    /// belong to the head once the head is complete, and `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// Fails at the first byte that violates the structure or a limit.
    pub(super) fn scan(
        &mut self,
        input: &[u8],
        limits: &HandshakeLimits,
    ) -> Result<Option<usize>, HandshakeError> {
        for (index, &byte) in input.iter().enumerate() {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            if self.bytes == limits.head_bytes_max {
                return Err(HandshakeError::HeadTooLarge {
                    head_bytes: self.bytes + 1,
                    head_bytes_max: limits.head_bytes_max,
                });
            }
            self.state = self.step(byte, limits)?;
            self.bytes += 1;
            if self.state == State::End {
                return Ok(Some(index + 1));
            }
        }
        Ok(None)
    }

    /// Returns how many bytes were scanned so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many header lines have begun so far.
    pub(super) fn headers(&self) -> usize {
        self.headers
    }

    /// Returns how many bytes were examined, for tests that limit the work.
    #[cfg(test)]
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    fn step(&mut self, byte: u8, limits: &HandshakeLimits) -> Result<State, HandshakeError> {
        let invalid = HandshakeError::HeadByteInvalid { offset: self.bytes };
        match (self.state, byte) {
            (State::Start, b'\r') if self.kind == HeadKind::Request => Ok(State::BlankCr),
            (State::Start | State::StartAfterBlank, _) => self.first_byte(byte),
            (State::BlankCr, b'\n') => Ok(State::StartAfterBlank),
            (State::Line, b'\r') => Ok(State::LineCr),
            (State::LineCr, b'\n') => Ok(State::NextLine),
            (State::NextLine, b'\r') => Ok(State::LastCr),
            (State::NextLine, b' ' | b'\t') => Err(invalid),
            (State::LastCr, b'\n') => Ok(State::End),
            (State::Line, b'\t' | 0x20..=0x7E | 0x80..) => Ok(State::Line),
            (State::NextLine, 0x21..=0x7E | 0x80..) => self.next_header(limits),
            _ => Err(invalid),
        }
    }

    /// Checks the first byte, so that anything that cannot be HTTP/1.1 is refused at once: a peer
    /// that uses TLS may never send the CRLF that would otherwise end the wait.
    fn first_byte(&self, byte: u8) -> Result<State, HandshakeError> {
        const TLS_HANDSHAKE_RECORD: u8 = 0x16;
        match self.kind {
            HeadKind::Request if is_token_byte(byte) => Ok(State::Line),
            HeadKind::Request if byte == TLS_HANDSHAKE_RECORD => {
                Err(HandshakeError::TlsClientHello)
            }
            HeadKind::Response if byte == b'H' => Ok(State::Line),
            _ => Err(HandshakeError::HeadByteInvalid { offset: self.bytes }),
        }
    }

    fn next_header(&mut self, limits: &HandshakeLimits) -> Result<State, HandshakeError> {
        self.headers += 1;
        if self.headers > limits.headers_max {
            return Err(HandshakeError::HeadersTooMany {
                headers: self.headers,
                headers_max: limits.headers_max,
            });
        }
        Ok(State::Line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_scanned_once_however_the_head_is_split() {
        let limits = HandshakeLimits::default();
        let mut head = [b'a'; 16 * 1024];
        head[..22].copy_from_slice(b"GET / HTTP/1.1\r\nHost: ");
        head[16 * 1024 - 4..].copy_from_slice(b"\r\n\r\n");
        for piece in [1, 2, 1_400, head.len()] {
            let mut scanner = HeadScanner::new(HeadKind::Request);
            let mut end = None;
            for input in head.chunks(piece) {
                assert_eq!(end, None);
                end = scanner.scan(input, &limits).unwrap();
            }
            assert_eq!(end, Some((head.len() - 1) % piece + 1));
            assert_eq!((scanner.steps(), scanner.bytes()), (head.len(), head.len()));
        }
    }

    #[test]
    fn bytes_after_the_head_are_not_scanned() {
        let mut scanner = HeadScanner::new(HeadKind::Response);
        let input = b"HTTP/1.1 101 \r\nA: b\r\n\r\n\x00\r\n\x16";
        assert_eq!(
            scanner.scan(input, &HandshakeLimits::default()),
            Ok(Some(23))
        );
        assert_eq!((scanner.steps(), scanner.headers()), (23, 1));
    }
}
