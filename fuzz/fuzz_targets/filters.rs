//! Any text as a filter expression. Its meaning is checked by `filter_payloads`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_filter::{Filter, Limits};

// An error has a position in the text; a filter keeps the text.
fuzz_target!(|text: &str| {
    match Filter::new(text, &Limits::default()) {
        Ok(filter) => assert_eq!(filter.text(), text),
        Err(error) => assert!(
            (1..=text.chars().count() + 1).contains(&error.column),
            "{error}"
        ),
    }
});
