//! The fields of a line, collected in any order, and the record that they form.

use memchr::memchr;

use super::{Reason, Record, RequestLine, escape, number, request};

/// The meaning of a field of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Slot {
    Address,
    Agent,
    Bytes,
    Duration(Unit),
    Host,
    Method,
    Referrer,
    Request,
    Status,
    /// A path, possibly with its query string.
    Target,
    Time,
}

impl Slot {
    /// The number of places.
    pub(super) const COUNT: usize = 11;

    /// Returns a distinct index below [`COUNT`](Self::COUNT).
    pub(super) fn place(self) -> usize {
        match self {
            Self::Address => 0,
            Self::Agent => 1,
            Self::Bytes => 2,
            Self::Duration(_) => 3,
            Self::Host => 4,
            Self::Method => 5,
            Self::Referrer => 6,
            Self::Request => 7,
            Self::Status => 8,
            Self::Target => 9,
            Self::Time => 10,
        }
    }
}

/// The unit of a duration.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Unit {
    Microseconds,
    Milliseconds,
    Nanoseconds,
    Seconds,
}

/// Text as written in the line.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Text<'a> {
    pub(super) bytes: &'a [u8],
    /// True if it contains JSON escapes that must be decoded.
    pub(super) is_escaped: bool,
}

/// The fields of one line.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) time: Option<i64>,
    /// Indexed by [`Slot::place`].
    texts: [Text<'a>; Slot::COUNT],
    status: Option<u16>,
    bytes_sent: u64,
    duration: Option<u64>,
}

impl<'a> Fields<'a> {
    /// Sets a field. The caller must set [`Slot::Time`] itself.
    #[inline]
    pub(super) fn set(&mut self, slot: Slot, text: Text<'a>) -> Result<(), Reason> {
        match slot {
            Slot::Bytes => self.bytes_sent = bytes_sent(text.bytes)?,
            Slot::Duration(unit) => self.duration = duration(text.bytes, unit)?,
            Slot::Status => self.status = Some(status(text.bytes)?),
            _ => self.texts[slot.place()] = text,
        }
        Ok(())
    }

    /// Returns whether the line contains anything about a request.
    pub(super) fn has_request(&self) -> bool {
        let has = |slot: Slot| !self.texts[slot.place()].bytes.is_empty();
        self.status.is_some() || has(Slot::Request) || has(Slot::Target)
    }

    /// Returns the record. Decoded text is stored in `scratch`.
    #[inline]
    pub(super) fn record(self, scratch: &'a mut Vec<u8>) -> Result<Record<'a>, Reason> {
        let texts = if self.texts.iter().any(|text| text.is_escaped) {
            decoded(&self.texts, scratch)
        } else {
            self.texts.map(|text| text.bytes)
        };
        self.record_of(&texts)
    }

    /// Returns the record of fields without escapes.
    pub(super) fn plain_record(self) -> Result<Record<'a>, Reason> {
        let texts = self.texts.map(|text| text.bytes);
        self.record_of(&texts)
    }

    /// Returns the record with these texts.
    #[inline]
    fn record_of(self, texts: &[&'a [u8]; Slot::COUNT]) -> Result<Record<'a>, Reason> {
        let text = |slot: Slot| texts[slot.place()];
        let request_line = text(Slot::Request);
        let (method, target) = match RequestLine::parse(request_line) {
            Some(line) => (line.method, line.target),
            None => (
                request::method(text(Slot::Method)),
                present(text(Slot::Target)),
            ),
        };
        let (authority, target) = absolute(target).unwrap_or((b"", target));
        let host = match present(text(Slot::Host)) {
            b"" => authority,
            host => host,
        };
        Ok(Record {
            time: self.time.ok_or(Reason::BadTimestamp)?,
            address: address(text(Slot::Address)),
            host: without_port(host),
            request: request_line,
            method,
            path: &target[..memchr(b'?', target).unwrap_or(target.len())],
            status: self.status.unwrap_or(0),
            bytes_sent: self.bytes_sent,
            referrer: present(text(Slot::Referrer)),
            agent: present(text(Slot::Agent)),
            duration: self.duration,
        })
    }
}

#[cold]
fn decoded<'a>(
    texts: &[Text<'a>; Slot::COUNT],
    scratch: &'a mut Vec<u8>,
) -> [&'a [u8]; Slot::COUNT] {
    scratch.clear();
    let spans = texts.map(|text| {
        let start = scratch.len();
        if text.is_escaped {
            escape::decode_json(text.bytes, scratch);
        }
        start..scratch.len()
    });
    let scratch: &'a [u8] = scratch;
    std::array::from_fn(|place| {
        if texts[place].is_escaped {
            &scratch[spans[place].clone()]
        } else {
            texts[place].bytes
        }
    })
}

/// Returns a field, with `-` replaced by the empty value.
#[inline]
pub(super) fn present(field: &[u8]) -> &[u8] {
    if field == b"-" { b"" } else { field }
}

/// Splits a URL of HTTP, which is the target of requests to proxies, into the authority and the
/// rest. Returns `None` for other targets.
fn absolute(target: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = target
        .strip_prefix(b"http://")
        .or_else(|| target.strip_prefix(b"https://"))?;
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?'));
    match rest.split_at(end.unwrap_or(rest.len())) {
        (authority, b"") => Some((authority, b"/")),
        split => Some(split),
    }
}

/// Returns the first address of a list, without brackets and port.
fn address(field: &[u8]) -> &[u8] {
    let field = present(field);
    let end = field.iter().position(|byte| matches!(byte, b',' | b' '));
    without_port(&field[..end.unwrap_or(field.len())])
}

/// Removes the port from `name:80`, and port and brackets from `[::1]:80`. Leaves `::1` as it is.
#[inline]
pub(super) fn without_port(name: &[u8]) -> &[u8] {
    if let [b'[', inside @ ..] = name {
        return memchr(b']', inside).map_or(name, |end| &inside[..end]);
    }
    match memchr(b':', name) {
        Some(colon) if memchr(b':', &name[colon + 1..]).is_none() => &name[..colon],
        _ => name,
    }
}

/// Reads up to three digits. In a list, as proxies log it, the last entry counts.
fn status(field: &[u8]) -> Result<u16, Reason> {
    let last = last_of_list(field);
    match last {
        [_] | [_, _] | [_, _, _] => number::decimal(last),
        _ => None,
    }
    .and_then(|status| u16::try_from(status).ok())
    .ok_or(Reason::BadStatus)
}

fn bytes_sent(field: &[u8]) -> Result<u64, Reason> {
    match field {
        b"" | b"-" => Ok(0),
        _ => number::decimal(field).ok_or(Reason::BadBytes),
    }
}

fn duration(field: &[u8], unit: Unit) -> Result<Option<u64>, Reason> {
    let last = last_of_list(field);
    if last.is_empty() || last == b"-" {
        return Ok(None);
    }
    let (number, unit) = with_unit(last).unwrap_or((last, unit));
    let duration = match unit {
        Unit::Seconds => number::scaled(number, 6),
        Unit::Milliseconds => number::scaled(number, 3),
        Unit::Microseconds => number::scaled(number, 0),
        Unit::Nanoseconds => number::scaled(number, 0).map(|nanoseconds| nanoseconds / 1_000),
    };
    duration.map(Some).ok_or(Reason::BadDuration)
}

/// Splits the unit off `1.5ms`.
fn with_unit(field: &[u8]) -> Option<(&[u8], Unit)> {
    let units: [(&[u8], Unit); 5] = [
        (b"ms", Unit::Milliseconds),
        (b"us", Unit::Microseconds),
        ("µs".as_bytes(), Unit::Microseconds),
        (b"ns", Unit::Nanoseconds),
        (b"s", Unit::Seconds),
    ];
    units
        .iter()
        .find_map(|(name, unit)| Some((field.strip_suffix(*name)?, *unit)))
}

/// Returns what follows the last comma, colon or space: nginx lists one value for each upstream
/// server that it contacted.
fn last_of_list(field: &[u8]) -> &[u8] {
    let start = field
        .iter()
        .rposition(|byte| matches!(byte, b',' | b':' | b' '));
    &field[start.map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::{Reason, Unit, absolute, address, duration, status, without_port};

    #[test]
    fn ports_and_later_list_entries_are_removed_from_addresses() {
        for (field, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:4321", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]:4321", "2001:db8::7"),
            ("192.0.2.7, 198.51.100.1", "192.0.2.7"),
            ("-", ""),
            ("", ""),
        ] {
            assert_eq!(address(field.as_bytes()), expected.as_bytes(), "{field}");
        }
        assert_eq!(without_port(b"[::1"), b"[::1");
    }

    #[test]
    fn urls_are_split_into_authority_and_path() {
        for (target, expected) in [
            ("http://a.example:80/b?c", Some(("a.example:80", "/b?c"))),
            ("https://a.example", Some(("a.example", "/"))),
            ("https://a.example?b", Some(("a.example", "?b"))),
            ("http://", Some(("", "/"))),
            ("/http://a", None),
            ("a.example:443", None),
            ("*", None),
            ("", None),
        ] {
            let expected =
                expected.map(|(authority, rest)| (authority.as_bytes(), rest.as_bytes()));
            assert_eq!(absolute(target.as_bytes()), expected, "{target}");
        }
    }

    #[test]
    fn statuses_have_up_to_three_digits_and_the_last_of_a_list_counts() {
        assert_eq!(status(b"200"), Ok(200));
        assert_eq!(status(b"0"), Ok(0));
        assert_eq!(status(b"502, 200"), Ok(200));
        assert_eq!(status(b"502 : 404"), Ok(404));
        for field in [&b""[..], b"-", b"2000", b"2x0", b"+20"] {
            assert_eq!(status(field), Err(Reason::BadStatus));
        }
    }

    #[test]
    fn durations_become_microseconds() {
        assert_eq!(duration(b"0.125", Unit::Seconds), Ok(Some(125_000)));
        assert_eq!(duration(b"17", Unit::Milliseconds), Ok(Some(17_000)));
        assert_eq!(duration(b"17", Unit::Microseconds), Ok(Some(17)));
        assert_eq!(duration(b"17999", Unit::Nanoseconds), Ok(Some(17)));
        assert_eq!(duration(b"1.5ms", Unit::Seconds), Ok(Some(1_500)));
        assert_eq!(duration("12.25µs".as_bytes(), Unit::Seconds), Ok(Some(12)));
        assert_eq!(duration(b"2s", Unit::Nanoseconds), Ok(Some(2_000_000)));
        assert_eq!(duration(b"0.1, 0.250", Unit::Seconds), Ok(Some(250_000)));
        assert_eq!(duration(b"-", Unit::Seconds), Ok(None));
        assert_eq!(duration(b"", Unit::Seconds), Ok(None));
        for field in [&b"x"[..], b"-1", b"s", b"\xFF"] {
            assert_eq!(duration(field, Unit::Seconds), Err(Reason::BadDuration));
        }
    }
}
