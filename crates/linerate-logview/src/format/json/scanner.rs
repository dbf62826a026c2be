//! A JSON scanner (RFC 8259) that copies nothing and examines each byte once.
//!
//! It is more lenient than the RFC where servers deviate: a value may be missing
//! (`"upstream_time":,`) or a bare list (`0.1, 0.2`), and any byte may be escaped.

use memchr::memchr2;

use super::super::fields::Text;

/// A value, or the opening brace or bracket of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Value<'a> {
    Array,
    Object,
    /// A string without its quotes, a number, or a word.
    Text(Text<'a>),
}

/// Reads forward through a line.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    rest: &'a [u8],
}

impl<'a> Scanner<'a> {
    pub(super) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Reads the next key of an object and its colon. Returns `Some(None)` at the closing brace.
    #[inline]
    pub(super) fn next_key(&mut self) -> Option<Option<&'a [u8]>> {
        self.skip_space();
        if let [b',', rest @ ..] = self.rest {
            self.rest = rest;
            self.skip_space();
        }
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        match first {
            b'}' => Some(None),
            b'"' => {
                let key = self.string()?.bytes;
                self.skip_space();
                self.rest = self.rest.strip_prefix(b":")?;
                Some(Some(key))
            }
            _ => None,
        }
    }

    /// Reads the next value, or only the opening of an object or array.
    #[inline]
    pub(super) fn next_value(&mut self) -> Option<Value<'a>> {
        self.skip_space();
        let (&first, rest) = self.rest.split_first()?;
        match first {
            b'"' => {
                self.rest = rest;
                return self.string().map(Value::Text);
            }
            b'{' => self.rest = rest,
            b'[' => self.rest = rest,
            _ => return self.word().map(Value::Text),
        }
        Some(if first == b'{' {
            Value::Object
        } else {
            Value::Array
        })
    }

    /// Reads an array whose opening bracket was read, and returns its first element if that is a
    /// string.
    pub(super) fn first_of_array(&mut self) -> Option<Option<Text<'a>>> {
        self.skip_space();
        let first = match self.rest {
            [b'"', rest @ ..] => {
                self.rest = rest;
                Some(self.string()?)
            }
            _ => None,
        };
        self.skip_nested()?;
        Some(first)
    }

    /// Skips the remainder of an object or array.
    pub(super) fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 1usize;
        while depth > 0 {
            let is_mark = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
            let at = self.rest.iter().position(is_mark)?;
            let mark = self.rest[at];
            self.rest = &self.rest[at + 1..];
            match mark {
                b'"' => _ = self.string()?,
                b'{' | b'[' => depth += 1,
                _ => depth -= 1,
            }
        }
        Some(())
    }

    /// Returns whether only whitespace remains.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
    }

    #[inline]
    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\r' | b'\n', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    /// Reads a string whose opening quote was read.
    #[inline]
    fn string(&mut self) -> Option<Text<'a>> {
        let text = self.rest;
        let mut end = 0;
        let mut is_escaped = false;
        loop {
            end += memchr2(b'"', b'\\', text.get(end..)?)?;
            if text[end] == b'"' {
                self.rest = &text[end + 1..];
                let bytes = &text[..end];
                return Some(Text { bytes, is_escaped });
            }
            is_escaped = true;
            end += 2;
        }
    }

    /// Reads a value that is not a string, up to the closing brace or the comma before the next
    /// key.
    #[inline]
    fn word(&mut self) -> Option<Text<'a>> {
        let text = self.rest;
        let ends = |at: &usize| match text[*at] {
            b'}' | b']' => true,
            b',' => {
                let rest = text[at + 1..].trim_ascii_start();
                rest.first().is_none_or(|byte| matches!(byte, b'"' | b'}'))
            }
            _ => false,
        };
        let end = (0..text.len()).find(ends)?;
        self.rest = &text[end..];
        let bytes = text[..end].trim_ascii_end();
        Some(Text {
            bytes,
            is_escaped: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Scanner, Value};

    /// Reads one object and returns its members as text.
    fn members(text: &str) -> Option<String> {
        let mut scanner = Scanner::new(text.as_bytes());
        assert_eq!(scanner.next_value(), Some(Value::Object));
        let mut seen = String::new();
        while let Some(key) = scanner.next_key()? {
            let value = match scanner.next_value()? {
                Value::Array => {
                    let first = scanner.first_of_array()?;
                    format!(
                        "[{}]",
                        first.map_or("", |text| str::from_utf8(text.bytes).unwrap())
                    )
                }
                Value::Object => scanner.skip_nested().map(|()| "{}".to_owned())?,
                Value::Text(text) => {
                    let mark = if text.is_escaped { "!" } else { "" };
                    format!("{mark}{}", str::from_utf8(text.bytes).unwrap())
                }
            };
            seen += &format!("{}={value};", str::from_utf8(key).unwrap());
        }
        scanner.is_at_end().then_some(seen)
    }

    #[test]
    fn members_are_read() {
        assert_eq!(members("{}").unwrap(), "");
        assert_eq!(members(r#"{"a":"b","c":12}"#).unwrap(), "a=b;c=12;");
        assert_eq!(
            members(" { \"a\" : \"b\\\"c\" ,\t\"d\" : null }\r\n").unwrap(),
            "a=!b\\\"c;d=null;"
        );
        assert_eq!(
            members(r#"{"a":["b","c"],"d":[1,[2]],"e":[]}"#).unwrap(),
            "a=[b];d=[];e=[];"
        );
        assert_eq!(
            members(r#"{"a":{"b":[{"c":"}"}]},"d":""}"#).unwrap(),
            "a={};d=;"
        );
    }

    #[test]
    fn nonstandard_output_of_servers_is_parsed() {
        assert_eq!(members(r#"{"a":,"b":}"#).unwrap(), "a=;b=;");
        assert_eq!(
            members(r#"{"a":0.1, 0.2,"b":-,}"#).unwrap(),
            "a=0.1, 0.2;b=-;"
        );
        assert_eq!(members(r#"{"a":"\x22\"}"}"#).unwrap(), r#"a=!\x22\"};"#);
    }

    #[test]
    fn every_truncation_of_an_object_is_refused() {
        let text = r#"{"a":"b\"c","d":[1,{"e":"f"}],"g":{"h":"}"},"i":2}"#;
        assert!(members(text).is_some());
        for end in 1..text.len() {
            assert_eq!(members(&text[..end]), None, "{}", &text[..end]);
        }
        assert_eq!(members(&format!("{text}x")), None);
    }
}
