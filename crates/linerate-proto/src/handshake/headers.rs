//! Header lines: received ones, stored as ranges of one buffer, and those to be sent.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str;

use super::token::{invalid_value_byte, is_token_byte, list_contains, trim_ows};
use super::{BuildError, HandshakeError};

/// A range of bytes in a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// Returns the position of `part` in `whole`; it must be a slice of `whole`.
    pub(super) fn of(part: &[u8], whole: &[u8]) -> Self {
        let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
        Self {
            start,
            end: start + part.len(),
        }
    }

    /// Returns the positions of the name and the value of a parsed header in its head.
    pub(super) fn of_header(header: &httparse::Header<'_>, head: &[u8]) -> (Self, Self) {
        (
            Self::of(header.name.as_bytes(), head),
            Self::of(header.value, head),
        )
    }

    fn slice(self, whole: &[u8]) -> &[u8] {
        whole.get(self.start..self.end).unwrap_or_default()
    }
}

/// The headers of a received request or response, in the order in which they arrived.
///
/// Lookups by name ignore case. Values are bytes, because real headers are not always ASCII;
/// surrounding white space is stripped.
#[derive(Clone)]
pub struct Headers {
    head: Vec<u8>,
    fields: Vec<(Span, Span)>,
}

impl Headers {
    /// Creates headers from a head and the ranges that the parser found in it.
    pub(super) fn new(head: Vec<u8>, fields: Vec<(Span, Span)>) -> Self {
        Self { head, fields }
    }

    /// Returns the names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields
            .iter()
            .map(|&(name, value)| (self.text_at(name), trim_ows(value.slice(&self.head))))
    }

    /// Returns the value of the first header with this name.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the value of the first header with this name if it is UTF-8.
    pub fn first_text(&self, name: &str) -> Option<&str> {
        self.first(name)
            .and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns the values of all headers with this name, in order.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the headers that an intermediary may forward.
    ///
    /// These are all headers except those for this connection only: the ones listed in
    /// `Connection`, and the well-known hop-by-hop headers (RFC 9110 §7.6.1), including `Upgrade`.
    pub fn end_to_end(&self) -> impl Iterator<Item = (&str, &[u8])> {
        const HOP_BY_HOP: [&str; 6] = [
            "Connection",
            "Keep-Alive",
            "Proxy-Connection",
            "TE",
            "Transfer-Encoding",
            "Upgrade",
        ];
        self.iter().filter(|(name, _)| {
            !HOP_BY_HOP.iter().any(|hop| hop.eq_ignore_ascii_case(name))
                && !list_contains(self.all("Connection"), name)
        })
    }

    /// Returns the value of a header that may appear only once.
    pub(super) fn single(&self, name: &'static str) -> Result<Option<&[u8]>, HandshakeError> {
        let mut values = self.all(name);
        let value = values.next();
        match values.next() {
            Some(_) => Err(HandshakeError::HeaderDuplicate { name }),
            None => Ok(value),
        }
    }

    /// Returns a range of the head that the parser has found to be ASCII.
    pub(super) fn text_at(&self, span: Span) -> &str {
        str::from_utf8(span.slice(&self.head)).unwrap_or_default()
    }
}

impl fmt::Debug for Headers {
    /// Shows only the names: values may contain credentials, and the peer controls them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Checks that a header can be sent: its name must be a token and its value must be valid (RFC 9110
/// §5.5). This prevents CR and LF in an application's strings from starting new header lines.
pub(super) fn check_header(name: &str, value: &[u8]) -> Result<(), BuildError> {
    let name_error = name.bytes().position(|byte| !is_token_byte(byte));
    if let Some(offset) = name_error.or_else(|| name.is_empty().then_some(0)) {
        return Err(BuildError::HeaderNameInvalid { offset });
    }
    match invalid_value_byte(value) {
        Some(offset) => Err(BuildError::HeaderValueInvalid { offset }),
        None => Ok(()),
    }
}

/// Appends one header line.
pub(super) fn append_header(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        head.extend_from_slice(part);
    }
}

/// Appends one header line that a peer or a library has passed on, if it is valid.
pub(super) fn append_checked(
    head: &mut Vec<u8>,
    name: &str,
    value: &[u8],
) -> Result<(), HandshakeError> {
    check_header(name, value).map_err(|error| match error {
        BuildError::HeaderValueInvalid { .. } => HandshakeError::HeaderValueInvalid,
        _ => HandshakeError::HeaderNameInvalid,
    })?;
    append_header(head, name, value);
    Ok(())
}

/// The headers that an application adds to one of our messages.
#[derive(Clone, Default)]
pub(super) struct ApplicationHeaders(Vec<(String, String)>);

impl ApplicationHeaders {
    /// Adds a header, unless it is invalid or the handshake sets it itself.
    pub(super) fn add(&mut self, name: &str, value: &str) -> Result<(), BuildError> {
        const RESERVED: [&str; 6] = [
            "Connection",
            "Content-Length",
            "Host",
            "Origin",
            "Transfer-Encoding",
            "Upgrade",
        ];
        const RESERVED_PREFIX: &str = "Sec-WebSocket-";
        let is_websocket = name
            .get(..RESERVED_PREFIX.len())
            .is_some_and(|prefix| prefix.eq_ignore_ascii_case(RESERVED_PREFIX));
        if is_websocket
            || RESERVED
                .iter()
                .any(|reserved| reserved.eq_ignore_ascii_case(name))
        {
            return Err(BuildError::HeaderReserved);
        }
        check_header(name, value.as_bytes())?;
        self.0.push((name.into(), value.into()));
        Ok(())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}
