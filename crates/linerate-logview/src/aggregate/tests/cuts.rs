//! The figures of a log do not depend on how it is cut into pieces.

use proptest::prelude::*;

use crate::aggregate::{Aggregator, Limits};
use crate::summary::Summary;

/// One line of every odd kind; the last has no line feed.
pub(super) const ODD_LOG: &[u8] = b"rotated\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a?x=1 HTTP/1.1\" 200 1 \"-\" \"curl\"\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 304 - \"-\" \"curl\"\r\n\
    \n\
    2001:db8::7 - - [22/Jan/2021:02:47:06 +0100] \"POST /a HTTP/2.0\" 200 2\n\
    \r\n\
    2001:db8::7 - John Doe [22/Jan/2021:01:47:00 +0000] \"GET / HTTP/1.1\" 200 4 \"a\\\"\" \"\\\\\"\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /\\x22 HTTP/1.1\" 503 8 \"-\" \"\\x5C\"\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"\" 400 0 \"-\" \"-\"\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"\\x16\\x03\\x01\" 400 16 \"-\" \"-\"\n\
    192.0.2.7 - - [22/Jan/2021:01:48:05 +0000] \"\x16\x03\0\xEE\" 400 32 \"-\" \"-\"\n\
    host.example - - [22/Jan/2021:01:47:05 +0000] \"-\" 400 64 \"-\" \"-\"\n\
    192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /b c HTTP/1.1\" 000 128 \"-\" \"-\"\n\
    \0\0\0\n\
    \xFF\xFE\n\
    ::1 - - [99/Jan/2021:01:47:05 +0000] \"\" 200 5\n\
    ::1 - - [22/Jan/2021:01:47:05 +0000] \"\" 20 5\n\
    192.0.2.7 - - [22/Jan/2021:01:50:05 +0000] \"GET /\xE4 HTTP/1.1\" 200 256";

/// Returns the figures, with lines of more than 100 bytes counted as too long.
fn figures<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Summary {
    let limits = Limits {
        line_bytes_max: 100,
        ..Limits::default()
    };
    let mut aggregator = Aggregator::new(limits);
    for piece in pieces {
        aggregator.handle_input(piece);
    }
    aggregator.handle_eof();
    aggregator.summary()
}

/// Returns the odd log, preceded by a line of 100 bytes and one of 101.
fn log() -> Vec<u8> {
    let longest = [&[b'x'; 100][..], b"\n", &[b'y'; 101], b"\n"].concat();
    [&longest, ODD_LOG].concat()
}

#[test]
fn every_split_and_single_bytes_give_the_same_figures() {
    let log = log();
    let whole = figures([&log[..]]);
    assert_eq!(whole.unparsed_reasons["too long"], 1);
    assert_eq!(whole.unparsed_samples[1].reason, "too long");
    assert_eq!(whole.requests + whole.unparsed + whole.blank, whole.lines);
    for at in 0..=log.len() {
        let (a, b) = log.split_at(at);
        assert_eq!(figures([a, b]), whole, "cut at {at}");
    }
    assert_eq!(figures(log.chunks(1)), whole);
}

proptest! {
    #[test]
    fn any_splits_of_a_repeated_log_give_the_same_figures(
        sizes in prop::collection::vec(0usize..700, 0..60),
    ) {
        let log = [&log()[..], b"\n"].concat().repeat(5);
        let mut rest = &log[..];
        let mut pieces = Vec::new();
        for size in sizes {
            let (piece, more) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = more;
        }
        pieces.push(rest);
        prop_assert_eq!(figures(pieces), figures([&log[..]]));
    }

    #[test]
    fn any_bytes_are_classified_as_lines(
        log in prop::collection::vec(prop::sample::select(b"\n\r [\"\\-1a\xFF\0".to_vec()), 0..400),
        cut in 1usize..400,
    ) {
        let summary = figures(log.chunks(cut));
        prop_assert_eq!(summary.requests + summary.unparsed + summary.blank, summary.lines);
        let feeds = log.iter().filter(|&&byte| byte == b'\n').count();
        let unfinished = usize::from(!log.ends_with(b"\n") && !log.is_empty());
        prop_assert_eq!(summary.lines, (feeds + unfinished) as u64);
        prop_assert_eq!(figures([&log[..]]), summary);
    }
}
