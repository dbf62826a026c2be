//! Formats that consist of fields with fixed text in between, compiled from a configuration of
//! nginx, Apache httpd or HAProxy.

mod apache;
mod compile;
mod haproxy;
mod nginx;
mod part;
mod source;
mod strftime;

use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr};

use super::fields::{Fields, Slot, Text};
use super::known::Layout;
use super::moment::{self, CivilTime};
use super::{FormatError, Reason, Record, quoted, timestamp};
use part::{TemplatePart, TimeText};
use source::{Dialect, Escape};

/// A compiled format.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Template(Arc<Compiled>);

#[derive(Debug, Eq, PartialEq)]
struct Compiled {
    /// Its name in the configuration, or `custom`.
    name: String,
    /// The text at the start of each line.
    prefix: Box<[u8]>,
    fields: Box<[Field]>,
    /// True if values contain JSON escapes.
    is_json: bool,
    is_haproxy: bool,
}

#[derive(Debug, Eq, PartialEq)]
struct Field {
    slot: Option<Slot>,
    end: FieldEnd,
    /// The text that follows the field.
    after: Box<[u8]>,
}

/// How to find the end of a field.
#[derive(Debug, Eq, PartialEq)]
enum FieldEnd {
    /// The field ends where the text that follows it begins.
    After,
    /// Like `After`, but a time must follow that text, so that a client cannot forge it.
    BeforeTime,
    /// The field ends at a closing quote that is not escaped.
    Quote,
    /// The field ends before the slash with which the next one begins.
    Slash,
    /// The field is a list, which may contain spaces after commas and around colons.
    List,
    /// The field is an address, which may contain colons: it ends at the last colon of the word.
    LastColon,
    /// The field is a time, and its own syntax determines where it ends.
    Time(TimeText),
}

impl Template {
    /// Compiles the text of a configuration, with or without the directive's name, quotes and
    /// semicolon.
    ///
    /// # Errors
    ///
    /// Returns an error if the text is not a format, or if the format has no time, contains
    /// something unknown, or is ambiguous.
    pub(super) fn compile(text: &str) -> Result<Self, FormatError> {
        let source = source::read(text)?;
        let mut parts = match source.dialect {
            Dialect::Apache => apache::parts(&source.chars)?,
            Dialect::Haproxy => haproxy::parts(&source.chars)?,
            Dialect::Nginx => nginx::parts(&source.chars)?,
        };
        compile::join_queries(&mut parts);
        compile::check(&parts)?;
        let prefix = match &parts[0] {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Variable { .. } => String::new(),
        };
        let is_json = source.escape == Escape::Json
            || source.escape == Escape::Default && prefix.trim_start().starts_with('{');
        Ok(Self(Arc::new(Compiled {
            name: source.name.unwrap_or_else(|| "custom".to_owned()),
            fields: compile::fields(&parts, source.escape),
            prefix: prefix.into_bytes().into(),
            is_json,
            is_haproxy: source.dialect == Dialect::Haproxy,
        })))
    }
}

impl Layout for Template {
    /// The text of a configuration is not a name, and it cannot be detected.
    const NAMED: &'static [Self] = &[];

    fn name(&self) -> &str {
        &self.0.name
    }

    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        let mut values = Fields::default();
        let mut civil = None;
        let template = &*self.0;
        let mut rest = line
            .strip_prefix(&*template.prefix)
            .ok_or(Reason::UnknownFormat)?;
        let mut fields = &*template.fields;
        while let [field, next @ ..] = fields {
            rest = match &field.end {
                FieldEnd::Time(text) => {
                    let (time, rest) = read_time(text, clock, &mut civil, rest)?;
                    values.time = time.or(values.time);
                    after(rest, &field.after)?
                }
                end => {
                    let (value, rest) = split(end, rest, field, next)?;
                    let value = match template.is_haproxy {
                        true => super::haproxy::value(value),
                        false => Some(value),
                    };
                    if let (Some(slot), Some(value)) = (field.slot, value) {
                        let is_escaped = template.is_json && memchr(b'\\', value).is_some();
                        values.set(
                            slot,
                            Text {
                                bytes: value,
                                is_escaped,
                            },
                        )?;
                    }
                    rest
                }
            };
            fields = next;
        }
        if let (None, Some(civil)) = (values.time, civil) {
            values.time = civil.unix_time();
        }
        values.record(scratch)
    }

    fn memory_bytes(&self) -> usize {
        /// A field and its surroundings. Each takes at least one character of the text.
        const FIELD_BYTES_MAX: usize = 96;
        source::BYTES_MAX * FIELD_BYTES_MAX
    }
}

/// Removes the text that must follow.
#[inline]
fn after<'a>(rest: &'a [u8], after: &[u8]) -> Result<&'a [u8], Reason> {
    rest.strip_prefix(after).ok_or_else(|| missing(rest))
}

/// Returns the reason for a line that does not continue as the format requires.
#[cold]
fn missing(rest: &[u8]) -> Reason {
    if rest.is_empty() {
        Reason::MissingField
    } else {
        Reason::UnknownFormat
    }
}

/// Splits off a field and the text that follows it.
#[inline]
fn split<'a>(
    end: &FieldEnd,
    rest: &'a [u8],
    field: &Field,
    next: &[Field],
) -> Result<(&'a [u8], &'a [u8]), Reason> {
    let text = &*field.after;
    if text.is_empty() && next.is_empty() {
        return Ok((rest, b""));
    }
    let at = match end {
        FieldEnd::Quote => {
            let (value, rest) = quoted::split(rest).ok_or(Reason::MissingField)?;
            return Ok((value, after(rest, &text[1..])?));
        }
        FieldEnd::Slash => memchr(b'/', rest),
        FieldEnd::BeforeTime => before_time(rest, text, next),
        FieldEnd::List => end_of_list(rest, text),
        FieldEnd::LastColon => last_colon(rest, text).or_else(|| find(rest, text)),
        FieldEnd::After | FieldEnd::Time(_) => find(rest, text),
    };
    let at = at.ok_or(Reason::MissingField)?;
    Ok((&rest[..at], &rest[at + text.len()..]))
}

/// Returns the first offset of `text`, which must not be empty.
#[inline]
fn find(rest: &[u8], text: &[u8]) -> Option<usize> {
    let (&first, others) = text.split_first()?;
    memchr_iter(first, rest).find(|at| rest[at + 1..].starts_with(others))
}

/// Returns the first offset of `text` that is followed by a time and the time's own following text.
fn before_time(rest: &[u8], text: &[u8], next: &[Field]) -> Option<usize> {
    let [
        Field {
            end: FieldEnd::Time(time),
            after,
            ..
        },
        ..,
    ] = next
    else {
        return find(rest, text);
    };
    let (&first, others) = text.split_first()?;
    let mut candidates = memchr_iter(first, rest).filter(|at| rest[at + 1..].starts_with(others));
    let mut clock = timestamp::Reader::default();
    let nothing_else = find(rest, text);
    candidates
        .find(|at| {
            let behind = &rest[at + text.len()..];
            read_time(time, &mut clock, &mut None, behind)
                .is_ok_and(|(_, rest)| rest.starts_with(after))
        })
        .or(nothing_else)
}

/// Returns the first offset of `text`, which begins with a space, that is not between two values of
/// a list.
fn end_of_list(rest: &[u8], text: &[u8]) -> Option<usize> {
    let goes_on = |at: &usize| {
        let (before, behind) = rest.split_at(*at);
        before.ends_with(b",") || before.ends_with(b" :") || behind.starts_with(b" :")
    };
    let mut spaces = memchr_iter(b' ', rest).filter(|at| rest[*at..].starts_with(text));
    spaces.find(|at| !goes_on(at))
}

/// Returns the offset of the last colon in the first word, if `text` begins there.
fn last_colon(rest: &[u8], text: &[u8]) -> Option<usize> {
    let is_end = |byte: &u8| matches!(byte, 0..=b' ' | b'"' | b',');
    let end = rest.iter().position(is_end).unwrap_or(rest.len());
    let colon = memrchr(b':', &rest[..end])?;
    rest[colon..].starts_with(text).then_some(colon)
}

type Time<'a> = (Option<i64>, &'a [u8]);

/// Reads a time from the start of `rest`, or a part of one into `civil`.
#[inline]
fn read_time<'a>(
    text: &TimeText,
    clock: &mut timestamp::Reader,
    civil: &mut Option<CivilTime>,
    rest: &'a [u8],
) -> Result<Time<'a>, Reason> {
    let read = match text {
        TimeText::Common => {
            let (stamp, rest) = rest.split_first_chunk().ok_or(Reason::BadTimestamp)?;
            clock.read(stamp).map(|time| (time, rest))
        }
        TimeText::CommonLocal => clock.read_local(rest),
        TimeText::Epoch(shift) => moment::epoch(rest, *shift),
        TimeText::Iso => moment::iso8601(rest),
        TimeText::Pattern(items) => {
            let civil = civil.get_or_insert_default();
            return strftime::read(items, rest, civil).ok_or(Reason::BadTimestamp);
        }
    };
    let (time, rest) = read.ok_or(Reason::BadTimestamp)?;
    Ok((Some(time), rest))
}
