//! Reads response heads as their bytes arrive (RFC 9112 §2, §4).

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use super::headers::{Headers, Span};
use super::request::check_parsed;
use super::scan::{HeadKind, HeadScanner};
use super::{HandshakeError, HandshakeLimits};

/// The head of a final response.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) headers: Headers,
    /// How many bytes of the last input belong to the response.
    pub(super) taken: usize,
}

/// Reads the head of the response to one request, in pieces of any size.
#[derive(Clone)]
pub(super) struct ResponseReader {
    scanner: HeadScanner,
    head: Vec<u8>,
    interim_responses: usize,
}

impl ResponseReader {
    pub(super) fn new() -> Self {
        Self {
            scanner: HeadScanner::new(HeadKind::Response),
            head: Vec::new(),
            interim_responses: 0,
        }
    }

    /// Reads bytes; returns `None` if it has used all of them and needs more. Interim responses are
    /// skipped; a 101 does not count as one.
    ///
    /// # Errors
    ///
    /// Fails if the response violates the rules or a limit.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        limits: &HandshakeLimits,
    ) -> Result<Option<ResponseHead>, HandshakeError> {
        let mut taken = 0;
        loop {
            let rest = &input[taken..];
            let Some(head_bytes) = self.scanner.scan(rest, limits)? else {
                self.head.extend_from_slice(rest);
                return Ok(None);
            };
            self.head.extend_from_slice(&rest[..head_bytes]);
            taken += head_bytes;
            let scanner = mem::replace(&mut self.scanner, HeadScanner::new(HeadKind::Response));
            let (status, headers) = parse(mem::take(&mut self.head), scanner.headers())?;
            if status == 101 || !(100..=199).contains(&status) {
                return Ok(Some(ResponseHead {
                    status,
                    headers,
                    taken,
                }));
            }
            self.skip_interim_response(limits)?;
        }
    }

    /// Returns the error for a stream that ends here.
    pub(super) fn handle_eof(&self) -> HandshakeError {
        HandshakeError::HeadTruncated {
            head_bytes: self.scanner.bytes(),
        }
    }

    /// Counts an interim response against its limit.
    ///
    /// RFC 9110 §15.2: "A client MUST be able to parse one or more 1xx responses received prior to
    /// a final response, even if the client does not expect one."
    fn skip_interim_response(&mut self, limits: &HandshakeLimits) -> Result<(), HandshakeError> {
        self.interim_responses += 1;
        if self.interim_responses > limits.interim_responses_max {
            return Err(HandshakeError::InterimResponsesTooMany {
                responses: self.interim_responses,
                responses_max: limits.interim_responses_max,
            });
        }
        Ok(())
    }
}

/// Parses a complete response head with `header_lines` header lines, as counted by the scanner.
pub(super) fn parse(head: Vec<u8>, header_lines: usize) -> Result<(u16, Headers), HandshakeError> {
    let mut lines = vec![httparse::EMPTY_HEADER; header_lines];
    let mut parsed = httparse::Response::new(&mut lines);
    check_parsed(parsed.parse(&head), &head)?;
    let Some(status) = parsed.code else {
        return Err(HandshakeError::StartLineInvalid);
    };
    if status == 101 && parsed.version != Some(1) {
        return Err(HandshakeError::HttpVersionUnsupported);
    }
    let fields = parsed
        .headers
        .iter()
        .map(|header| Span::of_header(header, &head))
        .collect();
    Ok((status, Headers::new(head, fields)))
}
