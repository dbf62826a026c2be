//! From JSON to the values of CEL.

use std::{collections::HashMap, sync::Arc};

use cel::{Value, objects::Key};
use serde_json::Value as Json;

/// Converts values, up to a number of them.
#[derive(Debug)]
pub(super) struct Converter {
    left: usize,
}

impl Converter {
    /// Converts up to `values_max` values, lists and objects counted with all that is in them.
    pub(super) const fn new(values_max: usize) -> Self {
        Self { left: values_max }
    }

    /// Converts a value; `None` if there would be too many.
    pub(super) fn convert(&mut self, json: &Json) -> Option<Value> {
        self.left = self.left.checked_sub(1)?;
        Some(match json {
            Json::Array(items) => {
                let items = items.iter().map(|item| self.convert(item));
                Value::List(Arc::new(items.collect::<Option<_>>()?))
            }
            Json::Bool(bool) => Value::Bool(*bool),
            Json::Null => Value::Null,
            Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(int), _, _) => Value::Int(int),
                (_, Some(uint), _) => Value::UInt(uint),
                (_, _, float) => Value::Float(float?),
            },
            Json::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| {
                    let key = Key::String(Arc::new(name.clone()));
                    Some((key, self.convert(value)?))
                });
                let fields: HashMap<Key, Value> = fields.collect::<Option<_>>()?;
                Value::Map(fields.into())
            }
            Json::String(text) => Value::String(Arc::new(text.clone())),
        })
    }
}
