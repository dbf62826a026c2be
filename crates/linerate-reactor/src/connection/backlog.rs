//! Output that waits for one socket: segments in order, with shared publications held by reference.

#[cfg(unix)]
mod portable;
mod segment;

use std::{collections::VecDeque, io::IoSlice, ops::Range, sync::Arc};

use bytes::Bytes;

use self::segment::{SHARED_BYTES_MIN, Segment};
use crate::{
    memory::{boxes::Boxes, pool::Pool},
    topics::burst::Burst,
    wheel::Tick,
};

/// Maximum number of segments that one system call writes.
pub(crate) const SLICES_MAX: usize = 64;

/// What each segment except the first counts in addition to its bytes: about the memory of the
/// smallest segment.
const SEGMENT_CHARGE: usize = 512;

/// The output that waits for one socket. An empty backlog is a null pointer.
#[derive(Debug, Default)]
pub(crate) struct Backlog(Option<Box<Queue>>);

/// The queues of a worker's backlogs: recycled memory, and the time that peers are given.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    free: Boxes<Queue>,
    /// When a connection is dropped if its peer accepts none of its backlog from now on.
    pub(crate) stall_due: Tick,
}

/// The segments of a backlog. [`Boxes`] recycles empty queues.
#[derive(Debug, Default)]
struct Queue {
    segments: VecDeque<Segment>,
    /// The total length of all segments in bytes.
    bytes: usize,
    /// The number of segments whose frames may be dropped.
    droppable: usize,
    /// When the connection is dropped if the peer accepts none of these bytes.
    stall_due: Tick,
}

impl Backlog {
    /// Adds a copy of `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool, queues: &mut Queues) {
        if bytes.is_empty() {
            return;
        }
        let queue = self.queue(queues);
        let last = queue.segments.back_mut();
        if last.is_some_and(|last| last.extend(bytes, false, pool)) {
            queue.bytes += bytes.len();
        } else {
            queue.push(Segment::copy(bytes, pool));
        }
    }

    /// Adds `bytes` without the first `done` bytes, taking over the memory. `done` must be less
    /// than the length.
    pub(crate) fn append_owned(&mut self, bytes: Vec<u8>, done: usize, queues: &mut Queues) {
        self.queue(queues).push(Segment::owned(bytes, done));
    }

    /// Puts `bytes` without the first `done` bytes before everything else.
    pub(crate) fn prepend(
        &mut self,
        bytes: Vec<u8>,
        done: usize,
        pool: &mut Pool,
        queues: &mut Queues,
    ) {
        if done == bytes.len() {
            return pool.give(bytes);
        }
        let queue = self.queue(queues);
        queue.bytes += bytes.len() - done;
        queue.segments.push_front(Segment::owned(bytes, done));
    }

    /// Adds the frames of a burst without the first `done` bytes, which have been written. The
    /// frames are added by reference if that pays and does not keep a large block of memory for a
    /// small part of it, and copied otherwise. They may be dropped later if they are `droppable`.
    pub(crate) fn append_shared(
        &mut self,
        burst: &Arc<Burst>,
        frames: Range<usize>,
        done: usize,
        droppable: bool,
        pool: &mut Pool,
        queues: &mut Queues,
    ) {
        if done == frames.len() {
            return;
        }
        let queue = self.queue(queues);
        if done == 0
            && frames.len() < SHARED_BYTES_MIN
            && let Some(last) = queue.segments.back_mut()
            && last.extend(burst.slice(frames.clone()), droppable, pool)
        {
            queue.bytes += frames.len();
            return;
        }
        queue.push(Segment::of_burst(burst, frames, done, droppable, pool));
    }

    /// Adds shared bytes without the first `done` ones, which have been written. Adds them by
    /// reference if that pays and does not keep a large block of memory for a small part of it, and
    /// copied otherwise. They are whole frames or, as a unit, count as one frame. They may be
    /// dropped later.
    pub(crate) fn append_bytes(
        &mut self,
        bytes: &Bytes,
        done: usize,
        is_unit: bool,
        pool: &mut Pool,
        queues: &mut Queues,
    ) {
        if done < bytes.len() {
            let segment = Segment::of_bytes(bytes, done, is_unit, pool);
            self.queue(queues).push(segment);
        }
    }

    /// Drops all [shared frames](Self::append_bytes) of which nothing has been written.
    pub(crate) fn drop_frames(&mut self, pool: &mut Pool, queues: &mut Queues) {
        let Some(queue) = &mut self.0 else {
            return;
        };
        let mut kept = VecDeque::new();
        for mut segment in queue.segments.drain(..) {
            let dropped = segment.drop_frames(usize::MAX, false, pool);
            queue.bytes -= dropped.bytes;
            kept.extend(dropped.begun);
            if segment.len() > 0 {
                kept.push_back(segment);
            } else {
                queue.droppable -= usize::from(segment.is_droppable());
                segment.free(pool);
            }
        }
        queue.segments = kept;
        if queue.segments.is_empty() {
            self.clear(pool, queues);
        }
    }

    /// Drops the oldest droppable frames until the [charge](Self::charge) is less than `bytes_max`,
    /// but never the newest frame or one that has been written in part; returns how many it
    /// dropped.
    pub(crate) fn drop_oldest(&mut self, bytes_max: usize, pool: &mut Pool) -> u64 {
        let Some(queue) = &mut self.0 else {
            return 0;
        };
        let (mut at, mut frames) = (0, 0);
        let mut left = queue.droppable;
        while left > 0 && queue.charge() >= bytes_max {
            let excess = queue.charge() - bytes_max + 1;
            let segment = &mut queue.segments[at];
            left -= usize::from(segment.is_droppable());
            let dropped = segment.drop_frames(excess, left == 0, pool);
            queue.bytes -= dropped.bytes;
            frames += dropped.frames;
            let is_empty = segment.len() == 0;
            if let Some(begun) = dropped.begun {
                queue.segments.insert(at, begun);
                at += 1;
            }
            if is_empty && let Some(segment) = queue.segments.remove(at) {
                queue.droppable -= 1;
                segment.free(pool);
            } else {
                at += 1;
            }
        }
        frames
    }

    /// Fills `places` with the first segments; returns how many it filled.
    pub(crate) fn slices<'a>(&'a self, places: &mut [IoSlice<'a>]) -> usize {
        let segments = self.0.iter().flat_map(|queue| &queue.segments);
        let mut count = 0;
        for (place, segment) in places.iter_mut().zip(segments) {
            *place = IoSlice::new(segment.as_bytes());
            count += 1;
        }
        count
    }

    /// Removes the first `bytes` bytes, which the peer has accepted, and gives memory that is
    /// no longer needed to the pool.
    pub(crate) fn skip(&mut self, mut bytes: usize, pool: &mut Pool, queues: &mut Queues) {
        let Some(queue) = &mut self.0 else {
            return;
        };
        if bytes > 0 {
            queue.stall_due = queues.stall_due;
        }
        queue.bytes -= bytes;
        while let Some(segment) = queue.segments.front_mut() {
            if bytes < segment.len() {
                segment.skip(bytes, pool);
                break;
            }
            bytes -= segment.len();
            if let Some(segment) = queue.segments.pop_front() {
                queue.droppable -= usize::from(segment.is_droppable());
                segment.free(pool);
            }
        }
        if queue.segments.is_empty() {
            self.clear(pool, queues);
        }
    }

    /// Removes everything and gives the memory to the pool.
    pub(crate) fn clear(&mut self, pool: &mut Pool, queues: &mut Queues) {
        if let Some(mut queue) = self.0.take() {
            (queue.bytes, queue.droppable) = (0, 0);
            queue
                .segments
                .drain(..)
                .for_each(|segment| segment.free(pool));
            queue.shrink();
            queues.free.give(queue);
        }
    }

    /// Returns how many bytes are waiting.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.bytes)
    }

    /// Returns the memory that the backlog does not share with others, in bytes.
    pub(crate) fn owned_bytes(&self) -> usize {
        let segments = self.0.iter().flat_map(|queue| &queue.segments);
        segments.map(Segment::owned_bytes).sum()
    }

    /// Returns what counts against the limit: the waiting bytes plus a surcharge for each segment,
    /// so that many small segments cannot occupy a multiple of their bytes.
    pub(crate) fn charge(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.charge())
    }

    /// Returns when the connection is dropped if the peer accepts nothing before; `None` if nothing
    /// waits.
    pub(crate) fn stall_due(&self) -> Option<Tick> {
        self.0.as_ref().map(|queue| queue.stall_due)
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn queue(&mut self, queues: &mut Queues) -> &mut Queue {
        self.0.get_or_insert_with(|| {
            let mut queue = queues.free.take();
            queue.stall_due = queues.stall_due;
            queue
        })
    }
}

impl Queue {
    fn charge(&self) -> usize {
        self.bytes + self.segments.len().saturating_sub(1) * SEGMENT_CHARGE
    }

    fn push(&mut self, segment: Segment) {
        self.bytes += segment.len();
        self.droppable += usize::from(segment.is_droppable());
        self.segments.push_back(segment);
    }

    /// Limits the memory that the queue keeps while it is empty.
    fn shrink(&mut self) {
        self.segments.shrink_to(SLICES_MAX);
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::{Header, engine::MessageKind};
    use linerate_testkit::Rng;

    use super::*;

    /// Returns a burst of one message and the range of its frame.
    fn burst(payload: &[u8]) -> (Arc<Burst>, Range<usize>) {
        let mut burst = Burst::default();
        burst.push("t", MessageKind::Binary, payload);
        let range = burst.iter().next().unwrap().frames;
        (Arc::new(burst), range)
    }

    fn content(backlog: &Backlog) -> Vec<u8> {
        let mut places = [IoSlice::new(&[]); SLICES_MAX];
        let count = backlog.slices(&mut places);
        places[..count]
            .iter()
            .flat_map(|slice| slice.to_vec())
            .collect()
    }

    #[test]
    fn a_backlog_costs_a_pointer() {
        assert_eq!(size_of::<Backlog>(), size_of::<usize>());
    }

    #[test]
    fn a_backlog_keeps_order_over_all_ways_to_append() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let mut rng = Rng::new(4);
        let mut backlog = Backlog::default();
        let mut expected = VecDeque::new();
        for round in 0..3_000_u32 {
            let bytes = [0, 1, 300, 5_000, 70_000][rng.below(5)];
            let payload = vec![round as u8; bytes];
            match rng.below(9) {
                0 => {
                    backlog.append(&payload, &mut pool, &mut queues);
                    expected.extend(payload);
                }
                1 => {
                    let (bytes, done) = (bytes + 1, bytes.min(7));
                    let payload = vec![round as u8; bytes];
                    expected.extend(&payload[done..]);
                    backlog.append_owned(payload, done, &mut queues);
                }
                2 => {
                    let (burst, range) = burst(&payload);
                    let done = rng.below(3);
                    let rest = range.start + done..range.end;
                    expected.extend(burst.slice(rest));
                    backlog.append_shared(
                        &burst,
                        range,
                        done,
                        bytes % 2 == 0,
                        &mut pool,
                        &mut queues,
                    );
                }
                3 => {
                    let done = bytes.min(7);
                    for byte in payload[done..].iter().rev() {
                        expected.push_front(*byte);
                    }
                    backlog.prepend(payload, done, &mut pool, &mut queues);
                }
                _ => {
                    let bytes = rng.below(backlog.len().min(60_000) + 1);
                    let written: Vec<u8> = expected.drain(..bytes).collect();
                    assert!(content(&backlog).starts_with(&written));
                    backlog.skip(bytes, &mut pool, &mut queues);
                }
            }
            assert_eq!(backlog.len(), expected.len());
            assert_eq!(backlog.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn a_burst_is_shared_until_little_of_it_is_left() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let (burst, range) = burst(&[7; 100_000]);
        let mut backlog = Backlog::default();
        backlog.append_shared(&burst, range.clone(), 0, false, &mut pool, &mut queues);
        assert_eq!(Arc::strong_count(&burst), 2);
        backlog.skip(range.len() - 30_000, &mut pool, &mut queues);
        assert_eq!(Arc::strong_count(&burst), 2);
        backlog.skip(29_999, &mut pool, &mut queues);
        assert_eq!(Arc::strong_count(&burst), 1);
        assert_eq!(content(&backlog), [7]);
        backlog.skip(1, &mut pool, &mut queues);
        assert!(backlog.is_empty());
    }

    #[test]
    fn a_small_part_of_a_burst_is_copied() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let (burst, range) = burst(&[7; 100_000]);
        let mut backlog = Backlog::default();
        let small = range.end - 10_000..range.end;
        backlog.append_shared(&burst, small, 0, false, &mut pool, &mut queues);
        assert_eq!(Arc::strong_count(&burst), 1);
        assert_eq!(content(&backlog), [7; 10_000]);
    }

    /// Returns the first byte of each frame's payload.
    fn frames(backlog: &Backlog) -> Vec<u8> {
        let (all, mut at, mut frames) = (content(backlog), 0, Vec::new());
        while at < all.len() {
            let (header, prefix) = Header::decode(&all[at..]).unwrap().unwrap();
            frames.push(all[at + prefix]);
            at += prefix + header.payload_bytes as usize;
        }
        assert_eq!(at, all.len(), "a frame is torn");
        frames
    }

    /// Appends a burst with one frame of 102 bytes for each of `numbers`.
    fn append(
        backlog: &mut Backlog,
        numbers: Range<u8>,
        droppable: bool,
        (pool, queues): (&mut Pool, &mut Queues),
    ) {
        let mut burst = Burst::default();
        numbers.for_each(|number| burst.push("t", MessageKind::Binary, &[number; 100]));
        let frames = burst.iter().next().unwrap().frames;
        backlog.append_shared(&Arc::new(burst), frames, 0, droppable, pool, queues);
    }

    #[test]
    fn the_oldest_frames_are_dropped_whole() {
        // Held by reference, and copied.
        for count in [10, 100] {
            let (mut pool, mut queues) = (Pool::default(), Queues::default());
            let mut backlog = Backlog::default();
            append(&mut backlog, 0..count, true, (&mut pool, &mut queues));
            assert_eq!(backlog.drop_oldest(1_000_000, &mut pool), 0);
            assert_eq!(
                backlog.drop_oldest(5 * 102, &mut pool),
                u64::from(count) - 4
            );
            assert_eq!(
                frames(&backlog),
                [count - 4, count - 3, count - 2, count - 1]
            );
            // The newest frame stays, whatever the limit.
            assert_eq!(backlog.drop_oldest(0, &mut pool), 3);
            assert_eq!(frames(&backlog), [count - 1]);
            backlog.skip(102, &mut pool, &mut queues);
            assert!(backlog.is_empty());
        }
    }

    #[test]
    fn a_frame_that_has_begun_is_not_torn() {
        for count in [10, 100] {
            for written in [1, 2, 101, 102, 103, 300] {
                let (mut pool, mut queues) = (Pool::default(), Queues::default());
                let mut backlog = Backlog::default();
                append(&mut backlog, 0..count, true, (&mut pool, &mut queues));
                let before = content(&backlog);
                backlog.skip(written, &mut pool, &mut queues);
                let begun = (102 - written % 102) % 102;
                let dropped = backlog.drop_oldest(begun + 2 * 102, &mut pool);
                let whole = (before.len() - written) / 102;
                assert_eq!(dropped, whole as u64 - 1);
                let after = content(&backlog);
                assert_eq!(after[..begun], before[written..written + begun]);
                assert_eq!(after[begun..], before[before.len() - 102..]);
                assert_eq!(backlog.len(), after.len());
            }
        }
    }

    #[test]
    fn what_may_not_be_dropped_keeps_its_place() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let mut backlog = Backlog::default();
        append(&mut backlog, 0..3, true, (&mut pool, &mut queues));
        append(&mut backlog, 3..5, false, (&mut pool, &mut queues));
        append(&mut backlog, 5..70, true, (&mut pool, &mut queues));
        backlog.append(b"\x82\x01\x47", &mut pool, &mut queues);
        append(&mut backlog, 72..74, true, (&mut pool, &mut queues));
        let dropped = backlog.drop_oldest(6 * 102 + 3 * SEGMENT_CHARGE, &mut pool);
        assert_eq!(frames(&backlog), [3, 4, 69, 71, 72, 73]);
        assert_eq!(dropped, 3 + 64);
        assert_eq!(backlog.drop_oldest(0, &mut pool), 2);
        assert_eq!(frames(&backlog), [3, 4, 71, 73]);
        backlog.clear(&mut pool, &mut queues);
        append(&mut backlog, 0..1, false, (&mut pool, &mut queues));
        assert_eq!(backlog.drop_oldest(0, &mut pool), 0);
    }

    #[test]
    fn small_segments_count_more_than_their_bytes() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let mut backlog = Backlog::default();
        for number in 0..10 {
            append(
                &mut backlog,
                number..number + 1,
                number % 2 == 0,
                (&mut pool, &mut queues),
            );
        }
        assert_eq!(backlog.len(), 10 * 102);
        assert_eq!(backlog.charge(), 10 * 102 + 9 * SEGMENT_CHARGE);
        assert_eq!(backlog.drop_oldest(4_000, &mut pool), 3);
        assert_eq!(backlog.charge(), 7 * 102 + 6 * SEGMENT_CHARGE);
    }

    #[test]
    fn a_frame_written_in_part_before_it_waits_stays_too() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let mut burst = Burst::default();
        (0..100).for_each(|number| burst.push("t", MessageKind::Binary, &[number; 100]));
        let all = burst.iter().next().unwrap().frames;
        let burst = Arc::new(burst);
        let mut backlog = Backlog::default();
        backlog.append_shared(&burst, all.clone(), 102 + 40, true, &mut pool, &mut queues);
        assert_eq!(backlog.drop_oldest(0, &mut pool), 97);
        let rest = [
            &burst.slice(all.clone())[142..204],
            &burst.slice(all)[99 * 102..],
        ];
        assert_eq!(content(&backlog), rest.concat());
    }

    #[test]
    fn time_is_given_when_a_backlog_begins_and_whenever_the_peer_accepts_some() {
        let (mut pool, mut queues) = (Pool::default(), Queues::default());
        let mut backlog = Backlog::default();
        assert_eq!(backlog.stall_due(), None);
        for (now, accepted, due) in [(1, 0, 1), (2, 0, 1), (3, 1, 3), (4, 5, 4), (5, 6, 5)] {
            queues.stall_due = now;
            backlog.append(b"Spam", &mut pool, &mut queues);
            backlog.skip(accepted, &mut pool, &mut queues);
            assert_eq!(backlog.stall_due(), Some(due));
        }
        queues.stall_due = 6;
        backlog.skip(backlog.len(), &mut pool, &mut queues);
        assert_eq!(backlog.stall_due(), None);
        backlog.append(b"Spam", &mut pool, &mut queues);
        assert_eq!(backlog.stall_due(), Some(6));
    }
}
