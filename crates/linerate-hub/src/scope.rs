//! Scopes, which limit the source channels that a subscriber to a pattern sees.

use std::fmt;

use crate::ChannelName;

/// Decides from which channels a subscriber to a pattern receives publications.
///
/// Subscriptions with the same [`name`](Self::name) and filter form one class: each publication is
/// checked once for all of them. A publication that is withheld is not a gap.
pub trait Scope: fmt::Debug + Send + Sync {
    /// Returns the text that identifies this scope. Scopes with the same name must admit the same
    /// sources.
    fn name(&self) -> &str;

    /// Returns whether the subscriber may see publications from `source`. It is `None` if the
    /// broker published under a name that is not a valid channel name. The answer may change over
    /// time.
    fn admits(&self, source: Option<&ChannelName>) -> bool;
}
