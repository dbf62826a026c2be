//! Counters of the publications in channels. They continue when the last subscriber of a channel on
//! this node leaves and comes back.

use std::collections::VecDeque;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_hub::ChannelName;

/// Maximum number of channels; beyond it, those that were left first are forgotten.
const CHANNELS_MAX: usize = 1_024;

/// The publications that arrived in a channel while it had subscribers on this node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Traffic {
    /// The number of publications.
    pub publications: u64,
    /// The total size of their payloads in bytes.
    pub bytes: u64,
}

/// The counters of the channels that were left most recently.
#[derive(Debug, Default)]
pub(super) struct PastTraffic {
    /// With the number of the departure.
    channels: HashMap<ChannelName, (u64, Traffic), RandomState>,
    /// In the order in which they were left; also contains those that were taken again.
    departures: VecDeque<(u64, ChannelName)>,
    departed: u64,
}

impl PastTraffic {
    /// Keeps the counters of a channel.
    pub(super) fn keep(&mut self, channel: ChannelName, traffic: Traffic) {
        if traffic.publications == 0 {
            return;
        }
        self.departed += 1;
        self.channels
            .insert(channel.clone(), (self.departed, traffic));
        self.departures.push_back((self.departed, channel));
        if self.departures.len() > CHANNELS_MAX
            && let Some((number, channel)) = self.departures.pop_front()
            && self.channels.get(&channel).is_some_and(|it| it.0 == number)
        {
            self.channels.remove(&channel);
        }
    }

    /// Removes the counters of a channel, and returns them; zeros if they are unknown.
    pub(super) fn take(&mut self, channel: &ChannelName) -> Traffic {
        let kept = self.channels.remove(channel);
        kept.map_or_else(Traffic::default, |(_, traffic)| traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::{CHANNELS_MAX, ChannelName, PastTraffic, Traffic};

    fn channel(number: usize) -> ChannelName {
        ChannelName::new(&format!("c{number}")).unwrap()
    }

    fn traffic(publications: u64) -> Traffic {
        Traffic {
            publications,
            bytes: 0,
        }
    }

    #[test]
    fn counters_are_returned_once() {
        let mut past = PastTraffic::default();
        past.keep(channel(1), traffic(5));
        assert_eq!(past.take(&channel(1)).publications, 5);
        assert_eq!(past.take(&channel(1)).publications, 0);
    }

    #[test]
    fn the_channels_that_were_left_first_are_forgotten() {
        let mut past = PastTraffic::default();
        for number in 0..=CHANNELS_MAX {
            past.keep(channel(number), traffic(1));
        }
        assert_eq!(past.take(&channel(0)).publications, 0);
        assert_eq!(past.take(&channel(1)).publications, 1);
        assert_eq!(past.channels.len(), CHANNELS_MAX - 1);
        assert_eq!(past.departures.len(), CHANNELS_MAX);
    }

    #[test]
    fn a_channel_that_is_left_again_and_again_takes_one_place() {
        let mut past = PastTraffic::default();
        for count in 1..=3 * CHANNELS_MAX as u64 {
            past.keep(channel(1), traffic(count));
        }
        assert_eq!(past.channels.len(), 1);
        assert_eq!(past.departures.len(), CHANNELS_MAX);
        assert_eq!(past.take(&channel(1)).publications, 3_072);
    }
}
