//! The `common` and `combined` formats, with or without a virtual host.

mod marked;

use std::net::IpAddr;

use memchr::memchr_iter;

use super::fields::{present, without_port};
use super::known::Layout;
use super::{Reason, Record, RequestLine, number, quoted, timestamp};
use crate::lines::Marks;

/// The length of `[22/Jan/2021:01:47:05 +0000] "`.
const STAMP_LEN: usize = timestamp::LEN + 4;

/// A variant of the formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Combined {
    has_host: bool,
    has_headers: bool,
}

impl Combined {
    pub(super) const COMBINED: Self = Self {
        has_host: false,
        has_headers: true,
    };
    pub(super) const COMMON: Self = Self {
        has_host: false,
        has_headers: false,
    };
    const VHOST_COMBINED: Self = Self {
        has_host: true,
        has_headers: true,
    };
    const VHOST_COMMON: Self = Self {
        has_host: true,
        has_headers: false,
    };

    #[inline]
    fn record<'a>(
        self,
        clock: &mut timestamp::Reader,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        match self.has_host {
            true => parse_with_host(clock, line),
            false => parse(clock, line),
        }
    }
}

impl Layout for Combined {
    const NAMED: &'static [Self] = &[
        Self::COMBINED,
        Self::COMMON,
        Self::VHOST_COMBINED,
        Self::VHOST_COMMON,
    ];

    fn name(&self) -> &str {
        match (self.has_host, self.has_headers) {
            (false, false) => "common",
            (false, true) => "combined",
            (true, false) => "vhost_common",
            (true, true) => "vhost_combined",
        }
    }

    #[inline]
    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        _scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        self.record(clock, line)
    }

    fn wants_marks(&self) -> bool {
        true
    }

    #[inline(always)]
    fn parse_usual<'a>(
        &self,
        clock: &mut timestamp::Reader,
        line: &'a [u8],
        marks: Marks<'_>,
    ) -> Option<Record<'a>> {
        match self.has_host {
            true => marked::parse_with_host(clock, line, marks),
            false => marked::parse(clock, line, marks),
        }
    }

    /// Chooses `common` if no line has headers, because each variant parses the lines of the other.
    fn refined(self, lines: &[&[u8]]) -> Self {
        let mut clock = timestamp::Reader::default();
        let has_headers = |line: &&[u8]| {
            let record = self.record(&mut clock, line);
            let has_any =
                |record: Record<'_>| !(record.referrer.is_empty() && record.agent.is_empty());
            line.ends_with(b"\"") || record.is_ok_and(has_any)
        };
        Self {
            has_headers: lines.iter().any(has_headers),
            ..self
        }
    }
}

/// Parses one line that is not preceded by a virtual host.
#[inline]
pub(super) fn parse<'a>(
    clock: &mut timestamp::Reader,
    line: &'a [u8],
) -> Result<Record<'a>, Reason> {
    let address = address(line)?;
    let stamp = stamp(line, address.len())?;
    let (text, rest) = line[stamp + 1..]
        .split_first_chunk()
        .ok_or(Reason::MissingField)?;
    let time = clock.read(text).ok_or(Reason::BadTimestamp)?;
    let (request, rest) = quoted::split(&rest[3..]).ok_or(Reason::MissingField)?;
    let (status, rest) = status(rest)?;
    let (bytes_sent, rest) = bytes_sent(rest)?;
    let [referrer, agent] = headers(rest)?;
    let (method, path) =
        RequestLine::parse(request).map_or((&b""[..], &b""[..]), |line| (line.method, line.path()));
    Ok(Record {
        address,
        time,
        request,
        method,
        path,
        status,
        bytes_sent,
        referrer,
        agent,
        ..Record::default()
    })
}

/// Parses one line that is preceded by a virtual host, with or without a port.
#[inline]
fn parse_with_host<'a>(
    clock: &mut timestamp::Reader,
    line: &'a [u8],
) -> Result<Record<'a>, Reason> {
    let host = address(line)?;
    let record = parse(clock, &line[host.len() + 1..])?;
    Ok(Record {
        host: without_port(present(host)),
        ..record
    })
}

/// Returns the first field: printable bytes up to a space.
#[inline]
fn address(line: &[u8]) -> Result<&[u8], Reason> {
    let end = first_up_to_space(line).ok_or(Reason::MissingField)?;
    if end == 0 || line[end] != b' ' {
        return Err(Reason::BadAddress);
    }
    Ok(&line[..end])
}

/// Returns the offset of the first space or control byte, examining eight bytes at a time.
#[inline]
pub(super) fn first_up_to_space(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xFF;
    let (words, tail) = text.as_chunks::<8>();
    for (place, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // Bytes below 0x21 borrow into their highest bit. A borrow from a lower byte can only cause
        // hits above the lowest true hit, and only the lowest hit counts.
        let hits = word.wrapping_sub(ONES * 0x21) & !word & (ONES * 0x80);
        if hits != 0 {
            return Some(place * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let at = tail.iter().position(|&byte| byte <= b' ')?;
    Some(words.len() * 8 + at)
}

/// Returns the offset of the bracket that opens the timestamp; `from` is the end of the address.
///
/// A user name comes from the client and may contain spaces and brackets, but no unescaped quote.
/// The first bracket with a quote at the right distance is therefore the server's own.
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
    // In formats that begin with a virtual host, the address comes second. The host is not a
    // client.
    if is_ip_address(ident) {
        return Err(Reason::UnknownFormat);
    }
    // At least the user and the space after it must remain.
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

/// Splits off ` 200`.
#[inline]
fn status(rest: &[u8]) -> Result<(u16, &[u8]), Reason> {
    let Some(([b' ', digits @ ..], rest)) = rest.split_first_chunk::<4>() else {
        return Err(if rest.is_empty() || rest == b" " {
            Reason::MissingField
        } else {
            Reason::BadStatus
        });
    };
    let status = number::three_digits(*digits).ok_or(Reason::BadStatus)?;
    Ok((status, rest))
}

/// Splits off ` 654` or ` -`.
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
    Ok((number::decimal(field).ok_or(Reason::BadBytes)?, rest))
}

/// Reads the referrer and the agent of the `combined` format, if the line continues with a quote.
#[inline]
fn headers(rest: &[u8]) -> Result<[&[u8]; 2], Reason> {
    let Some(rest) = rest.strip_prefix(b" \"") else {
        return Ok([b"", b""]);
    };
    let (referrer, rest) = quoted::split(rest).ok_or(Reason::MissingField)?;
    let rest = rest.strip_prefix(b" \"").ok_or(Reason::MissingField)?;
    let (agent, _) = quoted::split(rest).ok_or(Reason::MissingField)?;
    Ok([present(referrer), present(agent)])
}
