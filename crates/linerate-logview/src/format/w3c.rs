//! The extended log file format of the W3C (<https://www.w3.org/TR/WD-logfile.html>), which IIS and
//! CloudFront write: a line `#Fields:` names the columns.

use std::sync::Arc;

use super::fields::{Fields, Slot, Text, Unit};
use super::known::Layout;
use super::{Reason, Record, moment, timestamp};

/// The most columns that are read.
const COLUMNS_MAX: usize = 128;

/// The columns of a log, as the first `#Fields:` of its beginning names them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct W3c(Option<Arc<[Column]>>);

/// The meaning of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    Date,
    Field(Slot),
    Skipped,
    /// The time of the day.
    Time,
}

/// The columns of IIS, if it was not told others, for logs that do not begin with their names.
const IIS: [Column; 15] = [
    Column::Date,
    Column::Time,
    Column::Skipped,
    Column::Field(Slot::Method),
    Column::Field(Slot::Target),
    Column::Skipped,
    Column::Skipped,
    Column::Skipped,
    Column::Field(Slot::Address),
    Column::Field(Slot::Agent),
    Column::Field(Slot::Referrer),
    Column::Field(Slot::Status),
    Column::Skipped,
    Column::Skipped,
    Column::Field(Slot::Duration(Unit::Milliseconds)),
];

impl W3c {
    fn columns(&self) -> &[Column] {
        self.0.as_deref().unwrap_or(&IIS)
    }
}

impl Layout for W3c {
    const NAMED: &'static [Self] = &[Self(None)];

    fn name(&self) -> &str {
        "w3c"
    }

    fn parse<'a>(
        &self,
        _clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        if line.starts_with(b"#") {
            return Err(Reason::UnknownFormat);
        }
        let separator = if line.contains(&b'\t') { b'\t' } else { b' ' };
        let mut fields = Fields::default();
        let (mut date, mut time) = (&b""[..], &b""[..]);
        let (mut agent, mut referrer) = (&b""[..], &b""[..]);
        let mut texts = line.split(|&byte| byte == separator);
        for column in self.columns() {
            let bytes = texts.next().ok_or(Reason::MissingField)?;
            match column {
                Column::Date => date = bytes,
                Column::Time => time = bytes,
                Column::Field(Slot::Agent) => agent = bytes,
                Column::Field(Slot::Referrer) => referrer = bytes,
                Column::Skipped => {}
                Column::Field(_) if bytes == b"-" => {}
                Column::Field(slot) => {
                    let is_escaped = false;
                    fields.set(*slot, Text { bytes, is_escaped })?;
                }
            }
        }
        if texts.next().is_some() {
            return Err(Reason::UnknownFormat);
        }
        fields.time = Some(moment_of(date, time).ok_or(Reason::BadTimestamp)?);
        if !fields.has_request() {
            return Err(Reason::MissingField);
        }
        scratch.clear();
        decode(agent, separator, scratch);
        let end = scratch.len();
        decode(referrer, separator, scratch);
        let (agent, referrer) = scratch.split_at(end);
        for (slot, bytes) in [(Slot::Agent, agent), (Slot::Referrer, referrer)] {
            let is_escaped = false;
            fields.set(slot, Text { bytes, is_escaped })?;
        }
        fields.plain_record()
    }

    /// Reads the names of the columns.
    fn refined(self, lines: &[&[u8]]) -> Self {
        let names = lines.iter().find_map(|line| line.strip_prefix(b"#Fields:"));
        let Some(names) = names else { return self };
        let names: Vec<&[u8]> = names
            .split(|byte| byte.is_ascii_whitespace())
            .filter(|name| !name.is_empty())
            .take(COLUMNS_MAX)
            .collect();
        // CloudFront measures seconds, IIS milliseconds.
        let unit = match names.contains(&&b"x-edge-location"[..]) {
            true => Unit::Seconds,
            false => Unit::Milliseconds,
        };
        Self(Some(names.iter().map(|name| column(name, unit)).collect()))
    }

    fn memory_bytes(&self) -> usize {
        COLUMNS_MAX * size_of::<Column>()
    }
}

fn column(name: &[u8], unit: Unit) -> Column {
    let lower = name.to_ascii_lowercase();
    Column::Field(match &*lower {
        b"date" => return Column::Date,
        b"time" => return Column::Time,
        b"c-ip" => Slot::Address,
        b"cs(user-agent)" => Slot::Agent,
        b"cs(referer)" | b"cs(referrer)" => Slot::Referrer,
        b"sc-bytes" => Slot::Bytes,
        b"time-taken" => Slot::Duration(unit),
        // CloudFront: the host of the viewer's request, not that of the distribution.
        b"cs-host" | b"x-host-header" => Slot::Host,
        b"cs-method" => Slot::Method,
        b"cs-uri-stem" => Slot::Target,
        b"sc-status" => Slot::Status,
        _ => return Column::Skipped,
    })
}

/// Returns the seconds since 1970-01-01 UTC of `2021-01-22` and `01:47:05`.
fn moment_of(date: &[u8], time: &[u8]) -> Option<i64> {
    let mut text = *b"0000-00-00 00:00:00";
    text.get_mut(..date.len()).filter(|text| text.len() == 10)?;
    text[..10].copy_from_slice(date);
    text[11..].copy_from_slice(time.get(..8)?);
    let (at, rest) = moment::iso8601(&text)?;
    (rest.is_empty() && time[8..].first().is_none_or(|&byte| byte == b'.')).then_some(at)
}

/// Appends text in which spaces were replaced: by plus signs in the columns of IIS, and by `%20` in
/// those of CloudFront.
fn decode(text: &[u8], separator: u8, out: &mut Vec<u8>) {
    if text == b"-" {
        return;
    }
    if separator == b' ' {
        let plain = text
            .iter()
            .map(|&byte| if byte == b'+' { b' ' } else { byte });
        out.extend(plain);
        return;
    }
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let decoded = match rest {
            [b'%', high, low, ..] => hex(*high).zip(hex(*low)),
            _ => None,
        };
        rest = match decoded {
            Some((high, low)) => {
                out.push(high << 4 | low);
                &after[2..]
            }
            None => {
                out.push(*byte);
                after
            }
        };
    }
}

fn hex(digit: u8) -> Option<u8> {
    let digit = char::from(digit).to_digit(16)?;
    u8::try_from(digit).ok()
}
