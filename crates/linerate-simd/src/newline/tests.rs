//! Compares the searches with byte-wise implementations.

use alloc::vec::Vec;
use std::vec;

use proptest::prelude::*;

use super::{count, find, positions, rfind};
use crate::block::{BLOCK_LEN, find_any, find_any_portable};

/// Returns the offsets of all line feeds, byte by byte: the reference for all functions here.
fn naive(haystack: &[u8]) -> Vec<usize> {
    (0..haystack.len())
        .filter(|&at| haystack[at] == b'\n')
        .collect()
}

#[track_caller]
fn assert_equals_naive(haystack: &[u8]) {
    let expected = naive(haystack);
    assert_eq!(find(haystack), expected.first().copied());
    assert_eq!(rfind(haystack), expected.last().copied());
    assert_eq!(count(haystack), expected.len());
    assert_eq!(positions(haystack).collect::<Vec<_>>(), expected);
}

#[test]
fn nothing_is_found_without_a_line_feed() {
    for len in (0..300).step_by(if cfg!(miri) { 13 } else { 1 }) {
        assert_equals_naive(&vec![b'x'; len]);
    }
}

#[test]
fn line_feed_is_found_at_every_offset_of_every_length() {
    for len in (1..300).step_by(if cfg!(miri) { 97 } else { 1 }) {
        for at in 0..len {
            let mut haystack = vec![b'x'; len];
            haystack[at] = b'\n';
            assert_equals_naive(&haystack);
        }
    }
}

#[test]
fn line_feeds_in_a_row_are_all_found() {
    for len in (0..300).step_by(if cfg!(miri) { 13 } else { 1 }) {
        assert_equals_naive(&vec![b'\n'; len]);
    }
}

#[test]
fn only_line_feeds_are_found_among_all_byte_pairs() {
    // A borrow or carry from one byte into its neighbour would show here.
    for first in (0..=u8::MAX).step_by(if cfg!(miri) { 51 } else { 1 }) {
        let pairs: Vec<u8> = (0..=u8::MAX).flat_map(|second| [first, second]).collect();
        assert_equals_naive(&pairs);
        for block in pairs.as_chunks::<BLOCK_LEN>().0 {
            assert_eq!(find_any(block, [b'\n']), find_any_portable(block, [b'\n']));
        }
    }
}

#[test]
fn positions_stay_exhausted() {
    let mut positions = positions(b"a\n");
    assert_eq!(positions.next(), Some(1));
    assert_eq!((positions.next(), positions.next()), (None, None));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn searches_equal_their_twins(
        haystack in prop::collection::vec(
            prop_oneof![1 => Just(b'\n'), 6 => any::<u8>()], 0..crate::drawn_len(1_100),
        ),
        offset in 0..70_usize,
    ) {
        assert_equals_naive(&haystack[offset.min(haystack.len())..]);
    }

    #[test]
    fn block_masks_agree(block in prop::array::uniform32(
        prop_oneof![1 => Just(b'\n'), 1 => Just(b'\x0b'), 4 => any::<u8>()],
    )) {
        let block: [u8; BLOCK_LEN] = core::array::from_fn(|i| block[i % 32]);
        prop_assert_eq!(find_any(&block, [b'\n']), find_any_portable(&block, [b'\n']));
    }
}
