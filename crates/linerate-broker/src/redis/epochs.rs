//! Remembers the order in which this node has seen the epochs of durable channels.
//!
//! A script begins an epoch by removing the stream of the previous one. Everything in the stream of
//! an epoch was therefore published after the epoch began, and a subscriber that was still in an
//! earlier epoch at that time has seen none of it. That a node has seen one epoch before the other
//! proves which of the two is earlier, unless two servers were masters at the same time. What a
//! client has seen of the later epoch on other nodes is not known here; its position names it.

use std::{collections::VecDeque, sync::Mutex};

use foldhash::HashMap;
use linerate_hub::{ChannelName, Epoch};

use crate::lock::lock;

/// The number of epochs that are remembered for each channel.
const EPOCHS_MAX: usize = 8;

/// The newest epochs of the subscribed durable channels, each list in the order in which the epochs
/// were seen.
#[derive(Debug, Default)]
pub(super) struct Epochs(Mutex<HashMap<ChannelName, VecDeque<Epoch>>>);

impl Epochs {
    /// Starts to remember the epochs of a channel.
    pub(super) fn open(&self, channel: &ChannelName) {
        lock(&self.0).entry(channel.clone()).or_default();
    }

    /// Forgets the epochs of a channel.
    pub(super) fn close(&self, channel: &ChannelName) {
        lock(&self.0).remove(channel);
    }

    /// Records that the channel's stream has this epoch, if its epochs are remembered.
    pub(super) fn record(&self, channel: &ChannelName, epoch: &Epoch) {
        let mut channels = lock(&self.0);
        let Some(seen) = channels.get_mut(channel) else {
            return;
        };
        // An epoch that is seen again, as after two servers were masters at the same time, keeps
        // its position, because it proves nothing new.
        if seen.contains(epoch) {
            return;
        }
        if seen.len() == EPOCHS_MAX {
            seen.pop_front();
        }
        seen.push_back(epoch.clone());
    }

    /// Returns whether `later` began after `earlier` had been seen.
    pub(super) fn has_followed(
        &self,
        channel: &ChannelName,
        earlier: &Epoch,
        later: &Epoch,
    ) -> bool {
        let channels = lock(&self.0);
        let Some(seen) = channels.get(channel) else {
            return false;
        };
        let place = |epoch| seen.iter().position(|one| one == epoch);
        matches!((place(earlier), place(later)), (Some(earlier), Some(later)) if earlier < later)
    }

    /// Returns the newest epoch seen of a channel.
    pub(super) fn newest(&self, channel: &ChannelName) -> Option<Epoch> {
        lock(&self.0).get(channel)?.back().cloned()
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::{ChannelName, Epoch};

    use super::{EPOCHS_MAX, Epochs};

    fn epoch(number: usize) -> Epoch {
        Epoch::new(&number.to_string())
    }

    #[test]
    fn only_epochs_seen_later_are_successors() {
        let (epochs, channel) = (Epochs::default(), ChannelName::new("a").unwrap());
        epochs.record(&channel, &epoch(1));
        assert_eq!(epochs.newest(&channel), None, "channel is not subscribed");
        epochs.open(&channel);
        for number in [1, 2, 3, 1] {
            epochs.record(&channel, &epoch(number));
        }
        let has_followed =
            |earlier, later| epochs.has_followed(&channel, &epoch(earlier), &epoch(later));
        assert!(has_followed(1, 2) && has_followed(1, 3) && has_followed(2, 3));
        assert!(
            !has_followed(2, 1) && !has_followed(1, 1),
            "two masters at once"
        );
        assert!(!has_followed(0, 1) && !has_followed(1, 9), "unknown epochs");
        epochs.close(&channel);
        assert!(!has_followed(1, 2));
    }

    #[test]
    fn a_limited_number_of_epochs_is_remembered() {
        let (epochs, channel) = (Epochs::default(), ChannelName::new("a").unwrap());
        epochs.open(&channel);
        for number in 0..=EPOCHS_MAX {
            epochs.record(&channel, &epoch(number));
        }
        assert!(!epochs.has_followed(&channel, &epoch(0), &epoch(1)));
        assert!(epochs.has_followed(&channel, &epoch(1), &epoch(EPOCHS_MAX)));
        assert_eq!(epochs.newest(&channel), Some(epoch(EPOCHS_MAX)));
    }
}
