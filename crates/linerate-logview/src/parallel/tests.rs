//! The figures depend neither on the number of threads nor on the cuts.

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::{Cutter, Pool, Worker};
use crate::aggregate::{Aggregator, Limits};
use crate::format::Format;
use crate::query::{Query, RowsQuery};
use crate::summary::Summary;

/// Limits that the log below exceeds.
fn limits() -> Limits {
    Limits {
        line_bytes_max: 200,
        addresses_max: 40,
        path_bytes_max: 600,
        agents_max: 3,
        line_bytes_sum_max: 1 << 20,
        ..Limits::default()
    }
}

/// Returns a log with requests of many values, and with lines that are not requests.
fn log(lines: u64) -> Vec<u8> {
    let mut log = String::new();
    for n in 0..lines {
        let mixed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        match mixed % 19 {
            0 => log += "\r\n",
            1 => log += &format!("odd {n}\n"),
            2 => log += &format!("{}\n", "x".repeat(199 + n as usize % 3)),
            3 => log += &format!("{}\n", "y".repeat(3_000)),
            _ => {
                let (minute, path) = (n / 100 % 60, mixed % 301);
                let path = "p".repeat(1 + path as usize % 30) + &path.to_string();
                log += &format!(
                    "::{:x} - - [22/Jan/2021:01:{minute:02}:05 +0000] \"GET /{path} HTTP/1.1\" {} {n} \"-\" \"a{}bot\"\n",
                    mixed % 90,
                    200 + mixed % 4 * 100,
                    mixed % 7,
                );
            }
        }
    }
    log.pop();
    log.into_bytes()
}

fn one_by_one(log: &[u8]) -> Aggregator {
    let mut one = Aggregator::new(limits());
    one.handle_input(log);
    one.handle_eof();
    one
}

/// Removes the figures that depend on how much memory is held at the moment.
fn without_bytes(mut summary: Summary) -> Summary {
    (summary.filterable.bytes, summary.rows_kept.bytes) = (0, 0);
    summary
}

fn assert_same(log: &Aggregator, expected: &Aggregator) {
    assert_eq!(
        without_bytes(log.summary()),
        without_bytes(expected.summary())
    );
    let all = Query::default();
    assert_eq!(
        log.figures(&all).map(without_bytes),
        expected.figures(&all).map(without_bytes)
    );
    let rows = RowsQuery {
        query: all,
        offset: 10,
        limit: 100,
        ..RowsQuery::default()
    };
    assert_eq!(log.rows(&rows), expected.rows(&rows));
}

#[test]
fn any_number_of_threads_gives_the_figures_of_one() {
    let text = log(40_000);
    assert!(text.len() > 5 << 20);
    let expected = one_by_one(&text);
    let summary = expected.summary();
    assert!(summary.approximate && summary.panels.address.not_counted > 1_000);
    assert_eq!(
        summary.requests + summary.unparsed + summary.blank,
        summary.lines
    );
    assert_eq!(summary.unparsed_reasons.len(), 3);
    for threads in [1, 2, 5] {
        let threads = NonZeroUsize::new(threads).unwrap();
        let mut pool = Pool::new(limits(), threads);
        text.chunks(300_007)
            .for_each(|part| pool.handle_input(part));
        pool.handle_eof();
        assert_same(pool.log(), &expected);
        assert_eq!(pool.log().bytes_read(), text.len() as u64);
    }
}

#[test]
fn settling_counts_whole_lines_and_the_next_file_continues() {
    let mut pool = Pool::new(limits(), NonZeroUsize::MIN);
    let line = b"::1 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 1\n";
    pool.handle_input(&line[..30]);
    pool.settle();
    assert_eq!(pool.log().lines(), 0);
    pool.handle_input(&line[30..]);
    pool.settle();
    assert_eq!(pool.log().requests(), 1);
    pool.handle_eof();
    pool.set_format(Format::parse("json").unwrap());
    pool.handle_input(br#"{"ts":1611280025,"status":200,"request":{"method":"GET","uri":"/a"}}"#);
    pool.handle_eof();
    assert_eq!((pool.log().requests(), pool.log().lines()), (2, 2));
    assert_eq!(pool.log().summary().format, "json");
}

proptest! {
    #[test]
    fn batches_split_anywhere_give_the_same_figures(
        sizes in prop::collection::vec(1usize..9_000, 1..40),
        lines in 1u64..400,
    ) {
        let text = log(lines);
        let mut merged = Aggregator::new(limits());
        let mut worker = Worker::new(limits());
        let mut cutter = Cutter::new(200);
        let mut spare = None;
        let mut merge = |chunk| {
            let batch = worker.parse(chunk, &Format::default(), spare.take());
            merged.merge(&batch);
            spare = Some(batch);
        };
        let mut rest = &text[..];
        for size in sizes.iter().cycle() {
            let (part, more) = rest.split_at(rest.len().min(*size));
            cutter.handle_input(part, &mut merge);
            cutter.flush(&mut merge);
            rest = more;
            if rest.is_empty() {
                break;
            }
        }
        cutter.handle_eof(&mut merge);
        assert_same(&merged, &one_by_one(&text));
    }
}
