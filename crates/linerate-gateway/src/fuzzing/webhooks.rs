//! Any bytes as a publication of a client of which webhooks are told.

use crate::webhook::fuzzing::publication;

/// Encodes `data` as webhooks are told of it.
pub fn webhooks(data: &[u8]) {
    publication(data);
}
