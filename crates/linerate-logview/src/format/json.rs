//! JSON lines: nginx with `escape=json`, Caddy, Traefik, and other servers that use the same names.

mod keys;
mod scanner;

use memchr::memchr;

use super::fields::{Fields, Slot, Text};
use super::known::Layout;
use super::{Reason, Record, moment, timestamp};
use keys::Key;
use scanner::{Scanner, Value};

/// How deep objects are searched: `request` and its `headers`.
const DEPTH_MAX: usize = 3;

/// The format `json`: one object per line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Json;

impl Layout for Json {
    const NAMED: &'static [Self] = &[Self];

    fn name(&self) -> &str {
        "json"
    }

    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason> {
        let mut members = Members {
            clock,
            fields: Fields::default(),
            ranks: [u8::MAX; Slot::COUNT],
        };
        let mut scanner = Scanner::new(line);
        if scanner.next_value() != Some(Value::Object) {
            return Err(Reason::BadJson);
        }
        members.read_object(&mut scanner, DEPTH_MAX)?;
        if !scanner.is_at_end() {
            return Err(Reason::BadJson);
        }
        let fields = members.fields;
        if fields.time.is_none() || !fields.has_request() {
            return Err(Reason::MissingField);
        }
        fields.record(scratch)
    }
}

struct Members<'c, 'a> {
    clock: &'c mut timestamp::Reader,
    fields: Fields<'a>,
    /// The rank of the member from which each slot was filled.
    ranks: [u8; Slot::COUNT],
}

impl<'a> Members<'_, 'a> {
    /// Reads the members of an object whose opening brace was read.
    fn read_object(&mut self, scanner: &mut Scanner<'a>, depth: usize) -> Result<(), Reason> {
        while let Some(key) = scanner.next_key().ok_or(Reason::BadJson)? {
            let value = scanner.next_value().ok_or(Reason::BadJson)?;
            let key = keys::key(key);
            match (key, value) {
                (Key::Container | Key::Field(Slot::Request, _), Value::Object) if depth > 1 => {
                    self.read_object(scanner, depth - 1)?;
                }
                (Key::Field(slot, rank), Value::Array) => {
                    let first = scanner.first_of_array().ok_or(Reason::BadJson)?;
                    if let Some(text) = first {
                        self.set(slot, rank, text)?;
                    }
                }
                (_, Value::Object | Value::Array) => {
                    scanner.skip_nested().ok_or(Reason::BadJson)?
                }
                (Key::Field(slot, rank), Value::Text(text)) => self.set(slot, rank, text)?,
                (_, Value::Text(_)) => {}
            }
        }
        Ok(())
    }

    fn set(&mut self, slot: Slot, rank: u8, text: Text<'a>) -> Result<(), Reason> {
        let best = &mut self.ranks[slot.place()];
        let is_absent = matches!(text.bytes, b"" | b"-" | b"null");
        if is_absent || rank >= *best {
            return Ok(());
        }
        *best = rank;
        if slot == Slot::Time {
            let time = self.time(text.bytes).ok_or(Reason::BadTimestamp)?;
            self.fields.time = Some(time);
            return Ok(());
        }
        self.fields.set(slot, text)
    }

    fn time(&mut self, text: &[u8]) -> Option<i64> {
        // Some servers write the slashes of a common timestamp as `\/`; rare enough to copy.
        if memchr(b'\\', text).is_some() {
            let mut decoded = Vec::new();
            super::escape::decode_json(text, &mut decoded);
            return self.plain_time(&decoded);
        }
        self.plain_time(text)
    }

    fn plain_time(&mut self, text: &[u8]) -> Option<i64> {
        match text.as_array() {
            Some(stamp) => self.clock.read(stamp).or_else(|| moment::any(text)),
            None => moment::any(text),
        }
    }
}
