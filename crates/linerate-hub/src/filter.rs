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
}
