//! What a worker has missed since it stopped reading its inbox.

use std::time::Instant;

use foldhash::fast::RandomState;
use hashbrown::HashSet;
use linerate_broker::{Gap, GapReason};
use linerate_hub::ChannelName;

use super::Arrival;

/// The maximum number of channels to remember. If there are more, the gap covers all channels.
const CHANNELS_MAX: usize = 1_024;

/// What was dropped: the channels, and the number of publications.
#[derive(Debug)]
pub(super) struct DroppedPublications {
    since: Instant,
    /// `None` for all channels.
    channels: Option<HashSet<ChannelName, RandomState>>,
    publications: u64,
}

impl DroppedPublications {
    pub(super) fn new(since: Instant) -> Self {
        Self {
            since,
            channels: Some(HashSet::default()),
            publications: 0,
        }
    }

    /// Records dropped arrivals. Returns the number of publications among them.
    pub(super) fn add(&mut self, arrivals: Vec<Arrival>) -> u64 {
        let before = self.publications;
        for arrival in arrivals {
            match arrival {
                Arrival::Barrier(_) => {}
                Arrival::Gap(Gap { channels, .. }) => self.add_channels(channels),
                Arrival::Publication(channel, ..) => {
                    self.publications += 1;
                    self.add_channels(Some(vec![channel]));
                }
            }
        }
        self.publications - before
    }

    /// Returns the gap to report to subscribers.
    pub(super) fn to_gap(&self, now: Instant) -> Gap {
        let channels = self.channels.as_ref();
        Gap {
            channels: channels.map(|channels| channels.iter().cloned().collect()),
            lasted: now.saturating_duration_since(self.since),
            reason: GapReason::Overflow,
        }
    }

    /// Returns the number of dropped publications.
    pub(super) fn publications(&self) -> u64 {
        self.publications
    }

    fn add_channels(&mut self, more: Option<Vec<ChannelName>>) {
        match (&mut self.channels, more) {
            (Some(channels), Some(more)) => channels.extend(more),
            (channels, _) => *channels = None,
        }
        let is_full = |channels: &mut HashSet<_, _>| channels.len() > CHANNELS_MAX;
        self.channels.take_if(is_full);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_hub::Publication;

    use super::*;

    fn publication(channel: &str) -> Arrival {
        let channel = ChannelName::new(channel).unwrap();
        Arrival::Publication(channel, Publication::new("1".into()), Instant::now())
    }

    #[test]
    fn the_channels_are_those_of_the_publications_and_of_gaps() {
        let start = Instant::now();
        let mut lost = DroppedPublications::new(start);
        lost.add(vec![publication("a"), publication("b"), publication("a")]);
        let gap = lost.to_gap(start + Duration::from_secs(3));
        let mut channels = gap.channels.unwrap();
        channels.sort();
        assert_eq!(
            channels,
            ["a", "b"].map(|name| ChannelName::new(name).unwrap())
        );
        assert_eq!(
            (gap.lasted, gap.reason),
            (Duration::from_secs(3), GapReason::Overflow)
        );
        assert_eq!(lost.publications(), 3);
        let of_all = Gap {
            channels: None,
            lasted: Duration::ZERO,
            reason: GapReason::LinkLost,
        };
        lost.add(vec![Arrival::Gap(of_all), publication("c")]);
        assert!(lost.to_gap(start).channels.is_none(), "all channels");
    }

    #[test]
    fn more_channels_than_are_remembered_are_all_channels() {
        let mut lost = DroppedPublications::new(Instant::now());
        for number in 0..=CHANNELS_MAX {
            assert!(lost.to_gap(Instant::now()).channels.is_some(), "{number}");
            lost.add(vec![publication(&number.to_string())]);
        }
        assert!(lost.to_gap(Instant::now()).channels.is_none());
    }
}
