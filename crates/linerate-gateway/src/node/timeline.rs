//! How the link to the broker was: the last changes and gaps, for people who look for a cause.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use linerate_broker::{Gap, GapReason, LinkState};

/// How many changes are remembered.
const ENTRIES_MAX: usize = 256;

/// The last changes of the link to the broker.
#[derive(Debug, Default)]
pub struct Timeline(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    entries: VecDeque<Entry>,
    link: Option<LinkState>,
    /// Since when it is up, or deaf.
    since: Option<Instant>,
    gaps: u64,
    gap_time: Duration,
}

/// A change of the link.
#[derive(Clone, Debug)]
pub struct Entry {
    /// When it was noticed.
    pub at: SystemTime,
    /// What changed.
    pub change: Change,
}

/// What may happen to the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Nothing arrives any more.
    Deaf,
    /// Publications may have been missed.
    Gap {
        /// Why.
        reason: GapReason,
        /// For how long at most.
        lasted: Duration,
        /// In how many channels; `None` for all.
        channels: Option<usize>,
    },
    /// Publications arrive.
    Up,
}

impl Timeline {
    /// Returns the changes remembered, the oldest first.
    pub fn entries(&self) -> Vec<Entry> {
        self.inner().entries.iter().cloned().collect()
    }

    /// Returns how the link is, as the broker said last.
    pub fn link(&self) -> Option<LinkState> {
        self.inner().link
    }

    /// Returns how many gaps there were, and how long they lasted together.
    pub fn gaps(&self) -> (u64, Duration) {
        let inner = self.inner();
        (inner.gaps, inner.gap_time)
    }

    /// Remembers the state of the link, as an entry if it is another than before. Returns how long it was as it was
    /// before, if that has changed.
    pub(crate) fn record_link(&self, state: LinkState) -> Option<Duration> {
        let mut inner = self.inner();
        let is_up = |state: LinkState| matches!(state, LinkState::Up { .. });
        let was_up = inner.link.replace(state).map(is_up);
        if was_up == Some(is_up(state)) {
            return None;
        }
        inner.push(match is_up(state) {
            true => Change::Up,
            false => Change::Deaf,
        });
        let before = inner.since.replace(Instant::now());
        Some(before?.elapsed())
    }

    /// Remembers a gap.
    pub(crate) fn record_gap(&self, gap: &Gap) {
        let mut inner = self.inner();
        inner.gaps += 1;
        inner.gap_time += gap.lasted;
        inner.push(Change::Gap {
            reason: gap.reason,
            lasted: gap.lasted,
            channels: gap.channels.as_ref().map(Vec::len),
        });
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        assert_eq!(timeline.link(), Some(UP));
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
