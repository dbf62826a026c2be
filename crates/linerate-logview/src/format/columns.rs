//! Formats whose columns are separated by spaces, some of them in quotes or brackets: the load
//! balancers and the object storage of Amazon, Envoy, and Squid.

use memchr::memchr;

use super::fields::{Fields, Slot, Text, Unit};
use super::known::Layout;
use super::{Reason, Record, moment, quoted, timestamp};
use Column::{Bare, Quoted, ResultCode, Skipped, Time};

/// One of the formats.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Columns {
    name: &'static str,
    columns: &'static [Column],
    /// How many of the columns each line has.
    required: usize,
}

/// The meaning of a column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Column {
    /// A field without quotes.
    Bare(Slot),
    Quoted(Slot),
    /// `TCP_MISS/200`.
    ResultCode,
    Skipped,
    Time(Notation),
}

/// How a column contains the time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Notation {
    /// `[22/Jan/2021:01:47:05 +0000]`.
    BracketedCommon,
    /// `[2021-01-22T01:47:05.123Z]`.
    BracketedIso,
    /// `1611280025.123`.
    Epoch,
    /// `2021-01-22T01:47:05.123Z`.
    Iso,
}

/// A column of a line.
#[derive(Clone, Copy, Debug)]
enum Token<'a> {
    Bare(&'a [u8]),
    Bracketed(&'a [u8]),
    Quoted(&'a [u8]),
}

impl Columns {
    /// Application load balancers of Amazon.
    const ALB: Self = Self {
        name: "alb",
        columns: &[
            Skipped,
            Time(Notation::Iso),
            Skipped,
            Bare(Slot::Address),
            Skipped,
            Skipped,
            Bare(Slot::Duration(Unit::Seconds)),
            Skipped,
            Bare(Slot::Status),
            Skipped,
            Skipped,
            Bare(Slot::Bytes),
            Quoted(Slot::Request),
            Quoted(Slot::Agent),
        ],
        required: 14,
    };

    /// Classic load balancers of Amazon.
    const ELB: Self = Self {
        name: "elb",
        columns: &[
            Time(Notation::Iso),
            Skipped,
            Bare(Slot::Address),
            Skipped,
            Skipped,
            Bare(Slot::Duration(Unit::Seconds)),
            Skipped,
            Bare(Slot::Status),
            Skipped,
            Skipped,
            Bare(Slot::Bytes),
            Quoted(Slot::Request),
            Quoted(Slot::Agent),
        ],
        // Lines of 2014 have no agent.
        required: 12,
    };

    /// The default format of Envoy.
    const ENVOY: Self = Self {
        name: "envoy",
        columns: &[
            Time(Notation::BracketedIso),
            Quoted(Slot::Request),
            Bare(Slot::Status),
            Skipped,
            Skipped,
            Bare(Slot::Bytes),
            Bare(Slot::Duration(Unit::Milliseconds)),
            Skipped,
            Quoted(Slot::Address),
            Quoted(Slot::Agent),
            Skipped,
            Quoted(Slot::Host),
        ],
        required: 12,
    };

    /// Server access logs of Amazon S3.
    const S3: Self = Self {
        name: "s3",
        columns: &[
            Skipped,
            Skipped,
            Time(Notation::BracketedCommon),
            Bare(Slot::Address),
            Skipped,
            Skipped,
            Skipped,
            Skipped,
            Quoted(Slot::Request),
            Bare(Slot::Status),
            Skipped,
            Bare(Slot::Bytes),
            Skipped,
            Bare(Slot::Duration(Unit::Milliseconds)),
            Skipped,
            Quoted(Slot::Referrer),
            Quoted(Slot::Agent),
            Skipped,
            Skipped,
            Skipped,
            Skipped,
            Skipped,
            Bare(Slot::Host),
        ],
        // Columns were added over the years.
        required: 17,
    };

    /// The native format of Squid.
    const SQUID: Self = Self {
        name: "squid",
        columns: &[
            Time(Notation::Epoch),
            Bare(Slot::Duration(Unit::Milliseconds)),
            Bare(Slot::Address),
            ResultCode,
            Bare(Slot::Bytes),
            Bare(Slot::Method),
            Bare(Slot::Target),
            Skipped,
            Skipped,
            Skipped,
        ],
        required: 10,
    };
}

impl Layout for Columns {
    const NAMED: &'static [Self] = &[Self::ALB, Self::ELB, Self::ENVOY, Self::S3, Self::SQUID];

    fn name(&self) -> &str {
        self.name
    }

    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        let mut fields = Fields::default();
        let mut rest = line;
        for (place, column) in self.columns.iter().enumerate() {
            let (token, after) = match next_token(rest) {
                Some(next) => next,
                None if place < self.required => return Err(Reason::MissingField),
                None => break,
            };
            rest = after;
            column.read(token, clock, &mut fields)?;
        }
        if !fields.has_request() {
            return Err(Reason::MissingField);
        }
        fields.record(scratch)
    }
}

impl Column {
    fn read<'a>(
        self,
        token: Token<'a>,
        clock: &mut timestamp::Reader,
        fields: &mut Fields<'a>,
    ) -> Result<(), Reason> {
        let (slot, bytes) = match (self, token) {
            (Skipped, _) => return Ok(()),
            // An absent field has no quotes: S3 writes `-` for requests of its own.
            (Bare(_) | Quoted(_), Token::Bare(b"-")) => return Ok(()),
            (Bare(slot), Token::Bare(bytes)) | (Quoted(slot), Token::Quoted(bytes)) => {
                (slot, bytes)
            }
            (ResultCode, Token::Bare(bytes)) => {
                let slash = memchr(b'/', bytes).ok_or(Reason::BadStatus)?;
                (Slot::Status, &bytes[slash + 1..])
            }
            (Time(notation), token) => {
                let time = notation.read(token, clock).ok_or(Reason::BadTimestamp)?;
                fields.time = Some(time);
                return Ok(());
            }
            (Bare(_) | Quoted(_) | ResultCode, _) => return Err(Reason::UnknownFormat),
        };
        // Load balancers write -1 if the target did not answer.
        if matches!(slot, Slot::Duration(_)) && bytes.starts_with(b"-") {
            return Ok(());
        }
        let is_escaped = false;
        fields.set(slot, Text { bytes, is_escaped })
    }
}

impl Notation {
    fn read(self, token: Token<'_>, clock: &mut timestamp::Reader) -> Option<i64> {
        let read = match (self, token) {
            (Self::BracketedCommon, Token::Bracketed(text)) => return clock.read(text.as_array()?),
            (Self::BracketedIso, Token::Bracketed(text)) | (Self::Iso, Token::Bare(text)) => {
                moment::iso8601(text)
            }
            (Self::Epoch, Token::Bare(text)) => {
                memchr(b'.', text)?;
                moment::epoch(text, 0)
            }
            _ => None,
        };
        let (time, rest) = read?;
        rest.is_empty().then_some(time)
    }
}

/// Splits off the next column and the spaces before it. Returns `None` at the end of the line, and
/// if a quote or bracket is not closed.
fn next_token(rest: &[u8]) -> Option<(Token<'_>, &[u8])> {
    let start = rest.iter().position(|&byte| byte != b' ')?;
    let rest = &rest[start..];
    let (token, rest) = match rest {
        [b'"', inside @ ..] => {
            let (text, rest) = quoted::split(inside)?;
            (Token::Quoted(text), rest)
        }
        [b'[', inside @ ..] => {
            let end = memchr(b']', inside)?;
            (Token::Bracketed(&inside[..end]), &inside[end + 1..])
        }
        _ => {
            let end = memchr(b' ', rest).unwrap_or(rest.len());
            (Token::Bare(&rest[..end]), &rest[end..])
        }
    };
    matches!(rest, [] | [b' ', ..]).then_some((token, rest))
}
