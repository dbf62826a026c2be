//! Values of MessagePack or JSON as JSON, as `socket.io-parser` would write them: what JSON cannot
//! represent becomes what JavaScript makes of it, and bytes become placeholders.

use std::fmt;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use time::{OffsetDateTime, UtcOffset};

use crate::protocol::socketio::may_be_envelope;

/// The type of MessagePack's extension for times.
const TIMESTAMP: i8 = -1;

/// An event as a publication.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct EventJson {
    pub(super) name: String,
    /// The only argument as JSON, or all of them such as `{"event":"created","args":[1,2]}`.
    pub(super) payload: Vec<u8>,
}

impl<'de> Deserialize<'de> for EventJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = EventJson;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array with the name of an event")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<EventJson, A::Error> {
        let name = elements.next_element()?;
        let Name(name) = name.ok_or_else(|| A::Error::custom("event has no name"))?;
        let mut args = Vec::new();
        let count = append_elements(&mut elements, &mut args)?;
        let is_ambiguous = std::str::from_utf8(&args).is_ok_and(may_be_envelope);
        if count == 1 && !is_ambiguous {
            let payload = args;
            return Ok(EventJson { name, payload });
        }
        let mut payload = b"{\"event\":".to_vec();
        append(&name, &mut payload);
        payload.extend_from_slice(b",\"args\":[");
        payload.extend_from_slice(&args);
        payload.extend_from_slice(b"]}");
        Ok(EventJson { name, payload })
    }
}

/// Appends a value as JSON.
struct Json<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.0
            .extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.0.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.0.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        // Numbers that are not finite become `null`, as `JSON.stringify` writes them.
        append(&value, self.0);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        append(&value, self.0);
        Ok(())
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<(), E> {
        append_placeholder(value, self.0);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.0.extend_from_slice(b"null");
        Ok(())
    }

    /// Appends an extension of MessagePack.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let (kind, bytes) = deserializer.deserialize_any(ExtensionVisitor)?;
        match (kind, timestamp(&bytes)) {
            (TIMESTAMP, Some(time)) => append(&time, self.0),
            (TIMESTAMP, None) => self.0.extend_from_slice(b"null"),
            // notepack.io writes `undefined` as one byte of the type 0, and wrote an `ArrayBuffer`
            // as any number of bytes of it.
            (0, _) if *bytes == [0] => self.0.extend_from_slice(b"null"),
            _ => append_placeholder(&bytes, self.0),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        self.0.push(b'[');
        append_elements(&mut elements, self.0)?;
        self.0.push(b']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.0.push(b'{');
        let start = self.0.len();
        loop {
            let end = self.0.len();
            if end > start {
                self.0.push(b',');
            }
            if members.next_key_seed(Key(self.0))?.is_none() {
                self.0.truncate(end);
                break;
            }
            self.0.push(b':');
            members.next_value_seed(Json(self.0))?;
        }
        self.0.push(b'}');
        Ok(())
    }
}

/// Appends a text or a number as a string of JSON: the name of an event or of a member.
struct Key<'a>(&'a mut Vec<u8>);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, which is a string or a number")
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        append(&value.to_string(), self.0);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        append(&value.to_string(), self.0);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        append(&value.to_string(), self.0);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        append(&value, self.0);
        Ok(())
    }
}

/// Reads an extension of MessagePack: its type and its bytes.
struct ExtensionVisitor;

impl<'de> Visitor<'de> for ExtensionVisitor {
    type Value = (i8, Box<[u8]>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an extension")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let missing = || A::Error::custom("extension is incomplete");
        let kind = elements.next_element()?.ok_or_else(missing)?;
        let bytes = elements.next_element_seed(BytesSeed)?;
        Ok((kind, bytes.ok_or_else(missing)?))
    }
}

struct BytesSeed;

impl<'de> DeserializeSeed<'de> for BytesSeed {
    type Value = Box<[u8]>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Box<[u8]>, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl Visitor<'_> for BytesSeed {
    type Value = Box<[u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, value: &[u8]) -> Result<Box<[u8]>, E> {
        Ok(value.into())
    }
}

/// A room or an ID: a string, or a number, which JavaScript programs use as one.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Name(pub(super) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut json = Vec::new();
        Key(&mut json).deserialize(deserializer)?;
        serde_json::from_slice(&json)
            .map(Self)
            .map_err(D::Error::custom)
    }
}

/// True if a value is there, whatever it is, unless it is `null`.
#[derive(Debug, Default)]
pub(super) struct IsThere(pub(super) bool);

impl<'de> Deserialize<'de> for IsThere {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Option::<IgnoredAny>::deserialize(deserializer)?;
        Ok(Self(value.is_some()))
    }
}

/// Appends the elements of an array, and returns their number.
fn append_elements<'de, A: SeqAccess<'de>>(
    elements: &mut A,
    json: &mut Vec<u8>,
) -> Result<usize, A::Error> {
    let mut count = 0;
    loop {
        let end = json.len();
        if count > 0 {
            json.push(b',');
        }
        if elements.next_element_seed(Json(json))?.is_none() {
            json.truncate(end);
            return Ok(count);
        }
        count += 1;
    }
}

fn append_placeholder(bytes: &[u8], json: &mut Vec<u8>) {
    json.extend_from_slice(b"{\"_placeholder\":true,\"base64\":\"");
    json.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    json.extend_from_slice(b"\"}");
}

fn append(value: &(impl serde::Serialize + ?Sized), json: &mut Vec<u8>) {
    serde_json::to_writer(json, value).expect("serializing text or a number to a Vec cannot fail");
}

/// Returns a time as `Date.prototype.toJSON` writes it; `None` if it is out of range.
fn timestamp(bytes: &[u8]) -> Option<String> {
    let (seconds, nanoseconds) = match bytes.len() {
        4 => (i64::from(u32::from_be_bytes(bytes.try_into().ok()?)), 0),
        8 => {
            let both = u64::from_be_bytes(bytes.try_into().ok()?);
            ((both & 0x3_ffff_ffff).cast_signed(), both >> 34)
        }
        12 => {
            let (nanoseconds, seconds) = bytes.split_at(4);
            let nanoseconds = u32::from_be_bytes(nanoseconds.try_into().ok()?);
            let seconds = i64::from_be_bytes(seconds.try_into().ok()?);
            (seconds, u64::from(nanoseconds))
        }
        _ => return None,
    };
    let time = OffsetDateTime::from_unix_timestamp(seconds).ok()?;
    let time = time.to_offset(UtcOffset::UTC);
    let (year, month, day) = time.to_calendar_date();
    let (hour, minute, second) = time.to_hms();
    let month = u8::from(month);
    let millisecond = nanoseconds / 1_000_000;
    Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z"
    ))
}
