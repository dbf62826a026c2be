//! What addresses ask for, for fuzzers; compiled only for them.

use axum::http::{HeaderMap, HeaderValue};

use super::query;

/// Reads the query of an address, with a `Last-Event-ID` and an `Authorization`. Returns how many channels it names.
pub fn address(query: &str, last_event_id: &[u8], authorization: &[u8]) -> Option<usize> {
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
