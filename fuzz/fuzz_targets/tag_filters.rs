//! Any condition on tags, applied to any tag.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use linerate_gateway::{protocol::centrifuge::command::TagsFilter, session};
use linerate_hub::Publication;

// The first line is a condition, the second a tag. A condition does not depend on earlier
// publications.
fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (condition, tag) = (text(), text());
    let publication = Publication::build(Bytes::new())
        .with_tags(vec![("k".into(), tag.clone())])
        .finish();
    tags(&condition, &tag, &publication);
});

/// Each word is a comparison of the tag with the next word, all of them combined in turn.
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
