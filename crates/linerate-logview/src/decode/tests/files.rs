//! Whole files, in pieces of any size.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::decode::{DecodeError, Decoder, Encoding, Limits};

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Decodes a file in pieces of `piece_bytes`, and returns the output before an error or the end.
pub(super) fn decode(
    file: &[u8],
    piece_bytes: usize,
    limits: Limits,
) -> (Vec<u8>, Result<Option<Encoding>, DecodeError>) {
    let mut decoder = Decoder::new(limits);
    let mut out = Vec::new();
    let mut result = Ok(());
    for piece in file.chunks(piece_bytes) {
        result =
            result.and_then(|()| decoder.handle_input(piece, |bytes| out.extend_from_slice(bytes)));
    }
    let encoding = decoder.encoding();
    let result = result.and_then(|()| decoder.handle_eof(|bytes| out.extend_from_slice(bytes)));
    assert_eq!(decoder.decoded_bytes(), out.len() as u64);
    (out, result.map(|()| encoding))
}

/// Returns compressible text that decodes to more than one piece.
pub(super) fn text() -> Vec<u8> {
    let lines = (0..20_000).map(|line| format!("192.0.2.{} - - [{line}] \"GET /\"\n", line % 251));
    lines.collect::<String>().into_bytes()
}

#[test]
fn files_decode_however_they_are_split() {
    let text = text();
    let files = [
        (text.clone(), Encoding::Plain),
        (gzip(&text), Encoding::Gzip),
        (zstd(&text), Encoding::Zstd),
    ];
    for (file, encoding) in files {
        for piece_bytes in [1, 2, 3, 1_000, 65_536, file.len()] {
            let (out, result) = decode(&file, piece_bytes, Limits::default());
            assert_eq!(result, Ok(Some(encoding)));
            assert!(out == text, "{encoding:?} in pieces of {piece_bytes}");
        }
    }
}

#[test]
fn members_and_frames_follow_each_other() {
    let parts: [&[u8]; 4] = [b"one\n", b"", b"two\n", b"three"];
    let gzips: Vec<u8> = parts.iter().flat_map(|part| gzip(part)).collect();
    let zstds: Vec<u8> = parts.iter().flat_map(|part| zstd(part)).collect();
    // Skippable frames, one of them at the start as pzstd writes it.
    let skipped = b"\x50\x2A\x4D\x18\x04\0\0\0abcd";
    let skipping = [&skipped[..], &zstds, skipped].concat();
    let padded = [&gzips[..], &[0; 300]].concat();
    for file in [gzips, zstds, skipping, padded] {
        for piece_bytes in [1, 7, file.len()] {
            let (out, result) = decode(&file, piece_bytes, Limits::default());
            assert!(matches!(result, Ok(Some(_))), "{result:?}");
            assert_eq!(out, b"one\ntwo\nthree");
        }
    }
}

#[test]
fn short_files_are_complete() {
    for file in [&b""[..], b"B", b"\x1F\x8B", b"PK", b"\x28\xB5", b"a\n"] {
        for piece_bytes in [1, 9] {
            let (out, result) = decode(file, piece_bytes, Limits::default());
            assert_eq!(out, file);
            assert!(result.is_ok());
        }
    }
}
