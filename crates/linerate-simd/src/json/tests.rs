//! Compares the marks with those of a byte-wise implementation.

use alloc::string::String;
use alloc::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::block::{Classes, classify_baseline, classify_portable};
use super::strings::prefix_xor;
use super::{DEPTH_MAX, Marks, Outline, find_marks, find_with};
use crate::block::BLOCK_LEN;

/// Returns the marks of any text, and the outline if its strings and brackets are complete.
fn naive(text: &[u8]) -> (Vec<Marks>, Option<Outline>) {
    let mut marks = vec![Marks::default(); text.len().div_ceil(BLOCK_LEN)];
    let (mut in_string, mut is_escaped, mut is_whole) = (false, false, true);
    let mut open = Vec::new();
    for (at, byte) in text.iter().copied().enumerate() {
        let (marks, bit) = (&mut marks[at / BLOCK_LEN], 1 << (at % BLOCK_LEN));
        // A backslash outside of strings also escapes.
        let was_escaped = core::mem::take(&mut is_escaped);
        is_escaped = byte == b'\\' && !was_escaped;
        is_whole &= byte != b'\\' || in_string;
        match byte {
            b'"' if was_escaped => {}
            b'"' if in_string => {
                marks.closing |= bit;
                in_string = false;
            }
            b'"' => {
                marks.opening |= bit;
                in_string = true;
            }
            _ if in_string => {}
            b'[' | b'{' => {
                marks.brackets |= bit;
                // The codes of two matching brackets differ by two.
                open.push(byte + 2);
                is_whole &= open.len() <= DEPTH_MAX;
            }
            b']' | b'}' => {
                marks.brackets |= bit;
                is_whole &= open.pop() == Some(byte);
            }
            b':' => marks.colons |= bit,
            b',' => marks.commas |= bit,
            _ => {}
        }
    }
    let is_whole = is_whole && !in_string && open.is_empty();
    let has_backslashes = text.contains(&b'\\');
    (marks, is_whole.then_some(Outline { has_backslashes }))
}

/// Compares the kernel for this processor with the byte-wise implementation, and with the other
/// kernels that this processor supports.
#[track_caller]
fn assert_equals_naive(text: &[u8]) -> bool {
    let (expected, outline) = naive(text);
    let shown = text.escape_ascii();
    let mut found = vec![Marks::default(); 3];
    assert_eq!(find_marks(text, &mut found), outline, "{shown}");
    assert_eq!(found, expected, "{shown}");
    for kernel in kernels() {
        let found_outline = find_with(text, &mut found, kernel, prefix_xor);
        assert_eq!(found_outline, outline, "{shown}");
        assert_eq!(found, expected, "{shown}");
    }
    outline.is_some()
}

type Kernel = fn(&[u8; BLOCK_LEN]) -> Classes;

fn kernels() -> Vec<Kernel> {
    #[allow(unused_mut, reason = "only x86-64 has more kernels")]
    let mut kernels: Vec<Kernel> = vec![classify_baseline, classify_portable];
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the features that the function needs.
        kernels.push(|block| unsafe { super::block::classify_avx2(block) });
    }
    kernels
}

#[test]
fn each_byte_is_classified_at_every_offset() {
    for byte in 0..=u8::MAX {
        for at in 0..BLOCK_LEN {
            let mut block = [b'x'; BLOCK_LEN];
            block[at] = byte;
            block[BLOCK_LEN - 1 - at] = byte;
            let expected = classify_portable(&block);
            for kernel in kernels() {
                assert_eq!(kernel(&block), expected, "{byte} at {at}");
            }
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            if std::arch::is_x86_feature_detected!("avx512bw") {
                // SAFETY: the processor has the features that the function needs.
                let found = unsafe { super::block::classify_avx512(&block) };
                assert_eq!(found, expected, "{byte} at {at}");
            }
            if cfg!(miri) && at > 0 {
                break;
            }
        }
    }
}

#[test]
fn short_rows_of_brackets_match_like_the_twin() {
    const TOKENS: [&str; 8] = ["[", "]", "{", "}", ",", "\"]\"", "\"\\\"\"", "\\"];
    let mut found = 0;
    // Once inside a block, and once across blocks.
    for tokens in 0..=if cfg!(miri) { 2_u32 } else { 5 } {
        for row in 0..8_usize.pow(tokens) {
            for gap in ["", "                        "] {
                let place = |place| TOKENS[row >> (3 * place) & 7];
                let text: Vec<&str> = (0..tokens).flat_map(|at| [place(at), gap]).collect();
                found += usize::from(assert_equals_naive(text.concat().as_bytes()));
            }
        }
    }
    assert!(cfg!(miri) || found > 20, "{found}");
}

#[test]
fn nesting_is_limited_and_brackets_match() {
    for (depth, expected) in [(DEPTH_MAX, true), (DEPTH_MAX + 1, false), (1_000, false)] {
        let lists = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(assert_equals_naive(lists.as_bytes()), expected);
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(assert_equals_naive(objects.as_bytes()), expected);
        assert!(!assert_equals_naive(objects.replace("}}", "}]").as_bytes()));
        // A text that was too deep is not accepted after its brackets are closed.
        let row = format!("{lists},{}", objects.replace('1', &lists));
        assert!(!assert_equals_naive(row.as_bytes()));
    }
}

#[test]
fn odd_rows_of_backslashes_escape_the_next_byte() {
    for from in 0..=if cfg!(miri) { 2 } else { BLOCK_LEN } {
        for count in [1, 2, 3, 4, 63, 64, 65, 128, 129] {
            let text = [
                " ".repeat(from).as_str(),
                "[\"",
                "\\".repeat(count).as_str(),
                "\",\"\\\\\"]",
            ]
            .concat();
            assert_eq!(assert_equals_naive(text.as_bytes()), count % 2 == 0);
        }
    }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[test]
fn a_product_with_ones_is_the_sum_of_each_bit_and_all_below_it() {
    if !std::arch::is_x86_feature_detected!("pclmulqdq") {
        return;
    }
    let one = |bit: u32| 1_u64 << bit;
    let pairs = (0..64).flat_map(|bit| (0..64).map(move |other| one(bit) | one(other)));
    for bits in pairs.chain([0, u64::MAX, 0x1234_5678_9abc_def0]) {
        // SAFETY: the processor has the features that the function needs.
        let product = unsafe { super::strings::prefix_xor_pclmul(bits) };
        assert_eq!(product, prefix_xor(bits), "{bits:#x}");
    }
}

/// Generates pieces that often form JSON.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        "-?[0-9]{1,20}",
        prop::sample::select(&["true", "null", "x"][..]).prop_map(String::from),
        r#""([a-z :,{}\[\]ü]|\\.){0,90}""#,
        "[ \n]{0,70}1",
    ];
    let json = leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("\"[a-z]{0,9}\" ?", inner), 0..6).prop_map(|fields| {
                let fields = fields.iter().map(|(key, value)| format!("{key}:{value}"));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
            }),
        ]
    });
    json.prop_map(|text| text.into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 1_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn json_is_complete_and_changed_json_has_the_marks_of_the_twin(
        text in text(),
        at in any::<prop::sample::Index>(),
        with in prop_oneof![prop::sample::select(&b"[]{},:\" \\1\n"[..]), any::<u8>()],
    ) {
        prop_assert!(assert_equals_naive(&text));
        let at = at.index(text.len());
        let mut changed = text.clone();
        changed[at] = with;
        assert_equals_naive(&changed);
        changed.remove(at);
        assert_equals_naive(&changed);
    }

    #[test]
    fn any_bytes_have_the_marks_of_the_twin(
        text in prop::collection::vec(
            prop_oneof![
                3 => prop::sample::select(&b"[]{},:"[..]), 2 => Just(b'"'), 2 => Just(b'\\'),
                1 => prop::sample::select(&b" \t\n\r"[..]), 4 => any::<u8>(),
            ],
            0..300,
        ),
    ) {
        assert_equals_naive(&text);
    }
}
