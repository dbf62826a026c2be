//! Tests of growing text and finished text.

use alloc::string::String;
use alloc::vec::Vec;
use std::vec;

use proptest::prelude::*;

use super::super::{Text, TextBuf};
use super::texts;
use crate::mask;

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

#[test]
fn masked_text_is_unmasked_as_it_is_appended() {
    let mut text = TextBuf::new();
    // RFC 6455 §5.7: a masked "Hello", in two pieces.
    text.push_masked(KEY, 0, b"\x7f\x9f").expect("is text");
    text.push_masked(KEY, 2, b"\x4d\x51\x58").expect("is text");
    assert_eq!(text.as_str(), Some("Hello"));
    assert_eq!(text.into_bytes(), b"Hello");
}

#[test]
fn unfinished_text_exposes_only_bytes() {
    let mut text = TextBuf::new();
    text.push(b"3 \xe2\x82").expect("could become text");
    assert!(!text.is_complete());
    assert_eq!(text.as_str(), None);
    assert_eq!((text.as_bytes(), text.len()), (&b"3 \xe2\x82"[..], 4));
    let mut text = text.finish().expect_err("is unfinished");
    text.push(b"\xac").expect("is text");
    assert_eq!(text.finish().expect("is finished").as_str(), "3 €");
}

#[test]
fn text_keeps_bytes_before_an_error_and_refuses_bytes_after_it() {
    let mut text = TextBuf::new();
    text.push(b"\xf4").expect("could become text");
    let error = text.push(b"\x90Spam").expect_err("is beyond U+10FFFF");
    assert_eq!(error.valid_up_to(), 0);
    assert_eq!(text.as_bytes(), b"\xf4");
    for piece in [&b"\x80"[..], b"Spam"] {
        text.push(piece).expect_err("has failed");
        assert_eq!((text.as_str(), text.as_bytes()), (None, &b"\xf4"[..]));
    }
    text.push_masked(KEY, 0, b"\x7f").expect_err("has failed");
    text.finish().expect_err("has failed");
}

#[test]
fn failed_text_does_not_expose_its_complete_part() {
    let mut text = TextBuf::new();
    text.push(b"Spam\xff")
        .expect_err("no code point begins with FF");
    assert_eq!((text.as_str(), text.as_bytes()), (None, &b"Spam"[..]));
}

#[test]
fn recycled_memory_is_reused_without_its_content() {
    let mut memory = Vec::with_capacity(64);
    memory.extend_from_slice(b"\xff\xff");
    let mut text = TextBuf::from_recycled(memory);
    assert!(text.is_empty());
    assert_eq!((text.as_str(), text.capacity()), (Some(""), 64));
    text.reserve(65);
    assert!(text.capacity() >= 65);
}

#[test]
fn text_converts_without_a_copy() {
    let string = String::from("κόσμε");
    let before = string.as_ptr();
    let text = Text::from(string);
    assert_eq!((&*text, text.as_bytes()), ("κόσμε", "κόσμε".as_bytes()));
    assert_eq!(std::format!("{text} {text:?}"), "κόσμε \"κόσμε\"");
    assert_eq!(text.clone().into_bytes(), "κόσμε".as_bytes());
    let string = text.into_string();
    assert_eq!(string.as_ptr(), before);
    assert_eq!(Text::default().as_str(), "");
}

#[test]
fn texts_can_move_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<TextBuf>();
    check::<Text>();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn text_equals_its_bytes_after_each_piece(
        bytes in texts(),
        key: [u8; 4],
        size in 1..100_usize,
        masked: bool,
    ) {
        let mut text = TextBuf::new();
        let mut sent = vec![0; bytes.len()];
        mask::naive::copy(key, 0, &bytes, &mut sent);
        for at in (0..bytes.len()).step_by(size) {
            let end = bytes.len().min(at + size);
            let result = if masked {
                text.push_masked(key, at, &sent[at..end])
            } else {
                text.push(&bytes[at..end])
            };
            let good = result.map_or_else(|error| at + error.valid_up_to(), |()| end);
            prop_assert_eq!(text.as_bytes(), &bytes[..good]);
            if good < end {
                prop_assert_eq!(text.as_str(), None);
                return Ok(());
            }
            prop_assert_eq!(text.as_str(), core::str::from_utf8(&bytes[..end]).ok());
        }
    }
}
