//! Memory owned by the worker thread: its read buffer, and recycled buffers for payloads.
//!
//! A buffer returns to the pool of the thread that drops it or, if it is large, to a pool that all
//! threads share. The pools are bounded; buffers that do not fit are freed.

use std::cell::RefCell;

mod large;
mod recycled;
mod shelf;

pub(crate) use recycled::{Recycle, Recycled, Spare};
use shelf::Shelf;

/// The size of a read in bytes: large enough for many small messages, small enough to stay in the
/// cache.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// The size of a read in bytes for long messages, and while a connection fills [`READ_BYTES`] with
/// one read. More would not be in the cache any more when it is unmasked.
const LONG_READ_BYTES: usize = 256 << 10;

/// The smallest capacity that is recycled. Buffers are grouped into classes by their capacity,
/// rounded down to a power of two.
const BYTES_MIN: usize = 256;

/// The capacity from which buffers go to the shared pool of all threads.
const BYTES_MAX: usize = 1 << 20;

/// The number of classes.
const CLASSES: usize = (BYTES_MAX.ilog2() - BYTES_MIN.ilog2()) as usize;

/// How many bytes a thread keeps in each class, counting each capacity as rounded down.
const CLASS_BYTES_MAX: usize = 512 << 10;

/// How many unused read buffers of [`READ_BYTES`] a thread keeps.
const READ_BUFFERS_MAX: usize = 16;

/// How many unused read buffers of [`LONG_READ_BYTES`] a thread keeps.
const LONG_READ_BUFFERS_MAX: usize = 4;

/// The size of a read buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReadSize {
    /// [`READ_BYTES`].
    Usual,
    /// [`LONG_READ_BYTES`].
    Long,
}

impl ReadSize {
    /// Returns the size in bytes.
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Self::Usual => READ_BYTES,
            Self::Long => LONG_READ_BYTES,
        }
    }

    /// Returns how many usual reads take as long.
    pub(crate) const fn usual_reads(self) -> u8 {
        (self.bytes() / READ_BYTES) as u8
    }

    /// Returns the size of which `buffer` is, if it is a read buffer.
    fn of(buffer: &[u8]) -> Option<Self> {
        match buffer.len() {
            READ_BYTES => Some(Self::Usual),
            LONG_READ_BYTES => Some(Self::Long),
            _ => None,
        }
    }

    /// Returns how many unused buffers a thread keeps.
    const fn buffers_max(self) -> usize {
        match self {
            Self::Usual => READ_BUFFERS_MAX,
            Self::Long => LONG_READ_BUFFERS_MAX,
        }
    }
}

thread_local! {
    /// Unused read buffers of each size.
    static READ: RefCell<[Shelf; 2]> = const { RefCell::new([const { Shelf::new() }; 2]) };
    static FREE: RefCell<[Shelf; CLASSES]> =
        const { RefCell::new([const { Shelf::new() }; CLASSES]) };
}

/// Calls `f` with the thread's read buffer of this size, which has arbitrary content.
///
/// `f` may keep the buffer by taking it out; the thread then gets another one.
pub(crate) fn with_read_buffer<T>(size: ReadSize, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let recycled = READ.try_with(|read| read.borrow_mut()[size as usize].take());
    let mut buffer = recycled
        .ok()
        .flatten()
        .unwrap_or_else(|| vec![0; size.bytes()]);
    let result = f(&mut buffer);
    give_input(buffer);
    result
}

/// Returns a buffer of input to its pool: a read buffer, or a copy of a short read.
pub(crate) fn give_input(buffer: Vec<u8>) {
    let Some(size) = ReadSize::of(&buffer) else {
        return give(buffer);
    };
    _ = READ.try_with(|read| {
        read.borrow_mut()[size as usize].give(buffer, size.buffers_max());
    });
}

/// Returns an empty buffer with a capacity of `bytes` or more, recycled if possible.
pub(crate) fn take(bytes: usize) -> Vec<u8> {
    let bytes = bytes.max(BYTES_MIN);
    match take_recycled(bytes) {
        Some(buffer) => buffer,
        None if bytes <= BYTES_MAX => Vec::with_capacity(bytes.next_power_of_two()),
        None => Vec::with_capacity(bytes),
    }
}

/// Returns a recycled empty buffer with a capacity of `bytes` or more, if there is one.
pub(crate) fn take_recycled(bytes: usize) -> Option<Vec<u8>> {
    let class = match bytes.max(BYTES_MIN).checked_next_power_of_two() {
        Some(capacity) if capacity < BYTES_MAX => class_of(capacity),
        _ => return large::take(bytes),
    };
    let recycled = FREE.try_with(|free| free.borrow_mut()[class].take());
    recycled.ok().flatten()
}

/// Returns a buffer to the pool of its class.
pub(crate) fn give(mut buffer: Vec<u8>) {
    buffer.clear();
    let class = match buffer.capacity() {
        ..BYTES_MIN => return,
        capacity @ BYTES_MIN..BYTES_MAX => class_of(capacity),
        BYTES_MAX.. => return large::give(buffer),
    };
    _ = FREE.try_with(|free| {
        free.borrow_mut()[class].give(buffer, CLASS_BYTES_MAX / (BYTES_MIN << class));
    });
}

/// Frees the buffers in this thread's pools and in the shared pool.
pub(crate) fn free() {
    _ = READ.try_with(|read| read.take());
    _ = FREE.try_with(|free| free.take());
    large::free();
}

/// Frees the buffers in this thread's pools that were not needed since the last call.
pub(crate) fn free_unused() {
    _ = READ.try_with(|read| read.borrow_mut().iter_mut().for_each(Shelf::free_unused));
    _ = FREE.try_with(|free| free.borrow_mut().iter_mut().for_each(Shelf::free_unused));
}

/// Makes room for `additional` more bytes. A buffer that has to grow is replaced by a larger one
/// from the pool, so that the pool ends up with buffers of all requested sizes.
pub(crate) fn reserve(buffer: &mut Vec<u8>, additional: usize) {
    if buffer.capacity() - buffer.len() >= additional {
        return;
    }
    let mut larger = take((buffer.len() + additional).max(2 * buffer.len()));
    larger.extend_from_slice(buffer);
    give(std::mem::replace(buffer, larger));
}

/// Returns the class for this capacity, which must be at least [`BYTES_MIN`] and less than
/// [`BYTES_MAX`].
const fn class_of(capacity: usize) -> usize {
    (capacity.ilog2() - BYTES_MIN.ilog2()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_capacity_that_was_asked_for() {
        for bytes in [0, 1, 256, 257, 5_000, 65_536, 65_537, 1 << 20, 3 << 20] {
            for recycled in [256, 300, 4_096, 5_000, 70_000, 1 << 20, 2 << 20] {
                give(Vec::with_capacity(recycled));
            }
            let buffer = take(bytes);
            assert!(buffer.capacity() >= bytes, "{bytes}");
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn a_buffer_that_was_given_back_is_taken_again() {
        for bytes in [256, 1_000, 64 << 10, 500 << 10] {
            let buffer = take(bytes);
            let address = buffer.as_ptr();
            give(buffer);
            let again = take(bytes);
            assert_eq!(again.as_ptr(), address, "{bytes}");
        }
    }

    #[test]
    fn there_is_nothing_to_recycle_of_a_size_that_nobody_has() {
        assert!(take_recycled(usize::MAX).is_none());
    }

    #[test]
    fn what_a_thread_keeps_is_bounded() {
        for _ in 0..10_000 {
            give(Vec::with_capacity(256));
            give(Vec::with_capacity(4_096));
        }
        let kept: usize = FREE.with_borrow(|free| free.iter().map(Shelf::bytes).sum());
        assert!(kept <= 2 * CLASS_BYTES_MAX, "{kept} bytes");
    }

    #[test]
    fn nothing_is_kept_after_all_was_freed() {
        give(Vec::with_capacity(5_000));
        give_input(vec![0; READ_BYTES]);
        free();
        assert!(take_recycled(4_096).is_none());
        assert!(READ.with_borrow(|read| read.iter().all(|shelf| shelf.bytes() == 0)));
    }

    #[test]
    fn a_buffer_that_grows_keeps_its_content() {
        let mut buffer = take(0);
        for number in 0..100_000_u32 {
            reserve(&mut buffer, 4);
            let before = buffer.as_ptr();
            buffer.extend_from_slice(&number.to_le_bytes());
            assert_eq!(buffer.as_ptr(), before, "there was room");
        }
        let (numbers, _) = buffer.as_chunks::<4>();
        assert!(
            (0..)
                .zip(numbers)
                .all(|(n, bytes)| u32::from_le_bytes(*bytes) == n)
        );
    }
}
