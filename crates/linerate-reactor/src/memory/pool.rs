//! Recycled memory of a worker for unfinished messages and pending output.

/// Buffers are grouped into classes by capacity, rounded down to a power of two. This is the
/// capacity of the first class in bytes.
const BYTES_MIN: usize = 256;

/// The capacity of the last class in bytes, which also holds all larger buffers.
const BYTES_MAX: usize = 1 << 20;

/// The number of classes.
const CLASSES: usize = (BYTES_MAX.ilog2() - BYTES_MIN.ilog2()) as usize + 1;

/// Maximum size in bytes of the buffers kept in each class. At least one buffer is kept.
const CLASS_BYTES_MAX: usize = 1 << 20;

/// Maximum number of buffers kept in each class: if thousands of connections began or wrote
/// together, their buffers are not needed again soon.
const BUFFERS_MAX: usize = 256;

/// Buffers with a larger capacity, in bytes, are freed instead of kept.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// The free buffers.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    free: [Vec<Vec<u8>>; CLASSES],
}

impl Pool {
    /// Returns an empty buffer with a capacity of `bytes` or more, recycled if possible.
    pub(crate) fn take(&mut self, bytes: usize) -> Vec<u8> {
        let bytes = bytes.max(BYTES_MIN);
        self.take_recycled(bytes).unwrap_or_else(|| {
            Vec::with_capacity(bytes.checked_next_power_of_two().unwrap_or(bytes))
        })
    }

    /// Returns an empty buffer for a message of which `bytes` bytes have arrived and the peer has
    /// announced `announced` more. It has room for all of them only if such a buffer can be
    /// recycled; otherwise its size is in proportion to the bytes that have arrived.
    pub(crate) fn take_announced(&mut self, bytes: usize, announced: usize) -> Vec<u8> {
        let whole = bytes.saturating_add(announced);
        self.take_recycled(whole)
            .unwrap_or_else(|| self.take(whole.min(2 * bytes)))
    }

    /// Keeps a buffer for reuse, or frees it if there are enough.
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

    /// Makes room for `additional` more bytes. A buffer that has to grow is exchanged for one of at
    /// least twice its length, so that growing in small steps has a constant cost for each byte.
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
