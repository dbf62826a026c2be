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
    /// True if it is in its client's queue; `next` is the subscription after it there.
    pub(crate) is_queued: bool,
    pub(crate) next: Option<u32>,
    /// State that is needed only until the subscription has caught up with the live publications.
    pub(crate) arrival: Option<Box<Arrival>>,
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
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The number in the ring of the first publication after the subscription began.
    pub(crate) joined: u64,
    /// The newest position that was seen live before the subscription began.
    pub(crate) joined_after: Option<StreamPosition>,
    /// History that is still to be delivered.
    pub(crate) replay: VecDeque<Publication>,
    /// How many publications of the history were left out because newer ones replaced them.
    pub(crate) conflated: u64,
    /// The live publications to skip because the subscriber already knows them.
    pub(crate) skip: Option<Skip>,
    /// A gap that is to be reported.
    pub(crate) gap: Option<Gap>,
}

/// Skips publications up to a position, which the subscriber already knows.
#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) position: StreamPosition,
    /// The number in the ring of the next publication to check.
    pub(crate) ring_number: u64,
    /// The newest position that was seen live before the subscription began.
    pub(crate) joined_after: Option<StreamPosition>,
}

impl Arrival {
    pub(crate) fn new(joined: u64, joined_after: Option<StreamPosition>) -> Self {
        Self {
            joined,
            joined_after,
            replay: VecDeque::new(),
            conflated: 0,
            skip: None,
            gap: None,
        }
    }

    /// Sets the start of the subscription. `missed` is the number of publications that the ring has
    /// lost since the subscription was made.
    pub(crate) fn start(&mut self, start: Start, missed: u64) {
        match start {
            Start::After(position) => {
                self.skip = Some(Skip {
                    position,
                    ring_number: self.joined,
                    joined_after: self.joined_after.take(),
                });
            }
            Start::Live if missed > 0 => {
                self.gap = Some(Gap {
                    missed: Some(missed),
                    cause: GapCause::RingEvicted,
                });
            }
            Start::Live => {}
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.replay.is_empty() && self.skip.is_none() && self.gap.is_none()
    }
}
