//! HAProxy's HTTP log (`option httplog` and `option httpslog`, configuration manual §8.2.3 and
//! §8.2.5), with or without the prefix of a syslog server.
//!
//! ```text
//! haproxy[9]: 192.0.2.7:33317 [06/Feb/2009:12:14:14.655] in app/s1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {h} {} "GET / HTTP/1.1"
//! ```

use memchr::{memchr, memchr_iter, memrchr};

use super::fields::{Fields, Slot, Text, Unit};
use super::known::Layout;
use super::{Reason, Record, timestamp};

/// The format `haproxy`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Haproxy;

impl Layout for Haproxy {
    const NAMED: &'static [Self] = &[Self];

    fn name(&self) -> &str {
        "haproxy"
    }

    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        let (client, time, rest) = split_at_time(clock, line).ok_or(Reason::BadTimestamp)?;
        let mut fields = Fields::default();
        fields.time = Some(time);
        set(&mut fields, Slot::Address, client)?;

        let mut columns = rest.split(|&byte| byte == b' ');
        let mut column = || columns.next().ok_or(Reason::MissingField);
        let (_frontend, backend) = (column()?, column()?);
        // Connections without HTTP have fewer timers (`option tcplog`).
        let timers = column()?;
        if !backend.contains(&b'/') || memchr_iter(b'/', timers).count() != 4 {
            return Err(Reason::UnknownFormat);
        }
        let total = memrchr(b'/', timers).map_or(timers, |slash| &timers[slash + 1..]);
        set(&mut fields, Slot::Duration(Unit::Milliseconds), total)?;
        set(&mut fields, Slot::Status, column()?)?;
        set(&mut fields, Slot::Bytes, column()?)?;

        // Cookies, the state, counters and captured headers follow. HAProxy escapes quotes in all
        // of them, and in the request, whose end is missing if syslog has truncated the line.
        let quote = memchr(b'"', rest).ok_or(Reason::MissingField)?;
        let request = &rest[quote + 1..];
        let end = memchr(b'"', request).unwrap_or(request.len());
        set(&mut fields, Slot::Request, &request[..end])?;
        fields.record(scratch)
    }
}

/// Returns the value of a number, or `None` if there is none because the request was aborted. A
/// plus sign says that the line was written before the end of the response (`option logasap`).
pub(super) fn value(text: &[u8]) -> Option<&[u8]> {
    let number = text.strip_prefix(b"+").unwrap_or(text);
    (number != b"-1").then_some(number)
}

fn set<'a>(fields: &mut Fields<'a>, slot: Slot, bytes: &'a [u8]) -> Result<(), Reason> {
    let is_escaped = false;
    match value(bytes) {
        Some(bytes) => fields.set(slot, Text { bytes, is_escaped }),
        None => Ok(()),
    }
}

/// Splits a line into the client's address, the time, and the columns that follow. A client cannot
/// influence what precedes the time.
fn split_at_time<'a>(
    clock: &mut timestamp::Reader,
    line: &'a [u8],
) -> Option<(&'a [u8], i64, &'a [u8])> {
    memchr_iter(b'[', line).find_map(|open| {
        let before = line[..open].strip_suffix(b" ")?;
        let (time, rest) = clock.read_local(&line[open + 1..])?;
        let rest = rest.strip_prefix(b"] ")?;
        let client = memrchr(b' ', before).map_or(before, |space| &before[space + 1..]);
        // IPv6 addresses have no brackets.
        let port = memrchr(b':', client)?;
        Some((&client[..port], time, rest))
    })
}
