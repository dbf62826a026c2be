//! Boxes that are reused, so that the part of a connection that exists only at times is rarely
//! allocated.

/// Maximum number of free boxes that are kept.
const KEPT_MAX: usize = 64;

/// Free boxes for values of one type. Their values are empty.
#[derive(Debug)]
pub(crate) struct Boxes<T>(
    #[allow(clippy::vec_box, reason = "the allocations are reused")] Vec<Box<T>>,
);

impl<T: Default> Boxes<T> {
    /// Returns a box with an empty value.
    pub(crate) fn take(&mut self) -> Box<T> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps a box, whose value must be empty, for reuse, or frees it if there are enough.
    pub(crate) fn give(&mut self, empty: Box<T>) {
        if self.0.len() < KEPT_MAX {
            self.0.push(empty);
        }
    }
}

impl<T> Default for Boxes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
