//! Parses the replies of RESP2 and RESP3 that occur on a subscribing connection.
//!
//! [`parse`] borrows from its input. It keeps no state, does not allocate, and does not trust a
//! length until the bytes are there.

use memchr::memchr;

/// The maximum number of bytes of a line: a length, a number, a simple string or an error.
const LINE_BYTES_MAX: usize = 8 << 10;

/// The maximum number of elements of an array: `pmessage` has four.
const ELEMENTS_MAX: usize = 4;

/// A reply from Redis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reply<'a> {
    /// A command was refused.
    Error(&'a [u8]),
    /// A publication.
    Message(Message<'a>),
    /// A simple string, like `OK`.
    Simple(&'a [u8]),
    /// The answer to `PING`.
    Pong,
    /// A subscription is in effect.
    Subscribed(&'a [u8]),
    /// A subscription has ended, because it was cancelled or, in a cluster, because its slot has
    /// moved.
    Unsubscribed(&'a [u8]),
}

/// A publication.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Message<'a> {
    /// The pattern or channel that was subscribed.
    pub(super) subscription: &'a [u8],
    /// The channel in which it was published.
    pub(super) channel: &'a [u8],
    pub(super) payload: &'a [u8],
}

/// The result of [`parse`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Parsed<'a> {
    /// A complete reply, and the number of bytes it took.
    Complete { reply: Reply<'a>, consumed: usize },
    /// A part of a reply. Try again when there are at least `bytes_min` bytes in total.
    Incomplete { bytes_min: usize },
    /// A reply with an element that is longer than allowed. `consumed` bytes precede the data of
    /// the element, which is `bytes` bytes and a line end long; `elements` further elements follow
    /// it.
    Oversized {
        subscription: Option<&'a [u8]>,
        consumed: usize,
        bytes: usize,
        elements: usize,
    },
}

/// An error in the replies of a server. The connection cannot be used after it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(super) enum RespError {
    #[error("array has {elements} elements; at most {elements_max} are expected")]
    Elements {
        elements: usize,
        elements_max: usize,
    },
    #[error("line has more than {bytes_max} bytes")]
    Line { bytes_max: usize },
    #[error("line does not end with CR LF")]
    LineEnd,
    #[error("length or number is malformed")]
    Number,
    #[error("unexpected reply on a subscribing connection")]
    Reply,
    #[error("reply has the unknown type byte 0x{byte:02x}")]
    Type { byte: u8 },
}

/// Parses the reply at the beginning of `input`, whose elements may have up to `bytes_max` bytes.
pub(super) fn parse(input: &[u8], bytes_max: usize) -> Result<Parsed<'_>, RespError> {
    let mut cursor = Cursor { input, at: 0 };
    match cursor.reply(bytes_max) {
        Ok(reply) => Ok(Parsed::Complete {
            reply,
            consumed: cursor.at,
        }),
        Err(ParseStop::Error(error)) => Err(error),
        Err(ParseStop::Incomplete { bytes_min }) => Ok(Parsed::Incomplete { bytes_min }),
        Err(ParseStop::Oversized(elements, bytes, left)) => Ok(Parsed::Oversized {
            subscription: elements.get(1).and_then(|element| element.bytes()),
            consumed: cursor.at,
            bytes,
            elements: left,
        }),
    }
}

/// Parses an element that is to be skipped. Returns the number of bytes to skip, for its line and
/// its data together.
///
/// Returns `Ok(None)` if its line is not complete yet.
pub(super) fn skip_element(input: &[u8]) -> Result<Option<usize>, RespError> {
    let mut cursor = Cursor { input, at: 0 };
    let skipped = match cursor.byte() {
        Ok(b'$') => cursor.length().map(|length| match length {
            Some(bytes) => cursor.at.saturating_add(bytes).saturating_add(2),
            None => cursor.at,
        }),
        Ok(b':' | b'+' | b'_') => cursor.line().map(|_| cursor.at),
        Ok(byte) => return Err(RespError::Type { byte }),
        Err(stop) => Err(stop),
    };
    match skipped {
        Ok(bytes) => Ok(Some(bytes)),
        Err(ParseStop::Error(error)) => Err(error),
        Err(ParseStop::Incomplete { .. } | ParseStop::Oversized(..)) => Ok(None),
    }
}

#[derive(Clone, Copy, Debug)]
enum Element<'a> {
    Bytes(&'a [u8]),
    Null,
    Number,
}

impl<'a> Element<'a> {
    fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Null | Self::Number => None,
        }
    }
}

/// The reason why no reply was parsed.
enum ParseStop<'a> {
    Error(RespError),
    Incomplete { bytes_min: usize },
    Oversized(Elements<'a>, usize, usize),
}

#[derive(Clone, Copy)]
struct Elements<'a> {
    all: [Element<'a>; ELEMENTS_MAX],
    count: usize,
}

impl<'a> Elements<'a> {
    fn get(&self, index: usize) -> Option<Element<'a>> {
        self.all[..self.count].get(index).copied()
    }

    fn bytes(&self, index: usize) -> Result<&'a [u8], ParseStop<'a>> {
        let bytes = self.get(index).and_then(Element::bytes);
        bytes.ok_or(ParseStop::Error(RespError::Reply))
    }
}

struct Cursor<'a> {
    input: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn reply(&mut self, bytes_max: usize) -> Result<Reply<'a>, ParseStop<'a>> {
        match self.byte()? {
            b'*' | b'>' => self.array(bytes_max),
            b'+' => Ok(match self.line()? {
                b"PONG" => Reply::Pong,
                text => Reply::Simple(text),
            }),
            b'-' => self.line().map(Reply::Error),
            byte => Err(ParseStop::Error(RespError::Type { byte })),
        }
    }

    fn array(&mut self, bytes_max: usize) -> Result<Reply<'a>, ParseStop<'a>> {
        let count = self.length()?.unwrap_or(0);
        if count > ELEMENTS_MAX {
            return Err(ParseStop::Error(RespError::Elements {
                elements: count,
                elements_max: ELEMENTS_MAX,
            }));
        }
        let mut elements = Elements {
            all: [Element::Null; ELEMENTS_MAX],
            count: 0,
        };
        while elements.count < count {
            let left = count - elements.count - 1;
            let element = self.element(bytes_max, elements, left)?;
            elements.all[elements.count] = element;
            elements.count += 1;
        }
        interpret(&elements)
    }

    fn element(
        &mut self,
        bytes_max: usize,
        before: Elements<'a>,
        left: usize,
    ) -> Result<Element<'a>, ParseStop<'a>> {
        match self.byte()? {
            b'$' => match self.length()? {
                None => Ok(Element::Null),
                Some(bytes) if bytes > bytes_max => Err(ParseStop::Oversized(before, bytes, left)),
                Some(bytes) => self.data(bytes).map(Element::Bytes),
            },
            b':' => self.line().map(|_| Element::Number),
            b'+' => self.line().map(Element::Bytes),
            b'_' => self.line().map(|_| Element::Null),
            byte => Err(ParseStop::Error(RespError::Type { byte })),
        }
    }

    fn byte(&mut self) -> Result<u8, ParseStop<'a>> {
        let byte = self.input.get(self.at).copied();
        let bytes_min = self.at + 1;
        self.at += 1;
        byte.ok_or(ParseStop::Incomplete { bytes_min })
    }

    /// Parses a length: digits, or `-1` for no value, up to the end of the line.
    fn length(&mut self) -> Result<Option<usize>, ParseStop<'a>> {
        let line = self.line()?;
        if line == b"-1" {
            return Ok(None);
        }
        if line.is_empty() || line.len() > 10 {
            return Err(ParseStop::Error(RespError::Number));
        }
        let mut length = 0;
        for &byte in line {
            if !byte.is_ascii_digit() {
                return Err(ParseStop::Error(RespError::Number));
            }
            length = length * 10 + usize::from(byte - b'0');
        }
        Ok(Some(length))
    }

    fn data(&mut self, bytes: usize) -> Result<&'a [u8], ParseStop<'a>> {
        let end = self.at + bytes;
        let bytes_min = end + 2;
        match self.input.get(self.at..bytes_min) {
            None => Err(ParseStop::Incomplete { bytes_min }),
            Some(data) if data.ends_with(b"\r\n") => {
                self.at = bytes_min;
                Ok(&data[..bytes])
            }
            Some(_) => Err(ParseStop::Error(RespError::LineEnd)),
        }
    }

    fn line(&mut self) -> Result<&'a [u8], ParseStop<'a>> {
        let rest = self.input.get(self.at..).unwrap_or_default();
        let window = &rest[..rest.len().min(LINE_BYTES_MAX + 2)];
        let bytes_max = LINE_BYTES_MAX;
        let bytes_min = self.input.len() + 1;
        match memchr(b'\r', window) {
            None if rest.len() > bytes_max => Err(ParseStop::Error(RespError::Line { bytes_max })),
            None => Err(ParseStop::Incomplete { bytes_min }),
            Some(end) => match rest.get(end + 1) {
                None => Err(ParseStop::Incomplete { bytes_min }),
                Some(b'\n') => {
                    self.at += end + 2;
                    Ok(&rest[..end])
                }
                Some(_) => Err(ParseStop::Error(RespError::LineEnd)),
            },
        }
    }
}

fn interpret<'a>(elements: &Elements<'a>) -> Result<Reply<'a>, ParseStop<'a>> {
    match (elements.bytes(0)?, elements.count) {
        (b"message" | b"smessage", 3) => Ok(Reply::Message(Message {
            subscription: elements.bytes(1)?,
            channel: elements.bytes(1)?,
            payload: elements.bytes(2)?,
        })),
        (b"pmessage", 4) => Ok(Reply::Message(Message {
            subscription: elements.bytes(1)?,
            channel: elements.bytes(2)?,
            payload: elements.bytes(3)?,
        })),
        (b"subscribe" | b"psubscribe" | b"ssubscribe", 3) => {
            Ok(Reply::Subscribed(elements.bytes(1)?))
        }
        (b"unsubscribe" | b"punsubscribe" | b"sunsubscribe", 3) => {
            // The name is missing if nothing was subscribed.
            let name = elements.get(1).and_then(Element::bytes);
            Ok(Reply::Unsubscribed(name.unwrap_or_default()))
        }
        (b"pong", 2) => Ok(Reply::Pong),
        _ => Err(ParseStop::Error(RespError::Reply)),
    }
}

#[cfg(test)]
mod tests;
