//! Filters by tags, for fuzzers; compiled only for them.

use linerate_hub::Publication;

use super::tags;
use crate::protocol::centrifuge::command::TagsFilter;

/// Compiles a filter and asks it. `None` if it is none.
pub fn matches(filter: &TagsFilter, publication: &Publication) -> Option<bool> {
    let filter = tags::compile(filter).ok()?;
    assert!(!filter.expression().is_empty());
    Some(filter.matches(publication))
}
