//! Header lines: those received, in one buffer with places in it, and those to be sent.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str;

use super::token::{invalid_value_byte, is_token_byte, list_contains, trim_ows};
use super::{BuildError, HandshakeError};

/// A stretch of a head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// Returns where `part` lies in `whole`, of which it is a slice.
    pub(super) fn of(part: &[u8], whole: &[u8]) -> Self {
        let start = part.as_ptr().addr().saturating_sub(whole.as_ptr().addr());
        Self {
            start,
            end: start + part.len(),
        }
    }

    /// Returns where the name and the value of a parsed header lie in its head.
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

/// The headers of a received request or response, in the order in which they came.
///
/// Names are found in whatever case. Values are bytes, because headers in the wild hold more than
/// ASCII; surrounding white space is stripped.
#[derive(Clone)]
pub struct Headers {
    head: Vec<u8>,
    fields: Vec<(Span, Span)>,
}

impl Headers {
    /// Takes a head over, with what the parser found in it.
    pub(super) fn new(head: Vec<u8>, fields: Vec<(Span, Span)>) -> Self {
        Self { head, fields }
    }

    /// Returns the names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields
            .iter()
            .map(|&(name, value)| (self.text_at(name), trim_ows(value.slice(&self.head))))
    }

    /// Returns the value of the first header of this name.
    pub fn first(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// Returns the value of the first header of this name if it is UTF-8.
    pub fn first_text(&self, name: &str) -> Option<&str> {
        self.first(name)
            .and_then(|value| str::from_utf8(value).ok())
    }

    /// Returns the values of all headers of this name, in order.
    pub fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter()
            .filter(move |(candidate, _)| candidate.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns the headers that an intermediary may pass on: all but those for this connection
    /// only, which are the ones that `Connection` names and the ones known to be such (RFC 9110
    /// §7.6.1). An upgrade is no excuse to pass them on.
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

    /// Returns the value of a header that may appear once only.
    pub(super) fn single(&self, name: &'static str) -> Result<Option<&[u8]>, HandshakeError> {
        let mut values = self.all(name);
        let value = values.next();
        match values.next() {
            Some(_) => Err(HandshakeError::HeaderDuplicate { name }),
            None => Ok(value),
        }
    }

    /// Returns a stretch of the head that the parser proved to be ASCII.
    pub(super) fn text_at(&self, span: Span) -> &str {
        str::from_utf8(span.slice(&self.head)).unwrap_or_default()
    }
}

impl fmt::Debug for Headers {
    /// Shows the names only: values hold credentials, and they are the peer's bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|(name, _)| name))
            .finish()
    }
}

/// Checks that a header can be sent: its name is a token and its value a value (RFC 9110 §5.5).
/// This is what keeps CR and LF in an application's strings from becoming lines of their own.
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

/// The headers that an application adds to a message of ours.
#[derive(Clone, Default)]
pub(super) struct ApplicationHeaders(Vec<(String, String)>);

impl ApplicationHeaders {
    /// Adds a header, unless it cannot be sent or is one of ours.
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
