//! The history of the link to the broker: its latest changes and gaps, for troubleshooting.

use std::{
    collections::VecDeque,
    time::{Duration, Instant, SystemTime},
};

use linerate_broker::{Gap, GapReason, LinkState};

use parking_lot::Mutex;

use crate::clock::now;

/// The maximum number of entries.
const ENTRIES_MAX: usize = 256;

/// The latest changes of the link to the broker.
#[derive(Debug, Default)]
pub(crate) struct Timeline(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    link: Option<LinkState>,
    /// Since when the link has been in its current state.
    since: Option<Instant>,
    gaps: u64,
    gap_time: Duration,
}

/// A change of the link.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// When the change was noticed.
    pub at: SystemTime,
    /// What changed.
    pub change: Change,
}

/// A kind of change of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub(crate) enum Change {
    /// Nothing arrives from the broker any more.
    Deaf,
    /// Publications may have been missed.
    Gap {
        /// The reason.
        reason: GapReason,
        /// The maximum duration of the gap.
        lasted: Duration,
        /// The number of affected channels; `None` for all.
        channels: Option<usize>,
    },
    /// Publications arrive from the broker.
    Up,
}

impl Timeline {
    /// Returns the stored changes, oldest first.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.0.lock().entries.iter().cloned().collect()
    }

    /// Returns the number of gaps and their total duration.
    pub(crate) fn gaps(&self) -> (u64, Duration) {
        let inner = self.0.lock();
        (inner.gaps, inner.gap_time)
    }

    /// Records the state of the link, with an entry if it has changed. In that case, returns how
    /// long the previous state lasted, if there was one.
    pub(crate) fn record_link(&self, state: LinkState) -> Option<Duration> {
        let mut inner = self.0.lock();
        let is_up = |state: LinkState| matches!(state, LinkState::Up { .. });
        let was_up = inner.link.replace(state).map(is_up);
        if was_up == Some(is_up(state)) {
            return None;
        }
        inner.push(match is_up(state) {
            true => Change::Up,
            false => Change::Deaf,
        });
        let now = now();
        let before = inner.since.replace(now);
        Some(now - before?)
    }

    /// Records a gap.
    pub(crate) fn record_gap(&self, gap: &Gap) {
        let mut inner = self.0.lock();
        inner.gaps += 1;
        inner.gap_time += gap.lasted;
        inner.push(Change::Gap {
            reason: gap.reason,
            lasted: gap.lasted,
            channels: gap.channels.as_ref().map(Vec::len),
        });
    }
}

impl Inner {
    fn push(&mut self, change: Change) {
        if self.entries.len() == ENTRIES_MAX {
            self.entries.pop_front();
        }
        let at = SystemTime::now();
        self.entries.push_back(Entry { at, change });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use linerate_broker::{Gap, GapReason, LinkState};

    use super::{Change, ENTRIES_MAX, Timeline};

    const UP: LinkState = LinkState::Up {
        round_trip: Duration::from_millis(1),
    };

    fn gap() -> Gap {
        Gap {
            channels: None,
            lasted: Duration::from_secs(2),
            reason: GapReason::LinkLost,
        }
    }

    #[test]
    fn only_changes_of_the_link_are_remembered() {
        let timeline = Timeline::default();
        let states = [UP, UP, LinkState::Deaf, LinkState::Deaf, UP];
        let ended = states.map(|state| timeline.record_link(state).is_some());
        assert_eq!(ended, [false, false, true, false, true]);
        let changes: Vec<_> = timeline.entries().into_iter().map(|e| e.change).collect();
        assert_eq!(changes, [Change::Up, Change::Deaf, Change::Up]);
    }

    #[test]
    fn the_oldest_changes_are_forgotten() {
        let timeline = Timeline::default();
        for _ in 0..=ENTRIES_MAX {
            timeline.record_gap(&gap());
        }
        assert_eq!(timeline.entries().len(), ENTRIES_MAX);
        let gaps = ENTRIES_MAX as u64 + 1;
        assert_eq!(timeline.gaps(), (gaps, Duration::from_secs(2 * gaps)));
    }
}
