//! JSON pointers (RFC 6901).

use std::{fmt, sync::Arc};

use serde_json::Value;

/// Maximum length of a pointer in bytes.
pub const POINTER_BYTES_MAX: usize = 256;

/// A place in a JSON document, such as `/instrument/id`. The empty pointer is the whole document.
///
/// ```
/// use linerate_hub::JsonPointer;
///
/// let pointer = JsonPointer::new("/bids/0/price")?;
/// let value = serde_json::json!({"bids": [{"price": 17}]});
/// assert_eq!(pointer.find(&value), Some(&17.into()));
/// # Ok::<(), linerate_hub::pointer::JsonPointerError>(())
/// ```
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct JsonPointer(Arc<Inner>);

#[derive(Eq, Hash, PartialEq)]
struct Inner {
    text: Box<str>,
    tokens: Box<[Box<str>]>,
}

/// The reason why a string is not a valid JSON pointer.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonPointerError {
    /// A `~` is not followed by `0` or `1`.
    #[error("JSON pointer must have 0 or 1 after each ~")]
    Escape,
    /// The first character is not `/`.
    #[error("JSON pointer must be empty or begin with /")]
    Start,
    /// The pointer is longer than [`POINTER_BYTES_MAX`].
    #[error("JSON pointer has {bytes} bytes; at most {POINTER_BYTES_MAX} are allowed")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
    },
}

impl JsonPointer {
    /// Parses a pointer.
    ///
    /// # Errors
    /// Returns an error if the text is not a JSON pointer or is longer than [`POINTER_BYTES_MAX`].
    pub fn new(text: &str) -> Result<Self, JsonPointerError> {
        if text.len() > POINTER_BYTES_MAX {
            return Err(JsonPointerError::TooLong { bytes: text.len() });
        }
        let tokens = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(unescape).collect::<Result<_, _>>()?,
            None if text.is_empty() => Box::default(),
            None => return Err(JsonPointerError::Start),
        };
        let text = text.into();
        Ok(Self(Arc::new(Inner { text, tokens })))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    /// Returns the element of `value` that the pointer refers to.
    pub fn find<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let step = |value: &'v Value, token: &str| match value {
            Value::Object(members) => members.get(token),
            Value::Array(elements) => elements.get(index(token)?),
            _ => None,
        };
        let mut tokens = self.0.tokens.iter();
        tokens.try_fold(value, |value, token| step(value, token))
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(f)
    }
}

fn unescape(token: &str) -> Result<Box<str>, JsonPointerError> {
    let mut plain = String::with_capacity(token.len());
    let mut chars = token.chars();
    while let Some(char) = chars.next() {
        plain.push(match char {
            '~' => match chars.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err(JsonPointerError::Escape),
            },
            other => other,
        });
    }
    Ok(plain.into())
}

/// Parses an array index, which has no sign and no leading zeros (RFC 6901 §4).
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with(['0', '+']);
    is_plain.then(|| token.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{JsonPointer, JsonPointerError, POINTER_BYTES_MAX};

    #[test]
    fn a_pointer_follows_the_standard() {
        // The document and the pointers of RFC 6901 §5.
        let document = json!({
            "foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3,
            "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8
        });
        let find = |text| JsonPointer::new(text).unwrap().find(&document).cloned();
        assert_eq!(find(""), Some(document.clone()));
        assert_eq!(find("/foo"), Some(json!(["bar", "baz"])));
        assert_eq!(find("/foo/0"), Some(json!("bar")));
        for (text, number) in [
            ("/", 0),
            ("/a~1b", 1),
            ("/c%d", 2),
            ("/e^f", 3),
            ("/g|h", 4),
            ("/i\\j", 5),
            ("/k\"l", 6),
            ("/ ", 7),
            ("/m~0n", 8),
        ] {
            assert_eq!(find(text), Some(json!(number)), "{text}");
        }
        for text in ["/bar", "/foo/2", "/foo/01", "/foo/+1", "/foo/-", "/foo/0/0"] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn invalid_pointers_are_refused() {
        let refused = |text: &str| JsonPointer::new(text).unwrap_err();
        assert_eq!(refused("foo"), JsonPointerError::Start);
        assert_eq!(refused("ä"), JsonPointerError::Start);
        assert_eq!(refused("/a~"), JsonPointerError::Escape);
        assert_eq!(refused("/a~2"), JsonPointerError::Escape);
    }

    #[test]
    fn the_length_of_a_pointer_is_limited() {
        let longest = "/".repeat(POINTER_BYTES_MAX);
        assert!(JsonPointer::new(&longest).is_ok());
        let error = JsonPointer::new(&(longest + "a")).unwrap_err();
        assert!(error.to_string().contains("257"), "{error}");
        assert!(error.to_string().contains("256"), "{error}");
    }

    #[test]
    fn a_pointer_is_displayed_as_written() {
        let pointer = JsonPointer::new("/a~1b/0").unwrap();
        assert_eq!(pointer.as_str(), "/a~1b/0");
        assert_eq!(pointer.to_string(), "/a~1b/0");
        assert_eq!(format!("{pointer:?}"), "\"/a~1b/0\"");
    }
}
