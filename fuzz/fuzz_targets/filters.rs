//! Any text as an expression that filters, and a few payloads for it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_filter::{Filter, Limits};

const PAYLOADS: [&[u8]; 2] = [
    br#"{"a":[1,"b",null],"b":{"c":1.5},"c":-9223372036854775808}"#,
    b"{",
];

// An error has its place in the text; a filter that compiles matches no payload that is not JSON.
fuzz_target!(|text: &str| {
    match Filter::new(text, &Limits::default()) {
        Ok(filter) => {
            filter.matches(PAYLOADS[0]);
            assert!(!filter.matches(PAYLOADS[1]));
        }
        Err(error) => assert!(
            (1..=text.chars().count() + 1).contains(&error.column),
            "{error}"
        ),
    }
});
