//! Fuzzing entry point for request URLs; compiled only for fuzzing.

use axum::http::{HeaderMap, HeaderValue};

use super::query;

/// Parses the query of a URL with a `Last-Event-ID` and an `Authorization` header. Returns the
/// number of channels that it names, or `None` if the query is invalid.
pub(crate) fn address(query: &str, last_event_id: &[u8], authorization: &[u8]) -> Option<usize> {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("last-event-id", last_event_id),
        ("authorization", authorization),
    ] {
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.insert(name, value);
        }
    }
    let asked = query::read(query, &headers).ok()?;
    Some(asked.wish.subscriptions.len())
}
