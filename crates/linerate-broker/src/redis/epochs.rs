//! Which epochs of durable channels this node has seen one after the other.
//!
//! A script begins an epoch by removing the stream of the one before. So whatever stands in the stream of an epoch was
//! published after the epoch had begun, and somebody who was still in an earlier one when it began has seen none of
//! it. That a node has seen one epoch before the other is what proves which of the two is the earlier.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
};

use foldhash::HashMap;
use linerate_hub::{ChannelName, Epoch};

/// How many epochs of a channel are remembered.
const EPOCHS_MAX: usize = 8;

/// The newest epochs of the durable channels that are subscribed, each list in the order in which they were seen.
#[derive(Debug, Default)]
pub(super) struct Epochs(Mutex<HashMap<ChannelName, VecDeque<Epoch>>>);

impl Epochs {
    /// Begins to remember the epochs of a channel.
    pub(super) fn open(&self, channel: &ChannelName) {
        self.channels().entry(channel.clone()).or_default();
    }

    /// Forgets the epochs of a channel.
    pub(super) fn close(&self, channel: &ChannelName) {
        self.channels().remove(channel);
    }

    /// Takes note that the channel's stream is of this epoch, if its epochs are remembered.
    pub(super) fn note(&self, channel: &ChannelName, epoch: &Epoch) {
        let mut channels = self.channels();
        let Some(seen) = channels.get_mut(channel) else {
            return;
        };
        // One that is seen again, as after two servers were masters at once, keeps its place: it proves nothing new.
        if seen.contains(epoch) {
            return;
        }
        if seen.len() == EPOCHS_MAX {
            seen.pop_front();
        }
        seen.push_back(epoch.clone());
    }

    /// Returns whether `later` began when `earlier` had been seen already.
    pub(super) fn has_followed(
        &self,
        channel: &ChannelName,
        earlier: &Epoch,
        later: &Epoch,
    ) -> bool {
        let channels = self.channels();
        let Some(seen) = channels.get(channel) else {
            return false;
        };
        let place = |epoch| seen.iter().position(|one| one == epoch);
        matches!((place(earlier), place(later)), (Some(earlier), Some(later)) if earlier < later)
    }

    /// Returns the newest epoch of a channel that was seen.
    pub(super) fn newest(&self, channel: &ChannelName) -> Option<Epoch> {
        self.channels().get(channel)?.back().cloned()
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<ChannelName, VecDeque<Epoch>>> {
        self.0.lock().unwrap_or_else(|error| error.into_inner())
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
    fn only_what_was_seen_later_has_followed() {
        let (epochs, channel) = (Epochs::default(), ChannelName::new("a").unwrap());
        epochs.note(&channel, &epoch(1));
        assert_eq!(epochs.newest(&channel), None, "it is not subscribed");
        epochs.open(&channel);
        for number in [1, 2, 3, 1] {
            epochs.note(&channel, &epoch(number));
        }
        let has_followed =
            |earlier, later| epochs.has_followed(&channel, &epoch(earlier), &epoch(later));
        assert!(has_followed(1, 2) && has_followed(1, 3) && has_followed(2, 3));
        assert!(
            !has_followed(2, 1) && !has_followed(1, 1),
            "two masters at once"
        );
        assert!(!has_followed(0, 1) && !has_followed(1, 9), "unknown ones");
        epochs.close(&channel);
        assert!(!has_followed(1, 2));
    }

    #[test]
    fn so_many_are_remembered() {
        let (epochs, channel) = (Epochs::default(), ChannelName::new("a").unwrap());
        epochs.open(&channel);
        for number in 0..=EPOCHS_MAX {
            epochs.note(&channel, &epoch(number));
        }
        assert!(!epochs.has_followed(&channel, &epoch(0), &epoch(1)));
        assert!(epochs.has_followed(&channel, &epoch(1), &epoch(EPOCHS_MAX)));
        assert_eq!(epochs.newest(&channel), Some(epoch(EPOCHS_MAX)));
    }
}
