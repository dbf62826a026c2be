//! Text of a server, shown as JSON with one value per line by `linerate connect`.
#![no_main]

#[path = "../../crates/linerate-cli/src/connect/pretty.rs"]
mod pretty;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;

use pretty::{Token, pretty};

/// More than what any input of the fuzzer needs: 128 levels of indentation for each byte.
const BYTES_MAX: usize = 1 << 24;

fuzz_target!(|text: &str| {
    let shown = lay_out(text, BYTES_MAX);
    let value: Result<Value, _> = serde_json::from_str(text);
    let is_nested = value.is_ok_and(|value| value.is_array() || value.is_object());
    assert!(shown.is_some() || !is_nested);
    let Some(shown) = shown else {
        return;
    };
    assert_eq!(compact(&shown), compact(text), "only white space changes");
    assert_eq!(lay_out(&shown, BYTES_MAX).as_ref(), Some(&shown));
    assert_eq!(
        lay_out(text, shown.len().max(text.len())),
        Some(shown.clone())
    );
    assert_eq!(lay_out(text, shown.len() - 1), None);
});

fn lay_out(text: &str, bytes_max: usize) -> Option<String> {
    pretty(text, bytes_max, |kind, token, shown| {
        let first = token.as_bytes()[0];
        let expected: &[u8] = match kind {
            Token::Name | Token::Text => b"\"",
            Token::Number => b"-0123456789",
            Token::Punctuation => b"{}[],:",
            Token::Word => b"tfn",
        };
        assert!(expected.contains(&first), "{kind:?}: {token}");
        shown.push_str(token);
    })
}

/// Returns JSON without white space between its tokens.
fn compact(text: &str) -> String {
    let (mut in_string, mut is_escaped) = (false, false);
    let mut compact = String::new();
    for char in text.chars() {
        if in_string || !char.is_ascii_whitespace() {
            compact.push(char);
        }
        in_string ^= char == '"' && !is_escaped;
        is_escaped = in_string && char == '\\' && !is_escaped;
    }
    compact
}
