//! Publications that a subscriber does not receive because of its other subscriptions.

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::ChannelName;

/// Channels whose subscribers do not receive a publication, although they subscribe to its channel.
///
/// An event for several channels is a publication in each of them. So that a subscriber of two of
/// them receives it once, each publication excludes the channels that come before its own. These
/// exclusions share one list; see [`first`](Self::first).
///
/// A hub does not apply exclusions, because its blocks are the same for all subscribers.
/// [`Encode::seal`](crate::Encode::seal) can keep them with the block.
#[derive(Clone, Debug)]
pub struct Exclusion {
    /// The place of each channel in the list.
    places: Arc<HashMap<ChannelName, usize, RandomState>>,
    /// Only channels before this place are excluded.
    end: usize,
}

impl Exclusion {
    /// Excludes the subscribers of all these channels.
    pub fn new<'a>(channels: impl IntoIterator<Item = &'a ChannelName>) -> Self {
        let mut places = HashMap::default();
        let mut end = 0;
        for channel in channels {
            places.entry(channel.clone()).or_insert(end);
            end += 1;
        }
        Self {
            places: Arc::new(places),
            end,
        }
    }

    /// Excludes only the subscribers of the first `count` channels of the list.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        Self {
            places: Arc::clone(&self.places),
            end: count,
        }
    }

    /// Returns whether no subscriber is excluded.
    pub fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Returns whether a client with subscriptions to these channels is excluded.
    pub fn has_any<'a>(&self, channels: impl IntoIterator<Item = &'a ChannelName>) -> bool {
        let mut channels = channels.into_iter();
        channels.any(|channel| {
            self.places
                .get(channel)
                .is_some_and(|place| *place < self.end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Exclusion;
    use crate::ChannelName;

    fn channel(name: &str) -> ChannelName {
        ChannelName::new(name).unwrap()
    }

    #[test]
    fn subscribers_of_the_first_channels_are_excluded() {
        let list = ["x", "a", "b", "a"].map(channel);
        let all = Exclusion::new(&list);
        let excludes = |exclusion: &Exclusion, names: &[&str]| {
            let channels: Vec<_> = names.iter().map(|name| channel(name)).collect();
            exclusion.has_any(&channels)
        };
        assert!(excludes(&all, &["b"]));
        assert!(!excludes(&all, &["c"]));
        assert!(!excludes(&all, &[]));
        let first = all.first(1);
        assert!(excludes(&first, &["a", "x"]));
        assert!(!excludes(&first, &["a", "b"]));
        assert!(excludes(&all.first(3), &["a"]), "the first place counts");
        assert!(all.first(0).is_empty());
        assert!(!excludes(&all.first(0), &["x"]));
    }
}
