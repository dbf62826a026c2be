//! The state of one subscription.

use std::collections::VecDeque;

use crate::{Gap, GapCause, Publication, StreamPosition};

/// One client's subscription to one channel.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: u32,
    pub(crate) group: u32,
    /// Its index among the members of its group.
    pub(crate) place: u32,
    /// The number in its class of the next publication for it.
    pub(crate) cursor: u64,
    /// The number of the next gap for it.
    pub(crate) marks_seen: u64,
    pub(crate) state: State,
    pub(crate) is_positioned: bool,
    /// True if what it received last is the publication before its cursor.
    pub(crate) has_previous: bool,
    /// True if it is in its client's queue; `next` is the subscription after it there.
    pub(crate) is_queued: bool,
    pub(crate) next: Option<u32>,
    /// State that is needed only until the subscription has caught up with the live publications.
    pub(crate) arrival: Option<Box<Arrival>>,
}

impl Subscription {
    /// Skips the publications before `number`.
    pub(crate) fn skip_to(&mut self, number: u64) {
        if number > self.cursor {
            self.cursor = number;
            self.has_previous = false;
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// Publications are collected for it, but not delivered yet.
    Joining,
    Live,
    /// Nothing more is delivered, after a gap in a positioned subscription or after a publication
    /// that cannot be encoded.
    Ended,
}

/// The point at which the live part of a subscription begins.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Start {
    /// After this position, which the subscriber knows from elsewhere, such as from the history
    /// that it was sent.
    After(StreamPosition),
    /// With the first publication after [`Hub::subscribe`](crate::Hub::subscribe).
    Live,
}

/// What is delivered before the live publications of a subscription, and what is skipped.
///
/// Subscribers of a channel in which nothing is published keep it, so it is small.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The number in the ring of the first publication after the subscription began, or of the next
    /// one to check.
    pub(crate) ring_number: u64,
    /// The newest position that was seen live before the subscription began.
    pub(crate) joined_after: Option<StreamPosition>,
    /// The position that the subscriber already knows. Live publications up to it are skipped.
    pub(crate) known: Option<StreamPosition>,
    pub(crate) backlog: Option<Box<Backlog>>,
}

/// What a subscription gets before anything else.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// History that is still to be delivered.
    pub(crate) replay: VecDeque<Publication>,
    /// How many publications of the history were left out because newer ones replaced them.
    pub(crate) conflated: u64,
    /// A gap that is to be reported after the history.
    pub(crate) gap: Option<Gap>,
}

impl Arrival {
    pub(crate) fn new(ring_number: u64, joined_after: Option<StreamPosition>) -> Self {
        Self {
            ring_number,
            joined_after,
            known: None,
            backlog: None,
        }
    }

    /// Sets the start of the subscription. `missed` is the number of publications that the ring has
    /// lost since the subscription was made.
    pub(crate) fn start(&mut self, start: Start, missed: u64) {
        match start {
            Start::After(position) => self.known = Some(position),
            Start::Live if missed > 0 => {
                self.backlog.get_or_insert_default().gap = Some(Gap {
                    missed: Some(missed),
                    cause: GapCause::RingEvicted,
                });
            }
            Start::Live => {}
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        let backlog = self.backlog.as_ref();
        let is_delivered = |backlog: &Backlog| backlog.replay.is_empty() && backlog.gap.is_none();
        self.known.is_none() && backlog.is_none_or(|backlog| is_delivered(backlog))
    }
}

#[cfg(test)]
mod tests {
    use super::{Arrival, Subscription};

    #[test]
    fn a_subscriber_who_waits_for_the_first_publication_needs_little_memory() {
        assert_eq!(size_of::<Subscription>(), 48);
        assert_eq!(size_of::<Arrival>(), 64);
    }
}
