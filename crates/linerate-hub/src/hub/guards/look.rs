//! A look at some fields of a payload, which builds nothing of the rest.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::Field;

/// For each field the classes whose guard fits.
type Found<'g> = Vec<Option<&'g [usize]>>;

/// Returns for each of `fields` the classes that `json` fits; nothing if it is no JSON object.
///
/// Of several values of one name the last counts. All of `json` is looked at, so that half an object fits nothing.
pub(super) fn find<'g>(fields: &'g [Field], json: &[u8]) -> Found<'g> {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let found = reader.deserialize_map(Object(fields));
    let found = found.and_then(|found| reader.end().map(|()| found));
    found.unwrap_or_default()
}

/// The payload.
struct Object<'g>(&'g [Field]);

impl<'de, 'g> Visitor<'de> for Object<'g> {
    type Value = Found<'g>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found<'g>, A::Error> {
        let mut found = vec![None; self.0.len()];
        while let Some(at) = map.next_key_seed(Name(self.0))? {
            match at {
                Some(at) => found[at] = map.next_value_seed(Text(&self.0[at]))?,
                None => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// The name of a field: which of those looked for it is.
struct Name<'g>(&'g [Field]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, name: D) -> Result<Option<usize>, D::Error> {
        name.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|field| field.name == name))
    }
}

/// The value of a field that is looked for; only a string fits anything.
struct Text<'g>(&'g Field);

impl<'de, 'g> DeserializeSeed<'de> for Text<'g> {
    type Value = Option<&'g [usize]>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de, 'g> Visitor<'de> for Text<'g> {
    type Value = Option<&'g [usize]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.0.classes.get(value).map(Vec::as_slice))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_map(map).map(|_| None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        IgnoredAny.visit_seq(seq).map(|_| None)
    }
}
