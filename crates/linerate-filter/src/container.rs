//! What filters ask of lists and objects, which are read from the payload for each question.

use std::borrow::Cow;

use hashbrown::HashSet;

use crate::{Number, json::Reader, text::Text, value::Value};

/// Returns whether a list contains a value, or an object has a field of this name.
pub(crate) fn contains(container: Value<'_>, value: Value<'_>) -> Value<'static> {
    match (value, container) {
        (Value::Error, _) => Value::Error,
        (value, Value::List(list)) => Value::truth(has_element(list, value)),
        (Value::Text(name), Value::Map(map)) => Value::Bool(has_key(map, name)),
        (_, Value::Map(_)) => Value::Bool(false),
        _ => Value::Error,
    }
}

/// Returns the number of elements, fields or characters.
pub(crate) fn size(value: Value<'_>) -> Value<'static> {
    let size = match value {
        Value::List(list) => Reader::elements(list).count() as u64,
        Value::Map(map) => {
            // If several fields have the same name, only the last one counts.
            let mut keys: HashSet<Cow<'_, [u8]>, foldhash::fast::RandomState> = HashSet::default();
            Reader::keys(map, |key| {
                keys.insert(key.decoded());
            });
            keys.len() as u64
        }
        Value::Text(text) => text.size(),
        _ => return Value::Error,
    };
    Value::Number(Number::from_unsigned(size))
}

/// Behaves like a disjunction of comparisons: true if one of them holds, otherwise an error if one
/// of them is an error.
fn has_element(list: &[u8], value: Value<'_>) -> Option<bool> {
    let mut result = Some(false);
    for element in Reader::elements(list) {
        match value.equals(&element) {
            Some(true) => return Some(true),
            Some(false) => {}
            None => result = None,
        }
    }
    result
}

fn has_key(map: &[u8], name: Text<'_>) -> bool {
    let mut is_key = false;
    Reader::keys(map, |key| is_key |= key == name);
    is_key
}
