//! JSON text with one value per line (RFC 8259). Only the white space between tokens changes, so
//! that numbers keep all digits, and objects the order of their members and repeated names.

use serde::de::IgnoredAny;

/// The deepest nesting that is laid out.
const DEPTH_MAX: usize = 128;

const INDENT: &str = "  ";

/// What a token of JSON is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Token {
    /// The name of a member, with its quotation marks.
    Name,
    Number,
    /// A bracket, a brace, a comma or a colon.
    Punctuation,
    /// A string, with its quotation marks.
    Text,
    /// `true`, `false` or `null`.
    Word,
}

/// Returns an object or an array with one value per line; `paint` appends each of its tokens.
///
/// Returns `None` if `text` is not valid JSON or is neither an object nor an array, if it is nested
/// more than 128 levels deep, or if the result would be longer than `bytes_max`.
pub(crate) fn pretty(
    text: &str,
    bytes_max: usize,
    paint: impl Fn(Token, &str, &mut String),
) -> Option<String> {
    let text = text.trim_ascii();
    if !text.starts_with(['{', '[']) || text.len() > bytes_max {
        return None;
    }
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let (mut pretty, mut depth, mut rest) = (String::new(), 0_usize, text);
    while !rest.is_empty() {
        let (kind, token) = next_token(rest);
        rest = rest[token.len()..].trim_ascii_start();
        let is_last = rest.starts_with(['}', ']']);
        paint(kind, token, &mut pretty);
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth -= 1,
            ":" => pretty.push(' '),
            _ => {}
        }
        let begins = matches!(token, "{" | "[");
        // An empty object or array stays on one line.
        if token == "," || begins != is_last {
            let indents = depth - usize::from(is_last);
            pretty.push('\n');
            pretty.extend(std::iter::repeat_n(INDENT, indents));
        }
        if depth > DEPTH_MAX || pretty.len() > bytes_max {
            return None;
        }
    }
    Some(pretty)
}

/// Returns the token at the beginning of the rest of valid JSON.
fn next_token(rest: &str) -> (Token, &str) {
    let first = rest.as_bytes()[0];
    if first == b'"' {
        let text = &rest[..string_bytes(rest)];
        let is_name = rest[text.len()..].trim_ascii_start().starts_with(':');
        let kind = if is_name { Token::Name } else { Token::Text };
        return (kind, text);
    }
    if b"{}[],:".contains(&first) {
        return (Token::Punctuation, &rest[..1]);
    }
    let is_end = |char: char| char.is_ascii_whitespace() || "{}[],:\"".contains(char);
    let word = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let kind = match first {
        b'-' | b'0'..=b'9' => Token::Number,
        _ => Token::Word,
    };
    (kind, word)
}

/// Returns the length of the string at the beginning of `rest`, with its quotation marks.
fn string_bytes(rest: &str) -> usize {
    let mut is_escaped = false;
    let end = rest.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(rest.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::{DEPTH_MAX, Token, pretty};

    fn plain(text: &str) -> Option<String> {
        pretty(text, 100_000, |_, token, pretty| pretty.push_str(token))
    }

    #[test]
    fn values_get_a_line_each_and_stay_as_they_are() {
        let text = r#" {"b":1.50,"a":[1e400 ,12345678901234567890,[],{}, [ ] ],"a":{"x\"}":"{\\"}, "ü":null} "#;
        let expected = r#"{
  "b": 1.50,
  "a": [
    1e400,
    12345678901234567890,
    [],
    {},
    []
  ],
  "a": {
    "x\"}": "{\\"
  },
  "ü": null
}"#;
        assert_eq!(plain(text).as_deref(), Some(expected));
        for empty in ["{}", "[]", " [ ] "] {
            assert_eq!(
                plain(empty).as_deref(),
                Some(empty.replace(' ', "").as_str())
            );
        }
    }

    #[test]
    fn tokens_have_kinds() {
        let text = r#"{"a" : ["b", -1, true, null]}"#;
        let painted = pretty(text, 1_000, |kind, token, pretty| {
            let mark = match kind {
                Token::Name => 'n',
                Token::Number => '#',
                Token::Punctuation => 'p',
                Token::Text => 't',
                Token::Word => 'w',
            };
            pretty.push_str(&format!("{mark}{token}"));
        });
        let painted = painted.unwrap().replace(['\n', ' '], "");
        assert_eq!(painted, r##"p{n"a"p:p[t"b"p,#-1p,wtruep,wnullp]p}"##);
    }

    #[test]
    fn other_text_is_not_laid_out() {
        for text in [
            "",
            "1",
            "\"a\"",
            "null",
            "hello",
            "{",
            "[1,]",
            "{\"a\"}",
            "[1] 2",
            "{\"a\":\"\n\"}",
            "[01]",
            "\u{feff}{}",
        ] {
            assert_eq!(plain(text), None, "{text}");
        }
    }

    #[test]
    fn depth_and_length_are_limited() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(plain(&nested(DEPTH_MAX)).is_some());
        assert_eq!(plain(&nested(DEPTH_MAX + 1)), None);
        assert_eq!(plain(&nested(5_000)), None);
        // Much more white space than text.
        let wide = format!(
            "{}{}{}",
            "[".repeat(100),
            "1,".repeat(5_000),
            "1".to_owned() + &"]".repeat(100)
        );
        let limited =
            |bytes_max| pretty(&wide, bytes_max, |_, token, pretty| pretty.push_str(token));
        assert_eq!(limited(100_000), None);
        let bytes = limited(usize::MAX).unwrap().len();
        assert!(bytes > 1_000_000);
        assert!(limited(bytes).is_some());
        assert_eq!(limited(bytes - 1), None);
    }
}
