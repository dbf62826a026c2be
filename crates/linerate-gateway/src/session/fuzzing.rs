//! Fuzzing entry point for tag filters; compiled only for fuzzing.

use linerate_hub::Publication;

use super::tags;
use crate::protocol::command::TagsFilter;

/// Compiles a filter and applies it. Returns `None` if the filter is invalid.
pub(crate) fn matches(filter: &TagsFilter, publication: &Publication) -> Option<bool> {
    let filter = tags::compile(filter).ok()?;
    assert!(!filter.expression().is_empty());
    Some(filter.matches(publication))
}
