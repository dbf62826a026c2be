//! The last uncompressed bytes of a direction, which the next message may refer back to.

use alloc::vec::Vec;
use core::fmt;

/// The smallest allocation of a window, in bytes.
const BYTES_MIN: usize = 256;

/// A ring buffer that grows with its content, up to `bytes_max`.
///
/// INVARIANT: `start` is 0 until the ring is full.
#[derive(Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// The index of the oldest byte.
    start: usize,
    bytes_max: usize,
}

impl Window {
    /// Creates an empty window of 2^`bits` bytes.
    pub(super) const fn new(bits: u8) -> Self {
        Self {
            bytes: Vec::new(),
            start: 0,
            bytes_max: 1 << bits,
        }
    }

    pub(super) fn append(&mut self, mut bytes: &[u8]) {
        if bytes.len() >= self.bytes_max {
            bytes = &bytes[bytes.len() - self.bytes_max..];
            self.clear();
        }
        let memory = self.bytes_for(bytes.len());
        self.bytes.reserve_exact(memory - self.bytes.len());
        let room = self.bytes_max - self.bytes.len();
        let (new, mut over) = bytes.split_at(room.min(bytes.len()));
        self.bytes.extend_from_slice(new);
        while !over.is_empty() {
            let run = over.len().min(self.bytes.len() - self.start);
            self.bytes[self.start..self.start + run].copy_from_slice(&over[..run]);
            self.start = (self.start + run) % self.bytes_max;
            over = &over[run..];
        }
    }

    /// Clears the window but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.start = 0;
    }

    /// Clears the window and frees the memory.
    pub(super) fn free(&mut self) {
        self.bytes = Vec::new();
        self.start = 0;
    }

    /// Returns the memory that the window takes once `more` bytes are appended, in bytes.
    pub(super) fn bytes_for(&self, more: usize) -> usize {
        let bytes = self.bytes.len().saturating_add(more).min(self.bytes_max);
        let rounded = bytes.next_power_of_two().clamp(BYTES_MIN, self.bytes_max);
        rounded.max(self.bytes.len())
    }

    /// Returns how many bytes the window holds at most.
    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the content of the window in two parts, the older one first.
    pub(super) fn parts(&self) -> [&[u8]; 2] {
        let (newer, older) = self.bytes.split_at(self.start);
        [older, newer]
    }
}

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Window({} of {} bytes)",
            self.bytes.len(),
            self.bytes_max
        )
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_window_holds_the_last_bytes_in_bounded_memory() {
        for step in [1, 3, 100, 255, 256, 257, 511, 512, 513, 700, 5_000] {
            let mut window = Window::new(9);
            let mut all = vec![];
            for round in 0..40 {
                let bytes: Vec<u8> = (0..step).map(|i| (i * 7 + round * 13) as u8).collect();
                all.extend_from_slice(&bytes);
                window.append(&bytes);
                let last = &all[all.len().saturating_sub(512)..];
                assert_eq!(window.parts().concat(), last, "{step}, {round}");
                assert!(window.bytes.capacity() <= 512);
            }
        }
    }

    #[test]
    fn an_empty_window_has_no_memory_and_grows_on_demand() {
        let mut window = Window::new(15);
        assert_eq!((window.bytes.capacity(), window.bytes_for(1)), (0, 256));
        window.append(&[1; 300]);
        assert_eq!(window.bytes.capacity(), 512);
        window.free();
        assert_eq!(
            (window.bytes.capacity(), window.parts()),
            (0, [&b""[..]; 2])
        );
    }
}
