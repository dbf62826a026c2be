//! When a collection that was large gives memory back.

/// Room that is never worth giving back, in elements.
const ROOM_KEPT: usize = 64;

/// Returns for how many elements a collection of `len` with room for `capacity` is to have room, if that is much
/// less: it can double before it has to grow again, so that neither costs much.
pub(crate) fn reduced(capacity: usize, len: usize) -> Option<usize> {
    (capacity > 4 * len + ROOM_KEPT).then_some(2 * len)
}

#[cfg(test)]
mod tests {
    use super::reduced;

    #[test]
    fn room_is_given_back_when_a_quarter_is_left() {
        assert_eq!(reduced(64, 0), None);
        assert_eq!(reduced(65, 0), Some(0));
        assert_eq!(reduced(104, 10), None);
        assert_eq!(reduced(105, 10), Some(20));
        assert_eq!(reduced(1_064, 250), None);
        assert_eq!(reduced(1_065, 250), Some(500));
    }
}
