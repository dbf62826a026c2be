//! What a subscriber wants to see of a channel.

use std::{fmt, sync::Arc};

use crate::Publication;

/// Chooses among the publications of a channel: by their payload, by what comes with it, or by both.
///
/// Subscriptions with the same [`expression`](Self::expression) are one class: each publication is matched
/// once for all of them.
pub trait Filter: fmt::Debug + Send + Sync {
    /// Returns what distinguishes this filter from others.
    fn expression(&self) -> &str;

    /// Returns the part that reads the payload; `None` if any payload will do.
    ///
    /// A publication is scanned once for the parts of all filters of its channel. The answer must always be the same.
    fn payload(&self) -> Option<&Arc<linerate_filter::Filter>> {
        None
    }

    /// Returns whether the rest of the publication, such as its tags, is as wanted.
    fn admits(&self, publication: &Publication) -> bool {
        let _ = publication;
        true
    }

    /// Returns whether the subscribers of this class see `publication`.
    fn matches(&self, publication: &Publication) -> bool {
        let payload = publication.payload();
        let is_match = |filter: &Arc<linerate_filter::Filter>| (**filter).matches(payload);
        self.admits(publication) && self.payload().is_none_or(is_match)
    }
}

impl Filter for Arc<linerate_filter::Filter> {
    fn expression(&self) -> &str {
        self.text()
    }

    fn payload(&self) -> Option<&Self> {
        Some(self)
    }
}
