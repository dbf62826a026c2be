//! Any condition on tags, and any tag to apply it to.

use bytes::Bytes;
use linerate_hub::Publication;

use crate::{protocol::command::TagsFilter, session};

/// Applies the condition in the first line of `data` to the tag in the second. The result does not
/// depend on earlier publications.
pub fn tag_filters(data: &[u8]) {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (condition, tag) = (text(), text());
    let publication = Publication::build(Bytes::new())
        .with_tags(vec![("k".into(), tag.clone())])
        .finish();
    tags(&condition, &tag, &publication);
}

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
