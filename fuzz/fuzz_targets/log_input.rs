//! Any bytes as access logs in any format, compressed or not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_logview::{
    aggregate::{self, Aggregator},
    decode::{self, DecodeError},
    format::Format,
    input::{Input, LogEvent},
    summary::Summary,
};

const DECODED_BYTES_MAX: u64 = 1 << 17;

// The first line is a format, or anything else to detect the format; the rest is a file. The result
// does not depend on how its bytes are split, and every line is counted once.
fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(2, |&byte| byte == b'\n');
    let format = parts.next().and_then(|text| std::str::from_utf8(text).ok());
    let format = format.and_then(|text| Format::parse(text).ok());
    let file = parts.next().unwrap_or_default();

    let (whole, error) = read(format.clone(), file, file.len().max(1));
    assert_eq!(whole.requests + whole.unparsed + whole.blank, whole.lines);
    assert_eq!(whole.unparsed_reasons.values().sum::<u64>(), whole.unparsed);
    assert_eq!(whole.statuses.values().sum::<u64>(), whole.requests);
    assert!(whole.bytes_read <= DECODED_BYTES_MAX);
    for piece_bytes in [1, 7, 250] {
        let (cut, cut_error) = read(format.clone(), file, piece_bytes);
        assert_eq!(cut_error.is_some(), error.is_some());
        // How much is decompressed before damage is detected depends on the pieces.
        if error.is_none() {
            assert!(cut == whole, "pieces of {piece_bytes}");
        }
    }
});

fn read(format: Option<Format>, file: &[u8], piece_bytes: usize) -> (Summary, Option<DecodeError>) {
    let mut limits = decode::Limits::default();
    limits.decoded_bytes_max = DECODED_BYTES_MAX;
    let mut log = Aggregator::new(aggregate::Limits::default());
    let mut input = Input::new(format, limits);
    let mut take = |event: LogEvent<'_>| match event {
        LogEvent::Bytes(bytes) => log.handle_input(bytes),
        LogEvent::Format(format) => log.set_format(format.clone()),
        _ => {}
    };
    let mut pieces = file.chunks(piece_bytes);
    let result = pieces
        .try_for_each(|piece| input.handle_input(piece, &mut take))
        .and_then(|()| input.handle_eof(&mut take));
    log.handle_eof();
    (log.summary(), result.err())
}
