//! What a subscriber wants to see of a channel.

use std::fmt;

use crate::Publication;

/// Chooses among the publications of a channel.
///
/// Subscriptions with the same [`expression`](Self::expression) are one class: each publication is matched
/// once for all of them.
pub trait Filter: fmt::Debug + Send + Sync {
    /// Returns what distinguishes this filter from others.
    fn expression(&self) -> &str;

    /// Says whether the subscribers of this class see `publication`.
    fn matches(&self, publication: &Publication) -> bool;

    /// Returns something without which nothing matches, if there is such a thing.
    ///
    /// Filters with guards cost a publication a single look at its fields, however many they are; only those
    /// whose guard fits are asked, and not even those if the guard says it all. The answer must always be the same.
    fn guard(&self) -> Option<&Guard> {
        None
    }
}

/// A field of the payload, which is a JSON object, and the string that it must hold.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Guard {
    /// The name of the field.
    pub field: String,
    /// What it must be equal to.
    pub value: String,
    /// Whether everything that fits the guard matches, so that the filter need not be asked.
    pub is_sufficient: bool,
}
