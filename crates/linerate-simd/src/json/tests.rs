//! The structure equals what a byte-wise twin finds.

use alloc::string::String;
use alloc::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::block::{BLOCK_LEN, Classes, classify_baseline, classify_portable};
use super::{Block, DEPTH_MAX, Marks, Structure, find_marks, find_with, marks};

/// Splits a text into tokens, byte by byte: their offsets, and which bytes belong to scalars. `None`
/// if a string is malformed.
fn naive_tokens(text: &[u8]) -> Option<(Vec<usize>, Vec<bool>)> {
    let mut offsets = Vec::new();
    let mut scalars = vec![false; text.len()];
    let (mut in_string, mut is_escaped, mut in_scalar) = (false, false, false);
    for (at, byte) in text.iter().copied().enumerate() {
        // A backslash outside of strings escapes, too.
        let was_escaped = core::mem::take(&mut is_escaped);
        is_escaped = byte == b'\\' && !was_escaped;
        let is_quote = byte == b'"' && !was_escaped;
        if in_string {
            if byte < 0x20 {
                return None;
            }
            in_string = !is_quote;
            in_scalar = false;
            continue;
        }
        if is_quote && in_scalar {
            return None;
        }
        let is_operator = b"[]{},:".contains(&byte);
        let is_blank = b" \t\n\r".contains(&byte);
        if is_operator || (!is_blank && !in_scalar) {
            offsets.push(at);
        }
        in_scalar = !is_operator && !is_blank && !is_quote;
        in_string = is_quote;
        scalars[at] = in_scalar;
    }
    (!in_string).then_some((offsets, scalars))
}

/// Reads a value of RFC 8259 from token to token; returns the place of the token after it.
fn naive_value(kinds: &[u8], at: usize, depth: usize) -> Option<usize> {
    let (close, is_object) = match kinds.get(at)? {
        b'"' | b'1' => return Some(at + 1),
        b'[' => (b']', false),
        b'{' => (b'}', true),
        _ => return None,
    };
    if depth == DEPTH_MAX {
        return None;
    }
    let mut at = at + 1;
    if kinds.get(at) == Some(&close) {
        return Some(at + 1);
    }
    loop {
        if is_object {
            if kinds.get(at..at + 2) != Some(b"\":") {
                return None;
            }
            at += 2;
        }
        at = naive_value(kinds, at, depth + 1)?;
        match *kinds.get(at)? {
            b',' => at += 1,
            byte if byte == close => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Returns the blocks of a text, if it has the structure of JSON.
fn naive(text: &[u8]) -> Option<Vec<Block>> {
    let (offsets, scalars) = naive_tokens(text)?;
    let mut blocks = vec![Block::default(); text.len().div_ceil(BLOCK_LEN)];
    let mut kinds = Vec::new();
    for at in offsets {
        blocks[at / BLOCK_LEN].tokens |= 1 << (at % BLOCK_LEN);
        if b"[]{}:,\"".contains(&text[at]) {
            kinds.push(text[at]);
        } else {
            mark_odd(text, &scalars, at, &mut blocks);
            kinds.push(b'1');
        }
    }
    (naive_value(&kinds, 0, 0)? == kinds.len()).then_some(blocks)
}

/// Marks the odd bytes of the scalar at `from`.
fn mark_odd(text: &[u8], scalars: &[bool], from: usize, blocks: &mut [Block]) {
    let is_end = |at: usize| !scalars.get(at).is_some_and(|is_scalar| *is_scalar);
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut mark = |at: usize| blocks[at / BLOCK_LEN].odd |= 1 << (at % BLOCK_LEN);
    // What is in the next block is not looked at.
    if text[from] == b'0' && (is_digit(from + 1) || from % BLOCK_LEN == BLOCK_LEN - 1) {
        mark(from);
    }
    for at in (from..).take_while(|at| !is_end(*at)) {
        let is_first = at == from || is_digit(at - 1) || at % BLOCK_LEN == 0;
        if !is_digit(at) && is_first {
            mark(at);
        }
    }
}

/// Returns the marks of any text.
fn naive_marks(text: &[u8]) -> Vec<Marks> {
    let mut marks = vec![Marks::default(); text.len().div_ceil(BLOCK_LEN)];
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in text.iter().copied().enumerate() {
        let (marks, bit) = (&mut marks[at / BLOCK_LEN], 1 << (at % BLOCK_LEN));
        let was_escaped = core::mem::take(&mut is_escaped);
        is_escaped = byte == b'\\' && !was_escaped;
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
            b'[' | b']' | b'{' | b'}' => marks.brackets |= bit,
            b':' => marks.colons |= bit,
            b',' => marks.commas |= bit,
            _ => {}
        }
    }
    marks
}

/// Compares with the twin, and the kernel that this processor takes with those that others would.
#[track_caller]
fn assert_equals_naive(text: &[u8]) -> bool {
    let expected = naive(text);
    let found = Structure::of(text);
    let shown = text.escape_ascii();
    assert_eq!(
        found.as_ref().map(|found| found.blocks().to_vec()),
        expected,
        "{shown}"
    );
    if let Some(found) = &found {
        assert_eq!(found.has_backslashes(), text.contains(&b'\\'), "{shown}");
        assert_eq!(found.is_ascii(), text.is_ascii(), "{shown}");
    }
    let marks = naive_marks(text);
    let mut found = Vec::new();
    let has_backslashes = find_marks(text, |marks| found.push(marks));
    assert_eq!(has_backslashes, text.contains(&b'\\'));
    assert_eq!(found, marks, "{shown}");
    for kernel in kernels() {
        let mut found = Vec::new();
        marks::find_with(text, |marks| found.push(marks), kernel);
        assert_eq!(found, marks, "{shown}");
        let mut blocks = Vec::new();
        let grammar = find_with(text, &mut blocks, kernel);
        let found = grammar.is_whole().then_some(blocks);
        assert_eq!(found, expected, "{shown}");
    }
    expected.is_some()
}

type Kernel = fn(&[u8; BLOCK_LEN]) -> Classes;

fn kernels() -> Vec<Kernel> {
    let mut kernels: Vec<Kernel> = vec![classify_baseline, classify_portable];
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor was asked for what the function needs.
        kernels.push(|block| unsafe { super::block::classify_avx2(block) });
    }
    kernels
}

#[test]
fn each_byte_is_told_apart_at_every_offset() {
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
                // SAFETY: the processor was asked for what the function needs.
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
fn all_short_rows_of_tokens_are_json_or_not_as_the_twin_says() {
    const TOKENS: [&str; 8] = ["[", "]", "{", "}", ",", ":", "\"a\"", "1 "];
    let mut found = 0;
    // Once within a block, and once from block to block.
    for tokens in 0..=if cfg!(miri) { 3_u32 } else { 5 } {
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
    }
}

#[test]
fn rows_of_backslashes_escape_what_is_behind_an_odd_number() {
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

/// Pieces that often make JSON.
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
    fn json_has_its_structure_and_what_is_changed_has_that_of_the_twin(
        text in text(),
        at in any::<prop::sample::Index>(),
        with in prop_oneof![prop::sample::select(&b"[]{},:\" \\1\n"[..]), any::<u8>()],
    ) {
        assert_equals_naive(&text);
        let at = at.index(text.len());
        let mut changed = text.clone();
        changed[at] = with;
        assert_equals_naive(&changed);
        changed.remove(at);
        assert_equals_naive(&changed);
    }

    #[test]
    fn any_bytes_have_the_structure_of_the_twin(
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
