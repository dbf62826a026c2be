//! Checks that every kernel equals the byte-wise implementation and does not change other bytes.

use alloc::vec::Vec;
use std::vec;

use proptest::prelude::*;

use super::kernel::{self, INLINE_MAX, Key};
use super::{append, apply, copy, naive};

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The value of the bytes around a payload, which must not change.
const GUARD: u8 = 0xa5;

/// More than the widest kernel's block, so that every way to straddle a cache line occurs.
const OFFSETS: usize = if cfg!(miri) { 3 } else { 67 };

/// Every length up to this one is tested: four times four of the widest blocks, and all lengths in
/// between.
const LEN_MAX: usize = 1_100;

/// Miri is slow and tests only some of the lengths.
const LEN_STEP: usize = if cfg!(miri) { 97 } else { 1 };

type Kernel = unsafe fn(Key, *const u8, *mut u8, usize) -> bool;

/// Returns every kernel for long payloads that this processor can run, by name.
fn available() -> Vec<(&'static str, Kernel)> {
    let everywhere: [(&str, Kernel); 2] = [
        ("dispatched", kernel::mask_long),
        ("portable", kernel::mask_portable),
    ];
    everywhere.into_iter().chain(detected()).collect()
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
fn detected() -> Vec<(&'static str, Kernel)> {
    use std::arch::is_x86_feature_detected;

    use super::kernel::x86::{mask_avx2, mask_avx512};

    let kernels: [(bool, &str, Kernel); 2] = [
        (is_x86_feature_detected!("avx2"), "avx2", mask_avx2),
        (is_x86_feature_detected!("avx512f"), "avx512", mask_avx512),
    ];
    kernels
        .into_iter()
        .filter_map(|(has, name, kernel)| has.then_some((name, kernel)))
        .collect()
}

#[cfg(not(all(target_arch = "x86_64", feature = "std")))]
fn detected() -> Vec<(&'static str, Kernel)> {
    Vec::new()
}

/// Returns bytes without a period that could hide an error in a kernel.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn masked(phase: usize, payload: &[u8]) -> Vec<u8> {
    let mut masked = payload.to_vec();
    naive::apply(KEY, phase, &mut masked);
    masked
}

/// Asserts that `buffer` holds `payload` at `offset` and only guard bytes elsewhere.
#[track_caller]
fn assert_holds(buffer: &[u8], offset: usize, payload: &[u8]) {
    let (before, rest) = buffer.split_at(offset);
    let (middle, after) = rest.split_at(payload.len());
    assert_eq!(
        middle,
        payload,
        "{} bytes at offset {offset}",
        payload.len()
    );
    assert!(
        before.iter().chain(after).all(|&byte| byte == GUARD),
        "wrote outside of the payload"
    );
}

#[test]
fn naive_twin_unmasks_the_example_of_the_rfc() {
    // RFC 6455 §5.7: a masked "Hello".
    assert_eq!(masked(0, b"\x7f\x9f\x4d\x51\x58"), b"Hello");
    let mut copied = [0; 5];
    naive::copy(KEY, 0, b"\x7f\x9f\x4d\x51\x58", &mut copied);
    assert_eq!(&copied, b"Hello");
}

#[test]
fn functions_equal_their_twin_at_every_length_and_phase() {
    let noise = noise(LEN_MAX);
    for len in (0..=LEN_MAX).step_by(LEN_STEP) {
        let payload = &noise[..len];
        for phase in 0..4 {
            let expected = masked(phase, payload);
            let offset = len % 11;

            let mut in_place = vec![GUARD; len + 32];
            in_place[offset..offset + len].copy_from_slice(payload);
            apply(KEY, phase, &mut in_place[offset..offset + len]);
            assert_holds(&in_place, offset, &expected);

            let mut copied = vec![GUARD; len + 32];
            copy(KEY, phase, payload, &mut copied[offset..offset + len]);
            assert_holds(&copied, offset, &expected);

            let mut appended = vec![GUARD; offset];
            append(KEY, phase, payload, &mut appended);
            assert_holds(&appended, offset, &expected);
        }
    }
}

#[test]
fn short_payloads_equal_their_twin_at_every_offset() {
    let noise = noise(INLINE_MAX);
    for offset in 0..OFFSETS {
        for len in (0..=INLINE_MAX).step_by(LEN_STEP.min(5)) {
            let mut buffer = vec![GUARD; OFFSETS + INLINE_MAX];
            buffer[offset..offset + len].copy_from_slice(&noise[..len]);
            apply(KEY, offset, &mut buffer[offset..offset + len]);
            assert_holds(&buffer, offset, &masked(offset, &noise[..len]));
        }
    }
}

#[test]
fn every_long_kernel_equals_the_twin_in_place_and_copying() {
    let noise = noise(LEN_MAX);
    for (name, kernel) in available() {
        std::println!("kernel: {name}");
        for len in (INLINE_MAX + 1..=LEN_MAX).step_by(LEN_STEP) {
            let (phase, offset) = (len % 4, len % OFFSETS);
            check_long(kernel, phase, offset, &noise[..len]);
        }
        for len in [INLINE_MAX + 1, 127, 128, 129, 255, 257, 300] {
            for offset in 0..OFFSETS {
                (0..4).for_each(|phase| check_long(kernel, phase, offset, &noise[..len]));
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "large payloads")]
fn every_long_kernel_equals_the_twin_on_large_payloads() {
    let noise = noise(70_000);
    for (_, kernel) in available() {
        for len in [16_384, 65_535, 65_536, 65_537, 70_000] {
            check_long(kernel, 3, 6, &noise[..len]);
        }
    }
}

/// Checks one kernel in place and from one buffer into another.
#[track_caller]
fn check_long(kernel: Kernel, phase: usize, offset: usize, payload: &[u8]) {
    let expected = masked(phase, payload);
    let key = Key::new(KEY, phase);
    let mut buffer = vec![GUARD; payload.len() + OFFSETS + 8];
    let dst = buffer[offset..offset + payload.len()].as_mut_ptr();
    // SAFETY: `payload` is readable, and `dst` writable, for the length of the payload; they belong
    // to different allocations. `available` lists only kernels that this processor can run.
    let is_ascii = unsafe { kernel(key, payload.as_ptr(), dst, payload.len()) };
    assert_eq!(is_ascii, expected.is_ascii());
    assert_holds(&buffer, offset, &expected);

    buffer[offset..offset + payload.len()].copy_from_slice(payload);
    let dst = buffer[offset..offset + payload.len()].as_mut_ptr();
    // SAFETY: `dst` is readable and writable for the length of the payload, and source and
    // destination are the same. `available` lists only kernels that this processor can run.
    let is_ascii = unsafe { kernel(key, dst.cast_const(), dst, payload.len()) };
    assert_eq!(is_ascii, expected.is_ascii());
    assert_holds(&buffer, offset, &expected);
}

#[test]
fn one_non_ascii_byte_is_detected_at_every_position() {
    for (_, kernel) in available() {
        for len in [INLINE_MAX + 1, 127, 128, 129, 255, 257, 300, 1_000] {
            let mut text = vec![b'x'; len];
            check_long(kernel, 1, 5, &masked(1, &text));
            for at in (0..len).step_by(LEN_STEP) {
                text[at] = 0x80;
                check_long(kernel, 1, 5, &masked(1, &text));
                text[at] = b'x';
            }
        }
    }
}

#[test]
fn append_keeps_existing_bytes_and_uses_spare_capacity() {
    let mut dst = Vec::with_capacity(16);
    dst.extend_from_slice(b"Spam");
    let before = dst.as_ptr();
    append(KEY, 0, b"\x7f\x9f\x4d\x51\x58", &mut dst);
    assert_eq!(dst, b"SpamHello");
    assert_eq!(dst.as_ptr(), before);
}

#[test]
#[should_panic(expected = "differ in length")]
fn copy_panics_if_lengths_differ() {
    copy(KEY, 0, b"Spam", &mut [0; 3]);
}

#[test]
fn phase_may_be_any_number() {
    let mut payload = *b"\x7f\x9f\x4d\x51\x58";
    apply(KEY, usize::MAX - 3, &mut payload);
    assert_eq!(&payload, b"Hello");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn functions_equal_their_twins(
        key: [u8; 4],
        phase: usize,
        payload in prop::collection::vec(any::<u8>(), 0..crate::drawn_len(1_200)),
        offset in 0..70_usize,
    ) {
        let offset = offset.min(payload.len());
        let src = &payload[offset..];
        let mut expected = vec![0; src.len()];
        naive::copy(key, phase, src, &mut expected);

        let mut copied = vec![0; src.len()];
        copy(key, phase, src, &mut copied);
        prop_assert_eq!(&copied, &expected);

        let mut appended = Vec::new();
        append(key, phase, src, &mut appended);
        prop_assert_eq!(&appended, &expected);

        let mut in_place = payload.clone();
        apply(key, phase, &mut in_place[offset..]);
        prop_assert_eq!(&in_place[..offset], &payload[..offset]);
        prop_assert_eq!(&in_place[offset..], &expected);
    }

    #[test]
    fn payload_masked_in_pieces_equals_payload_masked_whole(
        key: [u8; 4],
        phase in 0..4_usize,
        payload in prop::collection::vec(any::<u8>(), 0..crate::drawn_len(600)),
        cut in 0..600_usize,
    ) {
        let cut = cut.min(payload.len());
        let mut whole = payload.clone();
        apply(key, phase, &mut whole);

        let mut pieces = payload;
        let (head, tail) = pieces.split_at_mut(cut);
        apply(key, phase, head);
        apply(key, phase + cut, tail);
        prop_assert_eq!(whole, pieces);
    }
}
