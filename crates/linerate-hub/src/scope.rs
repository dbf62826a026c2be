//! Which sources a subscriber to a pattern may see.

use std::fmt;

use crate::ChannelName;

/// Decides from which channels the publications of a pattern reach a subscriber.
///
/// Subscriptions with the same [`name`](Self::name) and filter are one class: each publication is judged once for all
/// of them. A publication that is withheld is not a gap.
pub trait Scope: fmt::Debug + Send + Sync {
    /// Returns what distinguishes this scope from others.
    fn name(&self) -> &str;

    /// Returns whether publications from `source` may be seen. It is `None` if the broker has published under something
    /// that is not the name of a channel. The answer may change over time.
    fn admits(&self, source: Option<&ChannelName>) -> bool;
}
