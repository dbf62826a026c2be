//! Lists of counters, indexed by the codes of values.

/// Returns the counter of a code. Adds it if it is new.
#[inline]
pub(super) fn at<T: Clone + Default>(list: &mut Vec<T>, code: u32) -> &mut T {
    let at = code as usize;
    if at >= list.len() {
        grow(list, at);
    }
    &mut list[at]
}

/// Grows the list up to index `at`. Codes are assigned in sequence, so the list has no gaps. It
/// grows by a quarter rather than doubling, because it may be one of the largest lists.
#[cold]
fn grow<T: Clone + Default>(list: &mut Vec<T>, at: usize) {
    if at >= list.capacity() {
        list.reserve_exact((at + 1 + at / 4).max(64) - list.len());
    }
    list.resize(at + 1, T::default());
}
