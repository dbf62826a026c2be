//! Output that waits for one socket: pieces in order, shared publications by reference.

use std::{collections::VecDeque, io::IoSlice, ops::Range, sync::Arc};

use crate::{burst::Burst, pool::Pool};

/// Pieces that one system call writes.
pub(crate) const SLICES_MAX: usize = 64;

/// A smaller part of a burst is copied: that costs less than one more slice for the kernel.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// A part of a burst that is less than this fraction of its memory is copied too, and so is what is
/// left of a piece once it is: what waits keeps no more than so many times its size from being used
/// for something else.
const MEMORY_FACTOR_MAX: usize = 4;

/// Copied pieces grow to this size.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// What waits for one socket; without anything, a null pointer.
#[derive(Debug, Default)]
pub(crate) struct Backlog(Option<Box<Queue>>);

/// The pieces of a backlog. [`Pool`] keeps some for the next.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    pieces: VecDeque<Piece>,
    /// The length of all pieces.
    bytes: usize,
}

#[derive(Debug)]
struct Piece {
    memory: Memory,
    /// What of the memory waits, at least a byte.
    range: Range<usize>,
}

#[derive(Debug)]
enum Memory {
    Owned(Vec<u8>),
    Shared(Arc<Burst>),
}

impl Backlog {
    /// Adds a copy of `bytes`.
    pub(crate) fn append(&mut self, bytes: &[u8], pool: &mut Pool) {
        if bytes.is_empty() {
            return;
        }
        let queue = self.queue(pool);
        queue.bytes += bytes.len();
        match queue.pieces.back_mut() {
            Some(Piece {
                memory: Memory::Owned(memory),
                range,
            }) if memory.len() + bytes.len() <= PIECE_BYTES_MAX => {
                pool.reserve(memory, bytes.len());
                memory.extend_from_slice(bytes);
                range.end = memory.len();
            }
            _ => queue.pieces.push_back(Piece::copy(bytes, pool)),
        }
    }

    /// Takes over `bytes` but for the first `done`.
    pub(crate) fn append_owned(&mut self, bytes: Vec<u8>, done: usize, pool: &mut Pool) {
        let piece = Piece {
            range: done..bytes.len(),
            memory: Memory::Owned(bytes),
        };
        self.push(piece, pool);
    }

    /// Puts `bytes` but for the first `done` before all that waits.
    pub(crate) fn prepend(&mut self, bytes: Vec<u8>, done: usize, pool: &mut Pool) {
        let piece = Piece {
            range: done..bytes.len(),
            memory: Memory::Owned(bytes),
        };
        if piece.range.is_empty() {
            return piece.free(pool);
        }
        let queue = self.queue(pool);
        queue.bytes += piece.range.len();
        queue.pieces.push_front(piece);
    }

    /// Adds a part of a burst: by reference if that pays and does not keep a large block of memory
    /// for a small part of it, otherwise as a copy.
    pub(crate) fn append_shared(
        &mut self,
        burst: &Arc<Burst>,
        range: Range<usize>,
        pool: &mut Pool,
    ) {
        if range.len() < SHARED_BYTES_MIN || is_wasteful(range.len(), burst.capacity()) {
            return self.append(burst.slice(range), pool);
        }
        let piece = Piece {
            memory: Memory::Shared(burst.clone()),
            range,
        };
        self.push(piece, pool);
    }

    /// Returns the first pieces, as many as there are places, and how many these are.
    pub(crate) fn slices<'a>(&'a self, places: &mut [IoSlice<'a>]) -> usize {
        let pieces = self.0.iter().flat_map(|queue| &queue.pieces);
        let mut count = 0;
        for (place, piece) in places.iter_mut().zip(pieces) {
            *place = IoSlice::new(piece.as_bytes());
            count += 1;
        }
        count
    }

    /// Is done with the first `bytes`; gives back the memory that is not needed any more.
    pub(crate) fn skip(&mut self, mut bytes: usize, pool: &mut Pool) {
        let Some(queue) = &mut self.0 else {
            return;
        };
        queue.bytes -= bytes;
        while let Some(piece) = queue.pieces.front_mut() {
            if bytes < piece.range.len() {
                piece.range.start += bytes;
                piece.save_memory(pool);
                break;
            }
            bytes -= piece.range.len();
            if let Some(piece) = queue.pieces.pop_front() {
                piece.free(pool);
            }
        }
        if queue.pieces.is_empty() {
            self.clear(pool);
        }
    }

    /// Forgets all and gives the memory back.
    pub(crate) fn clear(&mut self, pool: &mut Pool) {
        if let Some(mut queue) = self.0.take() {
            queue.bytes = 0;
            queue.pieces.drain(..).for_each(|piece| piece.free(pool));
            pool.give_queue(queue);
        }
    }

    /// Returns how many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |queue| queue.bytes)
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn push(&mut self, piece: Piece, pool: &mut Pool) {
        if piece.range.is_empty() {
            return piece.free(pool);
        }
        let queue = self.queue(pool);
        queue.bytes += piece.range.len();
        queue.pieces.push_back(piece);
    }

    fn queue(&mut self, pool: &mut Pool) -> &mut Queue {
        self.0.get_or_insert_with(|| pool.take_queue())
    }
}

impl Queue {
    /// Bounds the memory that is kept while it is empty.
    pub(crate) fn shrink(&mut self) {
        self.pieces.shrink_to(SLICES_MAX);
    }
}

impl Piece {
    fn copy(bytes: &[u8], pool: &mut Pool) -> Self {
        let mut memory = pool.take(bytes.len());
        memory.extend_from_slice(bytes);
        Self {
            memory: Memory::Owned(memory),
            range: 0..bytes.len(),
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match &self.memory {
            Memory::Owned(memory) => &memory[self.range.clone()],
            Memory::Shared(burst) => burst.slice(self.range.clone()),
        }
    }

    /// Moves what is left into memory of its size if it keeps too much.
    fn save_memory(&mut self, pool: &mut Pool) {
        let capacity = match &self.memory {
            Memory::Owned(memory) => memory.capacity(),
            Memory::Shared(burst) => burst.capacity(),
        };
        if capacity > SHARED_BYTES_MIN && is_wasteful(self.range.len(), capacity) {
            let copy = Self::copy(self.as_bytes(), pool);
            std::mem::replace(self, copy).free(pool);
        }
    }

    fn free(self, pool: &mut Pool) {
        if let Memory::Owned(memory) = self.memory {
            pool.give(memory);
        }
    }
}

/// Returns whether `bytes` are too few to keep `capacity` for them.
const fn is_wasteful(bytes: usize, capacity: usize) -> bool {
    bytes.saturating_mul(MEMORY_FACTOR_MAX) < capacity
}

#[cfg(test)]
mod tests {
    use linerate_proto::engine::MessageKind;
    use linerate_testkit::Rng;

    use super::*;

    /// Returns a burst of one message, and where its frame lies.
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
        let mut pool = Pool::default();
        let mut rng = Rng::new(4);
        let mut backlog = Backlog::default();
        let mut expected = VecDeque::new();
        for round in 0..3_000_u32 {
            let bytes = [0, 1, 300, 5_000, 70_000][rng.below(5)];
            let payload = vec![round as u8; bytes];
            match rng.below(9) {
                0 => {
                    backlog.append(&payload, &mut pool);
                    expected.extend(payload);
                }
                1 => {
                    let done = bytes.min(7);
                    expected.extend(&payload[done..]);
                    backlog.append_owned(payload, done, &mut pool);
                }
                2 => {
                    let (burst, range) = burst(&payload);
                    let range = range.start + 1..range.end;
                    expected.extend(burst.slice(range.clone()));
                    backlog.append_shared(&burst, range, &mut pool);
                }
                3 => {
                    let done = bytes.min(7);
                    for byte in payload[done..].iter().rev() {
                        expected.push_front(*byte);
                    }
                    backlog.prepend(payload, done, &mut pool);
                }
                _ => {
                    let bytes = rng.below(backlog.len().min(60_000) + 1);
                    let written: Vec<u8> = expected.drain(..bytes).collect();
                    assert!(content(&backlog).starts_with(&written));
                    backlog.skip(bytes, &mut pool);
                }
            }
            assert_eq!(backlog.len(), expected.len());
            assert_eq!(backlog.is_empty(), expected.is_empty());
        }
    }

    #[test]
    fn a_burst_is_shared_until_little_of_it_is_left() {
        let mut pool = Pool::default();
        let (burst, range) = burst(&[7; 100_000]);
        let mut backlog = Backlog::default();
        backlog.append_shared(&burst, range.clone(), &mut pool);
        assert_eq!(Arc::strong_count(&burst), 2);
        backlog.skip(range.len() - 30_000, &mut pool);
        assert_eq!(Arc::strong_count(&burst), 2);
        backlog.skip(29_999, &mut pool);
        assert_eq!(Arc::strong_count(&burst), 1);
        assert_eq!(content(&backlog), [7]);
        backlog.skip(1, &mut pool);
        assert!(backlog.is_empty());
    }

    #[test]
    fn a_small_part_of_a_burst_is_copied() {
        let mut pool = Pool::default();
        let (burst, range) = burst(&[7; 100_000]);
        let mut backlog = Backlog::default();
        backlog.append_shared(&burst, range.end - 10_000..range.end, &mut pool);
        assert_eq!(Arc::strong_count(&burst), 1);
        assert_eq!(content(&backlog), [7; 10_000]);
    }
}
