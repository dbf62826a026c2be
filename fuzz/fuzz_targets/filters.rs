//! Any text as an expression that filters, and any publication for it to judge.
#![no_main]

use std::panic;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use linerate_gateway::{
    config::FilterOptions, filter::Filters, protocol::centrifuge::command::TagsFilter, session,
};
use linerate_hub::Publication;

// The first line is an expression, the second a tag; the rest is a publication. A filter with a guard never passes
// what the guard keeps out.
fuzz_target!(
    init: {
        // The library that evaluates expressions panics for some; ours catches that, and it matches nothing then.
        let abort = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let file = info.location().map_or("", |place| place.file());
            if !file.contains("/cel-") && !file.contains("/antlr4rust") {
                abort(info);
            }
        }));
    },
    |data: &[u8]| {
        let mut parts = data.splitn(3, |&byte| byte == b'\n');
        let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let (expression, tag, payload) = (text(), text(), text());
        let publication = Publication::build(Bytes::from(payload.into_bytes()))
            .with_tags(vec![("k".into(), tag.clone())])
            .finish();
        expressions(&expression, &publication);
        tags(&expression, &tag, &publication);
    }
);

fn expressions(expression: &str, publication: &Publication) {
    let filters = Filters::new(FilterOptions::default());
    let Ok(filter) = filters.compile(expression) else {
        return;
    };
    assert_eq!(filter.expression(), expression.trim());
    let matches = filter.matches(publication);
    assert_eq!(filter.matches(publication), matches, "it has no memory");
    if let Some(guard) = filter.guard() {
        let field = publication
            .value()
            .and_then(|value| value.get(&guard.field));
        let passes = field.and_then(|field| field.as_str()) == Some(&*guard.value);
        assert!(!matches || passes, "{guard:?}");
        assert!(matches || !passes || !guard.is_sufficient, "{guard:?}");
    }
}

/// Each word is a comparison of the tag with the one behind it, all of them combined in turn.
fn tags(text: &str, value: &str, publication: &Publication) {
    let mut filter = TagsFilter::default();
    for word in text.split(' ').take(100) {
        let (operation, rest) = word.split_once('(').unwrap_or(("", word));
        let (comparison, with) = rest.split_once(',').unwrap_or((rest, value));
        let next = TagsFilter {
            operation: operation.into(),
            key: "k".into(),
            comparison: comparison.into(),
            value: with.into(),
            values: vec![with.into()],
            nodes: Vec::new(),
        };
        filter = match operation {
            "" => next,
            _ => TagsFilter {
                nodes: vec![filter, next.clone()],
                ..next
            },
        };
    }
    let matches = session::fuzzing::matches(&filter, publication);
    assert_eq!(session::fuzzing::matches(&filter, publication), matches);
    if matches == Some(true) && filter.operation.is_empty() && filter.comparison == "eq" {
        assert_eq!(filter.value, value);
    }
}
