//! Where one subscriber is.

use std::collections::VecDeque;

use crate::{Gap, GapCause, Publication, Start, StreamPosition};

/// One client's subscription to one channel.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: u32,
    pub(crate) group: u32,
    /// Where it stands among the members of its group.
    pub(crate) place: u32,
    /// The number in its class of the next publication for it.
    pub(crate) cursor: u64,
    /// The number of the next gap for it.
    pub(crate) marks_seen: u64,
    pub(crate) state: State,
    pub(crate) is_positioned: bool,
    /// Whether it is in its client's queue, and what follows it there.
    pub(crate) is_queued: bool,
    pub(crate) next: Option<u32>,
    /// What only those have that have just come.
    pub(crate) arrival: Option<Box<Arrival>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// Publications wait for it, and are not given out yet.
    Joining,
    Live,
    /// Nothing follows a gap, where the stream must not be broken, or what can't be encoded.
    Ended,
}

/// What comes before the live publications of a subscription.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The number in the ring of the first publication after the subscription began.
    pub(crate) joined: u64,
    /// The newest position that had been seen live by then.
    pub(crate) joined_after: Option<StreamPosition>,
    /// History to be delivered.
    pub(crate) replay: VecDeque<Publication>,
    /// How many publications newer ones have replaced there.
    pub(crate) conflated: u64,
    /// What is known already.
    pub(crate) skip: Option<Skip>,
    /// What is to be told to be missing.
    pub(crate) gap: Option<Gap>,
}

/// Publications up to a position are known already.
#[derive(Debug)]
pub(crate) struct Skip {
    pub(crate) position: StreamPosition,
    /// The number in the ring of the next publication to be looked at.
    pub(crate) ring_number: u64,
    /// The newest position that had been seen live before the subscription was made.
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

    /// Begins, given how many publications the ring has lost since the subscription was made.
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
