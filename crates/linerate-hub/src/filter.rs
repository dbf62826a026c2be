//! Filters, which select the publications that a subscriber sees.

use std::{fmt, sync::Arc};

use crate::Publication;

/// Selects publications of a channel by their payload, by their metadata, or by both.
///
/// Subscriptions with the same [`expression`](Self::expression) form one class: each publication is
/// matched once for all of them.
pub trait Filter: fmt::Debug + Send + Sync {
    /// Returns the text that identifies this filter. Filters with the same text must let the same
    /// publications pass.
    fn expression(&self) -> &str;

    /// Returns the part of the filter that reads the payload, or `None` if any payload matches.
    ///
    /// A publication's payload is scanned once for all filters of its channel. The result must be
    /// the same on every call.
    fn payload(&self) -> Option<&Arc<linerate_filter::Filter>> {
        None
    }

    /// Returns whether the metadata of the publication, such as its tags, matches.
    fn admits(&self, publication: &Publication) -> bool {
        let _ = publication;
        true
    }

    /// Returns whether both the payload and the metadata of `publication` match.
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
