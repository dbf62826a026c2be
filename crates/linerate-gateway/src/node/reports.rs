//! Logs the state of the link to the broker: each change once.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use linerate_broker::{Gap, LinkState};

use parking_lot::Mutex;

use crate::clock::now;

/// How long further gaps are only counted after one was logged, because brokers may report one for
/// each channel.
const PAUSE: Duration = Duration::from_secs(1);

/// What has been logged about the link to the broker.
#[derive(Debug, Default)]
pub(super) struct Reports {
    broker: OnceLock<&'static str>,
    unlogged: Mutex<UnloggedGaps>,
}

/// What has not been logged since the last logged gap.
#[derive(Debug, Default)]
struct UnloggedGaps {
    since: Option<Instant>,
    gaps: usize,
}

impl Reports {
    pub(super) fn name_broker(&self, name: &'static str) {
        // A node has one broker, so the name is set only once.
        _ = self.broker.set(name);
    }

    /// Logs that nothing arrives any more, or that publications arrive again. `lasted` is how long
    /// the previous state lasted, if the state has changed.
    pub(super) fn link(&self, state: LinkState, lasted: Option<Duration>, channels: usize) {
        let (Some(lasted), broker) = (lasted, self.broker()) else {
            return;
        };
        match state {
            LinkState::Deaf => {
                tracing::warn!(broker, channels, "nothing arrives from the broker");
            }
            LinkState::Up { round_trip } => {
                tracing::info!(
                    broker,
                    channels,
                    ?lasted,
                    ?round_trip,
                    "receiving from the broker again"
                );
            }
        }
    }

    /// Logs that publications may have been missed: once for all gaps reported together, and
    /// rate-limited.
    pub(super) fn gaps(&self, gaps: &[Gap]) {
        let Some(gap) = gaps.first() else { return };
        let Some(unlogged) = self.next(now(), gaps.len()) else {
            return;
        };
        let is_all = gaps.iter().any(|gap| gap.channels.is_none());
        let named = gaps.iter().filter_map(|gap| gap.channels.as_ref());
        let channels = match is_all {
            true => "all".to_owned(),
            false => named.map(Vec::len).sum::<usize>().to_string(),
        };
        let (broker, reason, lasted) = (self.broker(), gap.reason, gap.lasted);
        tracing::warn!(
            broker,
            ?reason,
            ?lasted,
            channels,
            unlogged,
            "publications may have been missed; subscribers are told"
        );
    }

    /// Returns how many gaps have not been logged since the last logged one; `None` if these should
    /// not be logged either.
    fn next(&self, now: Instant, gaps: usize) -> Option<usize> {
        let mut unlogged = self.unlogged.lock();
        let is_early = |since: Instant| now.saturating_duration_since(since) < PAUSE;
        if unlogged.since.is_some_and(is_early) {
            unlogged.gaps += gaps;
            return None;
        }
        unlogged.since = Some(now);
        Some(std::mem::take(&mut unlogged.gaps))
    }

    fn broker(&self) -> &'static str {
        self.broker.get().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_that_follow_each_other_are_counted_until_the_next_is_logged() {
        let (reports, now) = (Reports::default(), Instant::now());
        assert_eq!(reports.next(now, 3), Some(0));
        assert_eq!(reports.next(now + PAUSE / 2, 2), None);
        assert_eq!(reports.next(now + PAUSE / 2, 5), None);
        assert_eq!(reports.next(now + PAUSE, 1), Some(7));
        assert_eq!(reports.next(now + 2 * PAUSE, 1), Some(0));
    }
}
