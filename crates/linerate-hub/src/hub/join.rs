//! The transition of a subscription from known history to live publications.

use std::time::Instant;

use crate::{
    Gap, GapCause, Publication, Start, StreamPosition, SubscriptionId, Transmit,
    hub::{
        Hub,
        block::Block,
        conflate::{self, Span},
        ring::{Ring, weight},
        stream::Stream,
        subscription::{Skip, State},
    },
};

/// Where the live publications continue after a known position.
struct Seam {
    /// The number in the ring of the first publication after the position, or of the next one to
    /// arrive.
    ring_number: u64,
    /// True if there is such a publication.
    is_found: bool,
    gap: Option<Gap>,
}

impl<B: Clone> Hub<B> {
    /// Adds history, oldest first, to be delivered before the live publications. The scope, the
    /// filter and the conflation of the subscription apply to it.
    ///
    /// Call this before [`activate`](Self::activate), which takes the position of the last of these
    /// publications.
    pub fn replay(
        &mut self,
        subscription: SubscriptionId,
        history: impl IntoIterator<Item = Publication>,
    ) {
        let Some(index) = self.subscriptions.find(subscription.0) else {
            return;
        };
        let subscription = &mut self.subscriptions[index];
        let Some(arrival) = &mut subscription.arrival else {
            return;
        };
        let group = &self.groups[subscription.group];
        let class = &self.streams[group.channel].classes[group.class];
        let seen = history.into_iter().filter(|found| class.sees(found));
        arrival.replay.extend(seen);
        if let Some(conflate) = &group.kind.conflate {
            let count = arrival.replay.len() as u64;
            let span = Span {
                from: 0,
                limit: count,
                bytes_max: usize::MAX,
            };
            let selection = conflate::select((0..).zip(&arrival.replay), span, conflate);
            arrival.conflated += count - selection.publications.len() as u64;
            arrival.replay = selection.publications.into();
        }
    }

    /// Starts the delivery of publications that arrived after the subscription was made, except for
    /// those already known. No publication between history and live delivery is missing or
    /// delivered twice.
    pub fn activate(&mut self, now: Instant, subscription: SubscriptionId, start: Start) {
        let Some(index) = self.subscriptions.find(subscription.0) else {
            return;
        };
        let subscription = &mut self.subscriptions[index];
        if subscription.state != State::Joining {
            return;
        }
        subscription.state = State::Live;
        // The client is not to blame for publications that the ring lost before activation.
        let group = &mut self.groups[subscription.group];
        let class = &self.streams[group.channel].classes[group.class];
        let late_before = group.late_before(class);
        let missed = late_before.saturating_sub(subscription.cursor);
        subscription.cursor = subscription.cursor.max(late_before);
        group.slowest = group.slowest.min(subscription.cursor);
        if let Some(arrival) = &mut subscription.arrival {
            arrival.start(start, missed);
        }
        let client = subscription.client;
        self.clients[client].enqueue(index, &mut self.subscriptions);
        self.wake(client);
        self.dirty_since.get_or_insert(now);
    }

    /// Returns the next item that precedes the live publications.
    pub(super) fn step_arrival(&mut self, now: Instant, index: u32) -> Option<Transmit<B>> {
        if let Some(block) = self.replay_block(now, index) {
            self.totals.conflated += block.conflated;
            return Some(self.give(now, index, block));
        }
        let arrival = self.subscriptions[index].arrival.as_mut()?;
        let gap = arrival.gap.take().or_else(|| self.settle(index))?;
        Some(self.tell(index, gap))
    }

    fn replay_block(&mut self, now: Instant, index: u32) -> Option<Block<B>> {
        let subscription = &mut self.subscriptions[index];
        let arrival = subscription.arrival.as_mut()?;
        let group = &self.groups[subscription.group];
        let mut bytes = 0;
        let fits = |publication: &&Publication| {
            let is_first = bytes == 0;
            bytes += weight(publication).max(1);
            is_first || bytes <= group.kind.batch_bytes_max
        };
        let count = arrival.replay.iter().take_while(fits).count();
        if count == 0 || subscription.state != State::Live {
            return None;
        }
        let publications: Vec<Publication> = arrival.replay.drain(..count).collect();
        let conflated = std::mem::take(&mut arrival.conflated);
        let channel = (group.channel, &self.streams[group.channel].name);
        let encoding = group.kind.encoding;
        let encoded = self
            .freezer
            .encode(channel, encoding, &publications, conflated);
        Some(Block {
            from: 0,
            to: 0,
            encoded,
            published: now,
            messages: count as u32,
            conflated,
        })
    }

    /// Skips the publications that are already known; returns a gap if some are missing.
    fn settle(&mut self, index: u32) -> Option<Gap> {
        let subscription = &mut self.subscriptions[index];
        let arrival = subscription.arrival.as_mut()?;
        let skip = arrival.skip.as_mut()?;
        let group = &self.groups[subscription.group];
        let stream = &self.streams[group.channel];
        let class = &stream.classes[group.class];
        let has_lost = class.base() > subscription.cursor;
        let seam = skip.seam(stream, has_lost);
        skip.ring_number = seam.ring_number;
        let is_covered = |ring_at, cause| {
            let is_of_stream = matches!(cause, GapCause::EpochChanged | GapCause::OffsetHole);
            ring_at <= seam.ring_number && (seam.is_found || is_of_stream)
        };
        while let Some(mark) = class.marks.at(subscription.marks_seen) {
            if !is_covered(mark.ring_at, mark.gap.cause) {
                break;
            }
            subscription.marks_seen += 1;
        }
        let cursor = class.number_from(seam.ring_number);
        subscription.cursor = subscription.cursor.max(cursor);
        if seam.is_found {
            arrival.skip = None;
        }
        if arrival.is_over() {
            subscription.arrival = None;
        }
        seam.gap
    }
}

impl Skip {
    /// Finds the first publication after the position. `has_lost` is true if the ring has lost
    /// matching publications that were not checked.
    fn seam(&self, stream: &Stream, has_lost: bool) -> Seam {
        let (ring, newest) = (&stream.ring, stream.position.as_ref());
        let known = &self.position;
        let is_current = newest.is_some_and(|newest| newest.epoch == known.epoch);
        let mut ring_number = self.ring_number.max(ring.base());
        while let Some(publication) = ring.at(ring_number) {
            let gap = match publication.position() {
                None => self.evicted(None, ring),
                Some(at) if at.epoch != known.epoch && !is_current => Some(Gap {
                    missed: None,
                    cause: GapCause::EpochChanged,
                }),
                Some(at) if at.epoch != known.epoch || at.offset <= known.offset => {
                    ring_number += 1;
                    continue;
                }
                Some(at) if has_lost => self.hole(at.offset, GapCause::RingEvicted),
                Some(at) => self.hole(self.first_behind(at.offset, stream), GapCause::OffsetHole),
            };
            return Seam {
                ring_number,
                is_found: true,
                gap,
            };
        }
        Seam {
            ring_number,
            is_found: false,
            gap: None,
        }
    }

    /// Returns the offset at which the stream continues after the position, as far as it was seen
    /// live. No publication between that offset and `offset` matches, and holes between them are
    /// marked.
    fn first_behind(&self, offset: u64, stream: &Stream) -> u64 {
        if self.ring_number >= stream.ring.base() {
            return offset;
        }
        let known = &self.position;
        let is_same = |position: &&StreamPosition| position.epoch == known.epoch;
        let after = self.joined_after.as_ref().filter(is_same);
        let after = after.map(|position| position.offset + 1);
        let first = stream.first.as_ref().filter(is_same);
        let first = after.or(first.map(|position| position.offset));
        first.map_or(offset, |first| first.clamp(known.offset + 1, offset))
    }

    fn hole(&self, offset: u64, cause: GapCause) -> Option<Gap> {
        let missed = Some(offset - self.position.offset - 1).filter(|missed| *missed > 0);
        missed.map(|_| Gap { missed, cause })
    }

    /// Returns a gap if the ring has lost publications that were not checked.
    fn evicted(&self, missed: Option<u64>, ring: &Ring) -> Option<Gap> {
        let cause = GapCause::RingEvicted;
        (self.ring_number < ring.base()).then_some(Gap { missed, cause })
    }
}
