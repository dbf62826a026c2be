//! Fuzzing entry points for tag filters, and for what clients of Socket.IO present to return to
//! their sessions; compiled only for fuzzing.

use linerate_hub::Publication;

use super::{tags, work::Returning};
use crate::protocol::command::TagsFilter;

/// Compiles a filter and applies it. Returns `None` if the filter is invalid.
pub(crate) fn matches(filter: &TagsFilter, publication: &Publication) -> Option<bool> {
    let filter = tags::compile(filter).ok()?;
    assert!(!filter.expression().is_empty());
    Some(filter.matches(publication))
}

/// Returns whether the data with which a client connects names a session to return to.
pub(crate) fn returns(auth: &[u8]) -> bool {
    Returning::read(auth).is_some()
}
