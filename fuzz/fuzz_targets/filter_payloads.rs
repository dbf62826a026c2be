//! Any publication, judged by any expression: JSON agrees with a naive evaluator on the parsed
//! value, and every payload gives the same result with and without other filters, and in slices and
//! at once.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_filter::{Evaluated, Filter, FilterSet, Limits, parse};

#[path = "../../crates/linerate-filter/tests/it/oracle.rs"]
mod oracle;

// The last line is a publication; the lines before it are the filters of a channel.
fuzz_target!(|data: &[u8]| {
    let at = data
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let (texts, payload) = data.split_at(at);
    let texts = String::from_utf8_lossy(texts);
    let limits = Limits::default();
    let is_json = serde_json::from_slice::<serde_json::Value>(payload).is_ok();
    let mut set = FilterSet::default();
    let mut expected = Vec::new();
    for (id, text) in texts.lines().enumerate() {
        let Ok(filter) = Filter::new(text, &limits) else {
            continue;
        };
        let is_match = filter.matches(payload);
        if is_json {
            let root = parse(text, &limits).expect("was parsed");
            assert_eq!(is_match, oracle::matches(&root, payload), "{text}");
        }
        expected.extend(is_match.then_some(id));
        set.insert(id, Arc::new(filter));
    }
    let mut evaluated = Evaluated::default();
    while !set.evaluate(payload, &mut evaluated, || true) {}
    for known in [Evaluated::default(), evaluated] {
        let mut matched = Vec::new();
        set.visit_evaluated(payload, &known, |id| matched.push(id));
        matched.sort_unstable();
        assert_eq!(matched, expected, "{texts}");
    }
});
