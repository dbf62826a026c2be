//! Decides when a collection that was large should release memory.

/// Spare capacity, in elements, that is never worth releasing.
const ROOM_KEPT: usize = 64;

/// Returns the capacity to shrink a collection of `len` elements to, or `None` if its `capacity` is
/// not much too large. The length can double before the collection must grow again, so neither
/// growing nor shrinking costs much.
pub(crate) fn reduced(capacity: usize, len: usize) -> Option<usize> {
    (capacity > 4 * len + ROOM_KEPT).then_some(2 * len)
}

#[cfg(test)]
mod tests {
    use super::reduced;

    #[test]
    fn memory_is_released_when_a_quarter_is_used() {
        assert_eq!(reduced(64, 0), None);
        assert_eq!(reduced(65, 0), Some(0));
        assert_eq!(reduced(104, 10), None);
        assert_eq!(reduced(105, 10), Some(20));
        assert_eq!(reduced(1_064, 250), None);
        assert_eq!(reduced(1_065, 250), Some(500));
    }
}
