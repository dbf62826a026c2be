//! Untyped values from several sources, merged before they are deserialized.

use std::collections::BTreeMap;

use serde::{
    Deserializer,
    de::{
        IntoDeserializer, Visitor,
        value::{MapDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};

/// An untyped value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    List(Vec<Self>),
    Scalar(toml::Value),
    Table(Table),
    /// From the environment or a flag: parsed as whatever type is requested.
    Text(String),
}

/// Values by key.
pub(super) type Table = BTreeMap<String, Value>;

impl Value {
    /// Applies `upper` over this value: tables are merged, everything else is replaced.
    pub(super) fn overlay(&mut self, upper: Self) {
        match (self, upper) {
            (Self::Table(lower), Self::Table(upper)) => overlay(lower, upper),
            (lower, upper) => *lower = upper,
        }
    }

    /// Returns the value at a path such as `server.tls.key` or `namespace[1].name`.
    pub(super) fn at(&self, path: &str) -> Option<&Self> {
        path.split('.').try_fold(self, |value, step| {
            let Self::Table(table) = value else {
                return None;
            };
            match step.split_once('[') {
                None => table.get(step),
                Some((key, index)) => {
                    let Self::List(list) = table.get(key)? else {
                        return None;
                    };
                    list.get(index.trim_end_matches(']').parse::<usize>().ok()?)
                }
            }
        })
    }

    /// Removes the value at a path, and returns whether there was one. Items of lists stay, because
    /// others would take their places.
    pub(super) fn remove(&mut self, path: &str) -> bool {
        let Self::Table(table) = self else {
            return false;
        };
        let Some((step, rest)) = path.split_once('.') else {
            return table.remove(path).is_some();
        };
        let inner = match step.split_once('[') {
            None => table.get_mut(step),
            Some((key, index)) => match (table.get_mut(key), index.trim_end_matches(']').parse()) {
                (Some(Self::List(list)), Ok::<usize, _>(index)) => list.get_mut(index),
                _ => None,
            },
        };
        inner.is_some_and(|inner| inner.remove(rest))
    }
}

/// Applies the values of `upper` over those of `lower`.
pub(super) fn overlay(lower: &mut Table, upper: Table) {
    for (key, value) in upper {
        match lower.get_mut(&key) {
            Some(existing) => existing.overlay(value),
            None => _ = lower.insert(key, value),
        }
    }
}

/// Sets the text at a path such as `server.tls.key`.
pub(super) fn set(table: &mut Table, path: &str, text: String) {
    match path.split_once('.') {
        None => _ = table.insert(path.to_owned(), Value::Text(text)),
        Some((key, rest)) => {
            let inner = table
                .entry(key.to_owned())
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                set(inner, rest, text);
            }
        }
    }
}

impl From<toml::Value> for Value {
    fn from(value: toml::Value) -> Self {
        match value {
            toml::Value::Table(table) => Self::Table(from_toml(table)),
            toml::Value::Array(list) => Self::List(list.into_iter().map(Self::from).collect()),
            scalar => Self::Scalar(scalar),
        }
    }
}

/// Converts a TOML table.
pub(super) fn from_toml(table: toml::Table) -> Table {
    let entries = table.into_iter();
    entries
        .map(|(key, value)| (key, Value::from(value)))
        .collect()
}

impl IntoDeserializer<'_, toml::de::Error> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Parses a text as the requested type. A text that cannot be parsed stays a text, and the visitor
/// rejects it.
macro_rules! parse_text {
    ($($deserialize:ident $visit:ident $type:ty,)*) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match &self {
                Self::Text(text) => match text.trim().parse::<$type>() {
                    Ok(value) => visitor.$visit(value),
                    Err(_) => self.deserialize_any(visitor),
                },
                _ => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Value {
    type Error = toml::de::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        match self {
            Self::List(list) => visitor.visit_seq(SeqDeserializer::new(list.into_iter())),
            Self::Scalar(scalar) => scalar.deserialize_any(visitor),
            Self::Table(table) => visitor.visit_map(MapDeserializer::new(table.into_iter())),
            Self::Text(text) => visitor.visit_string(text),
        }
    }

    parse_text! {
        deserialize_bool visit_bool bool,
        deserialize_i8 visit_i64 i64,
        deserialize_i16 visit_i64 i64,
        deserialize_i32 visit_i64 i64,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u64 u64,
        deserialize_u16 visit_u64 u64,
        deserialize_u32 visit_u64 u64,
        deserialize_u64 visit_u64 u64,
        deserialize_f32 visit_f64 f64,
        deserialize_f64 visit_f64 f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    /// Splits a text at its commas.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let Self::Text(text) = self else {
            return self.deserialize_any(visitor);
        };
        let items = text.split(',').map(str::trim);
        let items = items.filter(|item| !item.is_empty());
        let items = items.map(|item| Self::Text(item.to_owned()));
        visitor.visit_seq(SeqDeserializer::new(items))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        match self {
            Self::Scalar(scalar) => scalar.deserialize_enum(name, variants, visitor),
            Self::Text(text) => visitor.visit_enum(text.into_deserializer()),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct tuple tuple_struct map struct identifier
        ignored_any i128 u128
    }
}
