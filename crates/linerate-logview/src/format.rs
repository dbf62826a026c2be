//! The access-log formats that are understood, and the parser of one line.
//!
//! `common` and `combined` are what Apache httpd and nginx call them; nginx's default is
//! `combined`:
//!
//! ```text
//! address ident user [22/Jan/2021:01:47:05 +0000] "request" status bytes "referer" "agent"
//! ```
//!
//! `common` ends after the bytes. What a server administrator appended after either is ignored.

mod quoted;
mod request;
mod timestamp;

use std::fmt;
use std::net::IpAddr;

use memchr::memchr_iter;

pub use request::RequestLine;

/// One line of an access log, borrowed from it, as the server wrote it (escapes included).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The client: an IPv4 or IPv6 address, or a host name where the server looks names up.
    pub address: &'a [u8],
    /// When the request was logged, in seconds since 1970-01-01 UTC.
    pub time: i64,
    /// The request line, which may be empty, cut short or binary: see [`RequestLine::parse`].
    pub request: &'a [u8],
    /// The status code, 0 to 999.
    pub status: u16,
    /// The bytes of the response body; 0 where the log says `-`.
    pub bytes_sent: u64,
    /// The `Referer` header and the `User-Agent` header; `None` in the `common` format.
    pub headers: Option<[&'a [u8]; 2]>,
}

/// Why a line is no [`Record`].
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Reason {
    /// The line does not begin with an address or host name.
    BadAddress,
    /// The bytes are neither a number below 2^64 nor `-`.
    BadBytes,
    /// The status is not three digits.
    BadStatus,
    /// There is no `[22/Jan/2021:01:47:05 +0000]`, or it names no moment since 1970.
    BadTimestamp,
    /// The line ends before the format does.
    MissingField,
    /// The line is longer than `line_bytes_max`.
    TooLong,
    /// The fields are in another order than that of the known formats.
    UnknownFormat,
}

impl Reason {
    /// Returns the name under which the reason is reported: words for people, such as `bad timestamp`.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadAddress => "bad address",
            Self::BadBytes => "bad bytes",
            Self::BadStatus => "bad status",
            Self::BadTimestamp => "bad timestamp",
            Self::MissingField => "missing field",
            Self::TooLong => "too long",
            Self::UnknownFormat => "unknown format",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadAddress => "the line does not begin with an address",
            Self::BadBytes => "the number of bytes is no number",
            Self::BadStatus => "the status is not three digits",
            Self::BadTimestamp => "there is no valid timestamp",
            Self::MissingField => "the line ends before its last field",
            Self::TooLong => "the line is too long",
            Self::UnknownFormat => "the fields are in an unknown order",
        })
    }
}

/// Parses lines of the `common` and `combined` formats.
///
/// It remembers the last timestamp, since neighbouring lines tend to share theirs.
///
/// ```
/// use linerate_logview::format::{Parser, Reason};
///
/// let mut parser = Parser::new();
/// let line = br#"2001:db8::7 - - [22/Jan/2021:01:47:05 +0100] "GET / HTTP/1.1" 200 -"#;
/// let record = parser.parse(line)?;
/// assert_eq!((record.address, record.status), (&b"2001:db8::7"[..], 200));
/// assert_eq!(record.time, 1_611_276_425);
/// assert_eq!(parser.parse(b"no log"), Err(Reason::BadTimestamp));
/// # Ok::<(), Reason>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Parser {
    clock: timestamp::Reader,
}

/// The length of `[22/Jan/2021:01:47:05 +0000] "`.
const STAMP_LEN: usize = timestamp::LEN + 4;

impl Parser {
    /// Creates a parser.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses one line, given without its line end.
    ///
    /// # Errors
    ///
    /// The reason why the line is in neither format.
    #[inline]
    pub fn parse<'a>(&mut self, line: &'a [u8]) -> Result<Record<'a>, Reason> {
        let address = address(line)?;
        let stamp = stamp(line, address.len())?;
        let (text, rest) = line[stamp + 1..]
            .split_first_chunk()
            .ok_or(Reason::MissingField)?;
        let time = self.clock.read(text).ok_or(Reason::BadTimestamp)?;
        let (request, rest) = quoted::split(&rest[3..]).ok_or(Reason::MissingField)?;
        let (status, rest) = status(rest)?;
        let (bytes_sent, rest) = bytes_sent(rest)?;
        Ok(Record {
            address,
            time,
            request,
            status,
            bytes_sent,
            headers: headers(rest)?,
        })
    }
}

/// Returns the first field: bytes above the space, up to a space.
#[inline]
fn address(line: &[u8]) -> Result<&[u8], Reason> {
    let end = first_up_to_space(line).ok_or(Reason::MissingField)?;
    if end == 0 || line[end] != b' ' {
        return Err(Reason::BadAddress);
    }
    Ok(&line[..end])
}

/// Returns the offset of the first space or control byte, eight bytes at a time.
#[inline]
fn first_up_to_space(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    let (words, tail) = text.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Bytes below 0x21 borrow into their highest bit. What a borrow from a lower byte adds
        // stands above the lowest hit, which is the one that counts.
        let hits = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if hits != 0 {
            return Some(place * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|&byte| byte <= b' ')?;
    Some(words.len() * 8 + at)
}

/// Returns the offset of the bracket that opens the timestamp, `from` the end of the address.
///
/// A user name comes from the client and may hold spaces and brackets. It can't hold a quote that
/// isn't escaped, so the first bracket with a quote at the right distance is the server's own.
#[inline]
fn stamp(line: &[u8], from: usize) -> Result<usize, Reason> {
    const NOBODY: &[u8] = b" - - ";
    let nobody = from + NOBODY.len();
    if line[from..].starts_with(NOBODY) && opens_stamp(line, nobody) {
        return Ok(nobody);
    }
    stamp_after_user(line, from)
}

#[cold]
fn stamp_after_user(line: &[u8], from: usize) -> Result<usize, Reason> {
    let stamp = memchr_iter(b'[', &line[from..])
        .map(|at| from + at)
        .find(|&at| opens_stamp(line, at))
        .ok_or(Reason::BadTimestamp)?;
    let mut fields = line[from..stamp].split(|&byte| byte == b' ').skip(1);
    let ident = fields.next().unwrap_or_default();
    // Formats with a virtual host in front have the address second. Their host is no client.
    if is_ip_address(ident) {
        return Err(Reason::UnknownFormat);
    }
    // A user and the space after it remain.
    if fields.count() < 2 {
        return Err(Reason::MissingField);
    }
    Ok(stamp)
}

#[inline]
fn opens_stamp(line: &[u8], at: usize) -> bool {
    let Some(stamp) = line.get(at..at + STAMP_LEN) else {
        return false;
    };
    stamp[0] == b'[' && line[at - 1] == b' ' && stamp[STAMP_LEN - 3..] == *b"] \""
}

fn is_ip_address(field: &[u8]) -> bool {
    std::str::from_utf8(field).is_ok_and(|text| text.parse::<IpAddr>().is_ok())
}

/// Splits ` 200` off.
#[inline]
fn status(rest: &[u8]) -> Result<(u16, &[u8]), Reason> {
    let Some((&[b' ', digits @ ..], rest)) = rest.split_first_chunk::<4>() else {
        return Err(if rest.is_empty() || rest == b" " {
            Reason::MissingField
        } else {
            Reason::BadStatus
        });
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(Reason::BadStatus);
    }
    let [a, b, c] = digits.map(|digit| u16::from(digit - b'0'));
    Ok((a * 100 + b * 10 + c, rest))
}

/// Splits ` 654` or ` -` off.
#[inline]
fn bytes_sent(rest: &[u8]) -> Result<(u64, &[u8]), Reason> {
    let rest = match rest {
        [] | [b' '] => return Err(Reason::MissingField),
        [b' ', rest @ ..] => rest,
        _ => return Err(Reason::BadStatus),
    };
    let end = rest.iter().position(|&byte| byte == b' ');
    let (field, rest) = rest.split_at(end.unwrap_or(rest.len()));
    if field == b"-" {
        return Ok((0, rest));
    }
    Ok((decimal(field).ok_or(Reason::BadBytes)?, rest))
}

#[inline]
fn decimal(field: &[u8]) -> Option<u64> {
    if field.is_empty() {
        return None;
    }
    field.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads the referer and the agent of the `combined` format, if the line goes on with a quote.
#[inline]
fn headers(rest: &[u8]) -> Result<Option<[&[u8]; 2]>, Reason> {
    let Some(rest) = rest.strip_prefix(b" \"") else {
        return Ok(None);
    };
    let (referer, rest) = quoted::split(rest).ok_or(Reason::MissingField)?;
    let rest = rest.strip_prefix(b" \"").ok_or(Reason::MissingField)?;
    let (agent, _) = quoted::split(rest).ok_or(Reason::MissingField)?;
    Ok(Some([referer, agent]))
}

#[cfg(test)]
mod tests {
    mod odd_lines;
    mod reasons;
}
