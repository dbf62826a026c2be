//! Recycled memory of a worker, for unfinished messages and for what waits to be written.

use crate::connection::{backlog::Queue, remainder::Rest};

/// Buffers are sorted by capacity, rounded down to a power of two: from this one,
const BYTES_MIN: usize = 256;

/// to this one. Larger buffers belong to the last class.
const BYTES_MAX: usize = 1 << 20;

/// The number of classes.
const CLASSES: usize = (BYTES_MAX.ilog2() - BYTES_MIN.ilog2()) as usize + 1;

/// What is kept of each class, in bytes, and at least one buffer.
const CLASS_BYTES_MAX: usize = 1 << 20;

/// And at most so many buffers of each class: those of thousands of connections that began or
/// wrote together are not needed again soon.
const BUFFERS_MAX: usize = 256;

/// Buffers above this capacity are freed, not kept.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Queues that are kept, and rests of input.
const BOXES_MAX: usize = 64;

/// The free buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: [Vec<Vec<u8>>; CLASSES],
    #[allow(
        clippy::vec_box,
        reason = "what is kept is the allocation that a backlog points to"
    )]
    queues: Vec<Box<Queue>>,
    #[allow(
        clippy::vec_box,
        reason = "what is kept is the allocation that a remainder points to"
    )]
    rests: Vec<Box<Rest>>,
}

impl Pool {
    /// Returns an empty buffer with a capacity of `bytes` or more, recycled if possible.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let bytes = bytes.max(BYTES_MIN);
        self.take_recycled(bytes).unwrap_or_else(|| {
            Vec::with_capacity(bytes.checked_next_power_of_two().unwrap_or(bytes))
        })
    }

    /// Returns an empty buffer for which `bytes` have arrived and `announced` more are claimed to
    /// come: memory for all of it only if it can be recycled, otherwise in proportion to what is
    /// there.
    pub(crate) fn take_announced(&mut self, bytes: usize, announced: usize) -> Vec<u8> {
        let whole = bytes.saturating_add(announced);
        self.take_recycled(whole)
            .unwrap_or_else(|| self.take(whole.min(2 * bytes)))
    }

    /// Gives a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        if !(BYTES_MIN..=KEPT_BYTES_MAX).contains(&capacity) {
            return;
        }
        let class = class_of(capacity);
        let buffers_max = (CLASS_BYTES_MAX / (BYTES_MIN << class)).clamp(1, BUFFERS_MAX);
        if self.free[class].len() < buffers_max {
            buffer.clear();
            self.free[class].push(buffer);
        }
    }

    /// Returns an empty queue.
    pub(crate) fn take_queue(&mut self) -> Box<Queue> {
        self.queues.pop().unwrap_or_default()
    }

    /// Gives an empty queue back.
    pub(crate) fn give_queue(&mut self, mut queue: Box<Queue>) {
        if self.queues.len() < BOXES_MAX {
            queue.shrink();
            self.queues.push(queue);
        }
    }

    /// Returns an empty rest.
    pub(crate) fn take_rest(&mut self) -> Box<Rest> {
        self.rests.pop().unwrap_or_default()
    }

    /// Gives an empty rest back.
    pub(crate) fn give_rest(&mut self, rest: Box<Rest>) {
        if self.rests.len() < BOXES_MAX {
            self.rests.push(rest);
        }
    }

    /// Makes room for `additional` bytes more: a buffer that has to grow is exchanged for one of at
    /// least twice its length, so that growing by small steps costs a constant for each byte.
    pub(crate) fn reserve(&mut self, buffer: &mut Vec<u8>, additional: usize) {
        if buffer.capacity() - buffer.len() >= additional {
            return;
        }
        let mut larger = self.take((buffer.len() + additional).max(2 * buffer.len()));
        larger.extend_from_slice(buffer);
        self.give(std::mem::replace(buffer, larger));
    }

    fn take_recycled(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let class = class_of(bytes.clamp(BYTES_MIN, BYTES_MAX).next_power_of_two());
        self.free[class].pop_if(|buffer| buffer.capacity() >= bytes)
    }
}

/// Returns the class of buffers with this capacity, which is [`BYTES_MIN`] or more.
fn class_of(capacity: usize) -> usize {
    (capacity.min(BYTES_MAX).ilog2() - BYTES_MIN.ilog2()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_taken_again() {
        for bytes in [256, 1_000, 64 << 10, 1 << 20, 5 << 20] {
            let mut pool = Pool::default();
            let buffer = pool.take(bytes);
            let address = buffer.as_ptr();
            pool.give(buffer);
            let again = pool.take(bytes);
            assert_eq!(again.as_ptr(), address, "{bytes}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut pool = Pool::default();
        for _ in 0..10_000 {
            pool.give(Vec::with_capacity(256));
            pool.give(Vec::with_capacity(600_000));
        }
        pool.give(Vec::with_capacity(KEPT_BYTES_MAX + 1));
        let kept: usize = pool.free.iter().flatten().map(Vec::capacity).sum();
        assert!(kept <= 3 * CLASS_BYTES_MAX, "{kept}");
    }

    #[test]
    fn a_claimed_length_allocates_nothing() {
        let mut pool = Pool::default();
        assert!(pool.take_announced(1_000, 1 << 40).capacity() <= 2_048);
        assert!(pool.take_announced(1_000, usize::MAX).capacity() <= 2_048);
        pool.give(Vec::with_capacity(8 << 20));
        assert!(pool.take_announced(1_000, 8_000_000).capacity() >= 8_001_000);
    }

    #[test]
    fn growing_keeps_the_content() {
        let mut pool = Pool::default();
        let mut buffer = pool.take(0);
        for number in 0..100_000_u32 {
            pool.reserve(&mut buffer, 4);
            buffer.extend_from_slice(&number.to_le_bytes());
        }
        let (numbers, _) = buffer.as_chunks::<4>();
        assert!(
            (0..)
                .zip(numbers)
                .all(|(n, bytes)| u32::from_le_bytes(*bytes) == n)
        );
    }
}
