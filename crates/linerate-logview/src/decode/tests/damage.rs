//! Files that are damaged, hostile or of another kind.

use proptest::prelude::*;

use super::files::{decode, gzip, text, zstd};
use crate::decode::{DecodeError, Decoder, Limits};

fn error(file: &[u8]) -> DecodeError {
    decode(file, file.len().max(1), Limits::default())
        .1
        .unwrap_err()
}

fn limits(decoded_bytes_max: u64) -> Limits {
    Limits {
        decoded_bytes_max,
        ..Limits::default()
    }
}

#[test]
fn every_truncation_within_a_member_or_frame_is_detected() {
    for file in [gzip(b"one\ntwo\n"), zstd(b"one\ntwo\n")] {
        for end in 4..file.len() {
            assert_eq!(error(&file[..end]), DecodeError::Truncated, "{end}");
        }
    }
}

#[test]
fn damage_is_detected_and_earlier_bytes_are_yielded() {
    let text = text();
    let mut file = gzip(&text);
    let crc = file.len() - 8;
    file[crc] ^= 1;
    let (out, result) = decode(&file, 4_096, Limits::default());
    assert!(matches!(result, Err(DecodeError::Corrupt { at }) if at > crc as u64));
    assert!(text.starts_with(&out) && out.len() > text.len() / 2);

    let mut file = zstd(&text);
    let middle = file.len() / 2;
    file[middle..middle + 64].fill(0xFF);
    assert!(matches!(error(&file), DecodeError::Corrupt { .. }));
}

#[test]
fn only_a_member_or_zeros_may_follow_the_last_member() {
    let garbage = [&gzip(b"one\n")[..], b"garbage after it"].concat();
    assert!(matches!(error(&garbage), DecodeError::Corrupt { .. }));
    let after_zeros = [&gzip(b"one\n")[..], b"\0\0x"].concat();
    assert!(matches!(error(&after_zeros), DecodeError::Corrupt { .. }));
    let garbage = [&zstd(b"one\n")[..], b"garbage"].concat();
    assert!(matches!(error(&garbage), DecodeError::Corrupt { .. }));
}

#[test]
fn unsupported_compressions_are_named() {
    assert_eq!(
        error(b"\xFD7zXZ\0\0"),
        DecodeError::Unsupported { by: "xz" }
    );
    assert!(error(b"BZh91AY&SY").to_string().contains("bzip2"));
}

#[test]
fn failed_decoder_repeats_the_error() {
    let mut decoder = Decoder::new(Limits::default());
    let expected = Err(DecodeError::Unsupported { by: "zip" });
    assert_eq!(decoder.handle_input(b"PK\x03\x04", |_| ()), expected);
    assert_eq!(decoder.handle_input(b"more", |_| ()), expected);
    assert_eq!(decoder.handle_eof(|_| ()), expected);
}

#[test]
fn bombs_are_yielded_in_pieces_up_to_the_limit() {
    let zeros = vec![0; 8 << 20];
    let limits = limits(1 << 20);
    for file in [gzip(&zeros), zstd(&zeros), zeros.clone()] {
        let (out, result) = decode(&file, file.len(), limits.clone());
        assert_eq!(result, Err(DecodeError::TooLarge { bytes_max: 1 << 20 }));
        assert_eq!(out.len(), 1 << 20);
    }
    let limits = self::limits(8 << 20);
    for file in [gzip(&zeros), zstd(&zeros), zeros.clone()] {
        assert!(decode(&file, file.len(), limits.clone()).1.is_ok());
        let mut decoder = Decoder::new(limits.clone());
        let mut largest = 0;
        let mut pieces = |piece: &[u8]| largest = largest.max(piece.len());
        assert_eq!(decoder.handle_input(&file, &mut pieces), Ok(()));
        assert!(largest <= 64 << 10 || file.len() == zeros.len());
    }
}

#[test]
fn windows_beyond_the_limit_are_refused() {
    // A frame without content size and with a window of 2^log bytes; 2^23 is the limit.
    let frame = |log: u8| [b"\x28\xB5\x2F\xFD\0", &[(log - 10) << 3][..], b"\x01\0\0"].concat();
    assert_eq!(
        decode(&frame(23), 99, Limits::default()).1.map(|_| ()),
        Ok(())
    );
    assert_eq!(
        error(&frame(24)),
        DecodeError::Window { bytes_max: 8 << 20 }
    );
}

proptest! {
    #[test]
    fn no_damage_makes_the_decoder_panic_or_forget_its_limit(
        is_gzip in any::<bool>(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..9),
        piece_bytes in 1usize..200,
    ) {
        let text = &text()[..20_000];
        let mut file = if is_gzip { gzip(text) } else { zstd(text) };
        let at = at.index(file.len() - bytes.len());
        file[at..at + bytes.len()].copy_from_slice(&bytes);
        let (out, _) = decode(&file, piece_bytes, limits(100_000));
        prop_assert!(out.len() <= 100_000);
    }
}
