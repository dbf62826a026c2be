//! How much is decoded per call, and in total.

use super::files::{decode, gzip, text, zstd};
use crate::decode::{DecodeError, Decoder, Limits, PIECE_BYTES, RATIO_FREE_BYTES};

/// Decodes a file with `work_max` bytes of work per call, and checks that no call does more.
fn decode_some(file: &[u8], piece_bytes: usize, work_max: usize) -> Vec<u8> {
    let mut decoder = Decoder::new(Limits::default());
    let mut out = Vec::new();
    for mut piece in file.chunks(piece_bytes) {
        loop {
            let before = out.len();
            let progress = decoder
                .handle_some(piece, work_max, |bytes| out.extend_from_slice(bytes))
                .unwrap();
            let decoded = out.len() - before;
            // The limit may be exceeded by the bytes held back at the start, and by a member's
            // cost.
            let work_most = work_max + PIECE_BYTES + (16 << 10);
            assert!(progress.work <= work_most, "{progress:?} for {work_max}");
            assert!(
                decoded <= progress.work.max(10),
                "{decoded} in {progress:?}"
            );
            assert!(
                progress.is_done || progress.work >= work_max,
                "{progress:?}"
            );
            piece = &piece[progress.read..];
            if progress.is_done {
                assert!(piece.is_empty());
                break;
            }
        }
    }
    decoder
        .handle_eof(|bytes| out.extend_from_slice(bytes))
        .unwrap();
    out
}

#[test]
fn decoding_in_steps_gives_the_same_bytes() {
    let text = text();
    let two_members = [gzip(&text[..99_999]), gzip(&text[99_999..])].concat();
    for file in [text.clone(), gzip(&text), two_members, zstd(&text)] {
        for (piece_bytes, work_max) in [
            (file.len(), 1),
            (file.len(), 70_000),
            (7, 1),
            (1_000, 4_000),
            (file.len(), usize::MAX - (1 << 20)),
        ] {
            let out = decode_some(&file, piece_bytes, work_max);
            assert!(out == text, "{piece_bytes} bytes, {work_max} of work");
        }
    }
}

#[test]
fn empty_members_and_frames_count_as_work() {
    for (file, count) in [(gzip(b""), 1_000), (zstd(b""), 1_000)] {
        let mut decoder = Decoder::new(Limits::default());
        let file = file.repeat(count);
        let progress = decoder.handle_some(&file, 64 << 10, |_| {}).unwrap();
        assert!(
            !progress.is_done && progress.read < file.len() / 2,
            "{progress:?}"
        );
    }
}

#[test]
fn file_at_the_ratio_is_accepted_and_one_beyond_is_refused() {
    let text = text().repeat(30);
    let bytes = text.len() as u64;
    assert!(bytes > RATIO_FREE_BYTES);
    for file in [gzip(&text), zstd(&text)] {
        let mut limits = Limits {
            ratio_max: bytes.div_ceil(file.len() as u64),
            ..Limits::default()
        };
        let (out, result) = decode(&file, file.len(), limits.clone());
        assert!(result.is_ok() && out.len() == text.len(), "{result:?}");
        limits.ratio_max -= 1;
        let ratio_max = limits.ratio_max;
        let (out, result) = decode(&file, file.len(), limits);
        assert_eq!(result, Err(DecodeError::Ratio { ratio_max }));
        let most = RATIO_FREE_BYTES.max(ratio_max * file.len() as u64);
        assert!(out.len() as u64 <= most + PIECE_BYTES as u64);
    }
}

#[test]
fn first_16_mib_are_exempt_from_the_ratio() {
    let limits = Limits {
        ratio_max: 1,
        ..Limits::default()
    };
    for (more, expected) in [(0, Ok(())), (1, Err(DecodeError::Ratio { ratio_max: 1 }))] {
        let text = vec![b'x'; RATIO_FREE_BYTES as usize + more];
        let file = zstd(&text);
        let (_, result) = decode(&file, file.len(), limits.clone());
        assert_eq!(result.map(|_| ()), expected);
    }
}
