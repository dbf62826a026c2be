//! Unused buffers of one size.

/// Buffers of about the same capacity that wait to be used again.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// The last that was given is taken first, because it is the likeliest to be in the cache.
    buffers: Vec<Vec<u8>>,
    /// How many of the first buffers were there all the time since unused ones were last freed.
    unused: usize,
}

impl Shelf {
    pub(super) const fn new() -> Self {
        Self {
            buffers: Vec::new(),
            unused: 0,
        }
    }

    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let buffer = self.buffers.pop();
        self.unused = self.unused.min(self.buffers.len());
        buffer
    }

    /// Keeps a buffer unless there are `buffers_max` already.
    pub(super) fn give(&mut self, buffer: Vec<u8>, buffers_max: usize) {
        if self.buffers.len() < buffers_max {
            self.buffers.push(buffer);
        }
    }

    /// Frees the buffers that were not needed since the last call.
    pub(super) fn free_unused(&mut self) {
        self.buffers.drain(..self.unused);
        self.unused = self.buffers.len();
        if self.buffers.is_empty() {
            self.buffers = Vec::new();
        }
    }

    /// Returns the sum of the capacities.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.buffers.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Shelf;

    #[test]
    fn only_buffers_that_nobody_needed_are_freed() {
        let mut shelf = Shelf::default();
        for _ in 0..4 {
            shelf.give(vec![0; 10], 4);
        }
        shelf.give(vec![0; 10], 4);
        assert_eq!(shelf.bytes(), 40);
        shelf.free_unused();
        assert_eq!(shelf.bytes(), 40, "they have only just come");
        let two = [shelf.take().unwrap(), shelf.take().unwrap()];
        for buffer in two {
            shelf.give(buffer, 4);
        }
        shelf.free_unused();
        assert_eq!(shelf.bytes(), 20, "two of four were needed");
        shelf.free_unused();
        assert_eq!(shelf.bytes(), 0);
        assert_eq!(shelf.take(), None);
    }
}
