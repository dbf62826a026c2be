//! Names of parts of a record, such as `key` or `value.customer.id`.

use std::{fmt, str::FromStr};

/// A part of a record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Field {
    /// The value of the last header with this name: `header.NAME`.
    Header(String),
    /// The key: `key`.
    Key,
    /// The number of the partition: `partition`.
    Partition,
    /// The name of the topic: `topic`.
    Topic,
    /// A member of the value, which is a JSON object: `value.NAME`, or `value.NAME.NAME` for a
    /// member of a member.
    Value(Vec<String>),
}

/// A text that does not name a part of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("must be key, topic, partition, header.NAME or value.NAME")]
pub struct FieldError;

impl FromStr for Field {
    type Err = FieldError;

    fn from_str(text: &str) -> Result<Self, FieldError> {
        match text {
            "key" => return Ok(Self::Key),
            "partition" => return Ok(Self::Partition),
            "topic" => return Ok(Self::Topic),
            _ => {}
        }
        match text.split_once('.') {
            Some(("header", name)) if !name.is_empty() => Ok(Self::Header(name.to_owned())),
            Some(("value", path)) if path.split('.').all(|name| !name.is_empty()) => {
                Ok(Self::Value(path.split('.').map(str::to_owned).collect()))
            }
            _ => Err(FieldError),
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header.{name}"),
            Self::Key => f.write_str("key"),
            Self::Partition => f.write_str("partition"),
            Self::Topic => f.write_str("topic"),
            Self::Value(path) => write!(f, "value.{}", path.join(".")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Field, FieldError};

    #[test]
    fn parts_of_a_record_are_named() {
        for text in [
            "key",
            "topic",
            "partition",
            "header.a.b",
            "value.a",
            "value.a.b",
        ] {
            assert_eq!(text.parse::<Field>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "value",
            "header",
            "header.",
            "value.",
            "value.a..b",
            "Key",
            "offset",
        ] {
            assert_eq!(text.parse::<Field>(), Err(FieldError), "{text}");
        }
    }
}
