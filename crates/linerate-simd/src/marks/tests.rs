//! Compares the search with a byte-wise implementation.

use alloc::vec::Vec;
use std::vec;

use proptest::prelude::*;

use super::{Finder, MARKS, ROOM, WINDOW_LEN, WRITTEN, collect, find_in};
use crate::block::{BLOCK_LEN, find_any, find_any_portable};

/// Returns the offsets of all marks of a window, byte by byte.
fn naive(haystack: &[u8]) -> Vec<u32> {
    let is_mark = |at: &u32| b"\n\"\\".contains(&haystack[*at as usize]);
    (0..haystack.len().min(WINDOW_LEN) as u32)
        .filter(is_mark)
        .collect()
}

/// Compares the kernel for this processor and the kernels for other processors.
#[track_caller]
fn assert_equals_naive(haystack: &[u8]) {
    let expected = naive(haystack);
    let mut offsets = vec![u32::MAX; ROOM.min(haystack.len() + WRITTEN)];
    let count = find_in(&haystack[..haystack.len().min(WINDOW_LEN)], &mut offsets);
    assert_eq!(offsets[..count], expected);
    let window = &haystack[..haystack.len().min(WINDOW_LEN)];
    let kernels: [fn(&[u8; BLOCK_LEN]) -> u64; 2] = [
        |block| find_any(block, MARKS),
        |block| find_any_portable(block, MARKS),
    ];
    for kernel in kernels {
        let count = collect(window, &mut offsets, kernel);
        assert_eq!(offsets[..count], expected);
    }
}

#[test]
fn each_mark_is_found_at_every_offset() {
    let step = if cfg!(miri) { 41 } else { 1 };
    for len in [1, 31, 32, 33, BLOCK_LEN - 1, BLOCK_LEN, BLOCK_LEN + 1, 150] {
        for at in (0..len).step_by(step) {
            for mark in [b'\n', b'"', b'\\'] {
                let mut haystack = vec![b'x'; len];
                haystack[at] = mark;
                assert_equals_naive(&haystack);
            }
        }
    }
}

#[test]
fn only_marks_are_found_among_all_byte_pairs() {
    // A borrow or carry from one byte into its neighbour would show here.
    for first in (0..=u8::MAX).step_by(if cfg!(miri) { 51 } else { 1 }) {
        let pairs: Vec<u8> = (0..=u8::MAX).flat_map(|second| [first, second]).collect();
        assert_equals_naive(&pairs);
    }
}

#[test]
fn window_full_of_marks_fits_and_the_bytes_after_it_are_left() {
    for len in [WINDOW_LEN - 1, WINDOW_LEN, WINDOW_LEN + 1] {
        let mut haystack = vec![b'x'; len];
        assert_eq!(Finder::new().find(&haystack).len(), 0);
        haystack.fill(b'"');
        assert_eq!(Finder::new().find(&haystack).len(), len.min(WINDOW_LEN));
    }
}

#[test]
fn finder_forgets_earlier_results() {
    let mut finder = Finder::default();
    assert_eq!(finder.find(&[b'"'; 99]).len(), 99);
    assert_eq!(finder.find(b"\\"), [0]);
    assert_eq!(finder.find(b""), [0; 0]);
    assert!(finder.memory_bytes() > 64 << 10);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn search_equals_its_twin(
        haystack in prop::collection::vec(
            prop_oneof![1 => Just(b'\n'), 2 => Just(b'"'), 1 => Just(b'\\'), 6 => any::<u8>()],
            0..crate::drawn_len(1_100),
        ),
        offset in 0..70_usize,
    ) {
        assert_equals_naive(&haystack[offset.min(haystack.len())..]);
    }
}
