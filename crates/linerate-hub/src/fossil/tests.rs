//! Tests of deltas: literals, limits, and random edits.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::{ApplyError, BYTES_MAX, apply, checksum, create};

const SOURCE: &[u8] = b"The quick brown fox jumps over the lazy dog, and then it sleeps.";

/// Applies a delta to `source` if there is one, and checks that it makes `target`.
fn check(source: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    let delta = create(source, target)?;
    assert!(delta.len() < target.len());
    assert_eq!(
        apply(source, &delta, target.len()).as_deref(),
        Ok(target),
        "{}",
        String::from_utf8_lossy(&delta)
    );
    assert!(std::str::from_utf8(target).is_err() || std::str::from_utf8(&delta).is_ok());
    Some(delta)
}

#[test]
fn a_delta_has_fossils_form() {
    let target = b"The quick brown fox jumps over the lazy cat, and then it sleeps.";
    assert_eq!(check(SOURCE, target).unwrap(), b"10\nd@0,3:catL@g,2h248N;");
    assert_eq!(
        apply(b"", b"5\n5:Hello2sPMmh;", 5).as_deref(),
        Ok(&b"Hello"[..])
    );
}

#[test]
fn what_is_equal_is_one_copy() {
    let delta = check(SOURCE, SOURCE).unwrap();
    assert!(delta.starts_with(b"10\n10@0,"), "{delta:?}");
}

#[test]
fn what_is_short_long_or_different_has_no_delta() {
    assert_eq!(create(b"", b""), None);
    assert_eq!(create(b"", SOURCE), None);
    assert_eq!(create(SOURCE, b""), None);
    assert_eq!(create(&SOURCE[..15], SOURCE), None);
    assert_eq!(create(SOURCE, &[b'x'; 64]), None);
    let longest = vec![b'a'; BYTES_MAX];
    assert!(check(&longest, &longest).unwrap().len() < 30);
    let longer = vec![b'a'; BYTES_MAX + 1];
    assert_eq!(create(&longest, &longer), None);
    assert_eq!(create(&longer, &longest), None);
}

#[test]
fn bytes_within_characters_are_copied_in_linear_time() {
    let longest = vec![0x80; BYTES_MAX];
    assert!(check(&longest, &longest).is_some());
    let mut other = longest.clone();
    other.iter_mut().step_by(17).for_each(|byte| *byte = 0xFF);
    _ = check(&longest, &other);
}

#[test]
fn characters_are_not_divided() {
    let source = "ä".repeat(40) + &"€".repeat(40) + &"😀".repeat(40);
    for (from, to) in [("ä", "ö"), ("€", "₭"), ("😀", "😁"), ("😀", "ä")] {
        for nth in [0, 1, 20, 39] {
            let at = source.match_indices(from).nth(nth).unwrap().0;
            let mut target = source.clone();
            target.replace_range(at..at + from.len(), to);
            let delta = check(source.as_bytes(), target.as_bytes()).unwrap();
            assert!(String::from_utf8(delta).unwrap().contains(to));
        }
    }
}

#[test]
fn a_checksum_is_the_sum_of_words() {
    assert_eq!(checksum(b""), 0);
    assert_eq!(checksum(b"\x01"), 0x0100_0000);
    assert_eq!(checksum(b"\x01\x02\x03\x04\xFF\xFF"), 0x0101_0304);
}

#[test]
fn what_is_no_delta_is_refused() {
    let malformed = |at| Err(ApplyError::Malformed { at });
    for (delta, at) in [
        (&b""[..], 0),
        (b"5", 2),
        (b"5:", 2),
        (b"\n", 0),
        (b"5\n", 2),
        (b"5\n5", 4),
        (b"5\n5!", 4),
        (b"5\n5:Hell", 9),
        (b"5\n5@1z,", 7),
        (b"5\n5@0;", 6),
        (b"5\n~~~~~~:", 7),
        (b"5\n3~~~~~@3~~~~~,", 16),
    ] {
        let delta_text = String::from_utf8_lossy(delta);
        assert_eq!(apply(SOURCE, delta, 100), malformed(at), "{delta_text}");
    }
    let (expected, actual) = (1, 0x4865_6C6C_u32.wrapping_add(0x6F00_0000));
    let wrong = Err(ApplyError::Checksum { expected, actual });
    assert_eq!(apply(b"", b"5\n5:Hello1;", 5), wrong);
    for (delta, bytes, bytes_max) in [
        (&b"5\n4:Hell1;"[..], 4, 5),
        (b"5\n6:Hello!1;", 6, 6),
        (b"5\n5:Hello2sPMmh;", 5, 4),
    ] {
        let expected = 5;
        let wrong = ApplyError::Length {
            bytes,
            expected,
            bytes_max,
        };
        assert_eq!(apply(b"", delta, bytes_max), Err(wrong));
    }
}

/// Returns `source` with each range replaced, as a publisher does.
fn edited(source: &[u8], edits: &[(Index, Index, Vec<u8>)]) -> Vec<u8> {
    let mut target = source.to_vec();
    for (from, to, bytes) in edits {
        let (from, to) = (from.index(target.len() + 1), to.index(target.len() + 1));
        target.splice(
            from.min(to)..from.max(to).min(from.min(to) + 20),
            bytes.iter().copied(),
        );
    }
    target
}

proptest! {
    #[test]
    fn a_delta_makes_the_target(
        source in vec(0_u8..3, 0..600),
        target in vec(0_u8..3, 0..600),
    ) {
        _ = check(&source, &target);
    }

    #[test]
    fn a_delta_of_what_was_edited_is_short(
        source in vec(any::<u8>(), 200..2_000),
        edits in vec((any::<Index>(), any::<Index>(), vec(any::<u8>(), 0..20)), 1..6),
    ) {
        let target = edited(&source, &edits);
        let delta = check(&source, &target).expect("most of it is equal");
        // Each edit may hide up to two blocks, and costs an insertion and a copy.
        prop_assert!(delta.len() < 20 + edits.len() * (20 + 2 * 16 + 24), "{}", delta.len());
    }

    #[test]
    fn deltas_of_texts_are_texts(
        source in "([ab]|ä|€|😀){20,200}",
        edits in vec((any::<Index>(), "([ab]|ä|€|😀){0,5}"), 0..5),
    ) {
        let mut target: Vec<char> = source.chars().collect();
        for (at, text) in edits {
            let at = at.index(target.len());
            target.splice(at..=at, text.chars());
        }
        let target = String::from_iter(target);
        _ = check(source.as_bytes(), target.as_bytes());
    }

    #[test]
    fn any_delta_can_be_applied_without_harm(
        source in vec(any::<u8>(), 0..50),
        delta in "[0-3~]{1,3}\n([0-3~]{0,3}[@:,;x]){0,20}",
        bytes_max in 0_usize..200,
    ) {
        if let Ok(target) = apply(&source, delta.as_bytes(), bytes_max) {
            prop_assert!(target.len() <= bytes_max);
        }
    }
}
