//! The output of a subscription before its live publications.

use std::time::Instant;

use super::{Delivery, Source};
use crate::{
    Batch, Gap, GapCause, Publication, StreamPosition, Transmit,
    hub::{
        block::Block,
        ring::{Ring, weight},
        stream::Stream,
        subscription::{Arrival, State},
    },
};

/// Where the live publications continue after a known position.
struct LiveStart {
    /// The number in the ring of the first publication after the position, or of the next one to
    /// arrive.
    ring_number: u64,
    /// True if there is such a publication.
    is_found: bool,
    gap: Option<Gap>,
}

impl<B: Clone> Delivery<B> {
    /// Returns the next item that precedes the live publications.
    pub(super) fn step_arrival(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
    ) -> Option<Transmit<B>> {
        if let Some(block) = self.replay_block(source, now, index) {
            self.totals.conflated += block.conflated;
            return Some(self.give(source, now, index, block));
        }
        let arrival = source.members.subscriptions[index].arrival.as_mut()?;
        let gap = arrival
            .backlog
            .as_mut()
            .and_then(|backlog| backlog.gap.take());
        arrival.backlog.take_if(|backlog| backlog.replay.is_empty());
        let gap = gap.or_else(|| self.settle(source, index))?;
        Some(self.tell(source, index, gap))
    }

    fn replay_block(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
    ) -> Option<Block<B>> {
        let subscription = &mut source.members.subscriptions[index];
        let backlog = subscription.arrival.as_mut()?.backlog.as_mut()?;
        let group = &source.channels.groups[subscription.group];
        let mut bytes = 0;
        let fits = |publication: &&Publication| {
            let is_first = bytes == 0;
            bytes += weight(publication).max(1);
            is_first || bytes <= group.kind.batch_bytes_max
        };
        let count = backlog.replay.iter().take_while(fits).count();
        if count == 0 || subscription.state != State::Live {
            return None;
        }
        let publications: Vec<Publication> = backlog.replay.drain(..count).collect();
        let conflated = std::mem::take(&mut backlog.conflated);
        let stream = &source.channels.streams[group.channel];
        let batch = Batch {
            conflated,
            ..group.kind.batch(stream, &publications, None)
        };
        let encoded = self.freezer.encode(group.kind.encoding, &batch, None);
        Some(Block {
            from: 0,
            to: 0,
            encoded,
            has_previous: false,
            has_last: false,
            published: now,
            messages: count as u32,
            conflated,
        })
    }

    /// Skips the publications that are already known; returns a gap if some are missing.
    fn settle(&mut self, source: &mut Source<'_, B>, index: u32) -> Option<Gap> {
        let subscription = &mut source.members.subscriptions[index];
        let arrival = subscription.arrival.as_mut()?;
        let known = arrival.known.as_ref()?;
        let group = &source.channels.groups[subscription.group];
        let stream = &source.channels.streams[group.channel];
        let class = &stream.classes[group.class];
        let has_lost = class.base() > subscription.cursor;
        let live_start = arrival.live_start(known, stream, has_lost);
        arrival.ring_number = live_start.ring_number;
        let is_covered = |ring_at, cause| {
            let is_of_stream = matches!(cause, GapCause::EpochChanged | GapCause::OffsetHole);
            ring_at <= live_start.ring_number && (live_start.is_found || is_of_stream)
        };
        while let Some(mark) = class.marks.at(subscription.marks_seen) {
            if !is_covered(mark.ring_at, mark.gap.cause) {
                break;
            }
            subscription.marks_seen += 1;
        }
        let cursor = class.number_from(live_start.ring_number);
        if live_start.is_found {
            arrival.known = None;
        }
        if arrival.is_over() {
            subscription.arrival = None;
        }
        subscription.skip_to(cursor);
        live_start.gap
    }
}

impl Arrival {
    /// Finds the first publication after the known position. `has_lost` is true if the ring has
    /// lost matching publications that were not checked.
    fn live_start(&self, known: &StreamPosition, stream: &Stream, has_lost: bool) -> LiveStart {
        let (ring, newest) = (&stream.ring, stream.position.as_ref());
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
                Some(at) if has_lost => hole(known, at.offset, GapCause::RingEvicted),
                Some(at) => {
                    let first = self.first_behind(known, at.offset, stream);
                    hole(known, first, GapCause::OffsetHole)
                }
            };
            return LiveStart {
                ring_number,
                is_found: true,
                gap,
            };
        }
        LiveStart {
            ring_number,
            is_found: false,
            gap: None,
        }
    }

    /// Returns the offset at which the stream continues after the position, as far as it was seen
    /// live. No publication between that offset and `offset` matches, and holes between them are
    /// marked.
    fn first_behind(&self, known: &StreamPosition, offset: u64, stream: &Stream) -> u64 {
        if self.ring_number >= stream.ring.base() {
            return offset;
        }
        let is_same = |position: &&StreamPosition| position.epoch == known.epoch;
        let after = self.joined_after.as_ref().filter(is_same);
        let after = after.map(|position| position.offset + 1);
        let first = stream.first.as_ref().filter(is_same);
        let first = after.or(first.map(|position| position.offset));
        first.map_or(offset, |first| first.clamp(known.offset + 1, offset))
    }

    /// Returns a gap if the ring has lost publications that were not checked.
    fn evicted(&self, missed: Option<u64>, ring: &Ring) -> Option<Gap> {
        let cause = GapCause::RingEvicted;
        (self.ring_number < ring.base()).then_some(Gap { missed, cause })
    }
}

/// Returns the gap between a known position and the offset at which the stream continues.
fn hole(known: &StreamPosition, offset: u64, cause: GapCause) -> Option<Gap> {
    let missed = Some(offset - known.offset - 1).filter(|missed| *missed > 0);
    missed.map(|_| Gap { missed, cause })
}
