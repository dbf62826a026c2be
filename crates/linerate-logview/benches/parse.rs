//! Measures how fast a log is read and queried: newline scan, parsing, and full aggregation, on one
//! core unless the name says otherwise.
//!
//! `cargo bench -p linerate-logview` reads a generated log, or the file in `LOGVIEW_BENCH_FILE` if
//! that is set. The log is repeated to 64 MiB, so that it does not fit into the cache, and fed in
//! pieces of 256 KiB, as by a server. Repeating does not change the number of distinct addresses
//! and paths.

use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::format::{Format, Parser};
use linerate_logview::lines::{Line, LineSplitter};
use linerate_logview::parallel::Pool;
use linerate_logview::query::Query;
use linerate_logview::summary::Summary;
use linerate_simd::newline;

#[path = "../tests/it/generator.rs"]
mod generator;

const TEXT_BYTES: usize = 64 << 20;
const PIECE_BYTES: usize = 256 << 10;
const LINE_BYTES_MAX: usize = 64 << 10;

/// The log, and its expected summary.
struct Log {
    text: Vec<u8>,
    summary: Summary,
}

/// Few addresses and paths, as on a small site.
static SMALL: LazyLock<Log> = LazyLock::new(|| {
    if let Ok(file) = std::env::var("LOGVIEW_BENCH_FILE") {
        return Log::new(&std::fs::read(file).expect("LOGVIEW_BENCH_FILE must be readable"));
    }
    Log::generated(1_000, 600)
});

/// As many addresses and paths as fit, so that most lookups miss the cache.
static LARGE: LazyLock<Log> = LazyLock::new(|| Log::generated(130_000, 100_000));

impl Log {
    fn generated(addresses: u64, paths: u64) -> Self {
        let made = generator::combined(generator::Recipe {
            lines: 320_000,
            addresses,
            paths,
            seed: 7,
        });
        let mut once = Aggregator::new(Limits::default());
        once.handle_input(&made.text);
        let summary = once.summary();
        assert_eq!((summary.requests, summary.lines), (320_000, 320_000));
        assert_eq!(summary.bytes_sent, made.bytes_sent);
        Self::new(&made.text)
    }

    fn new(once: &[u8]) -> Self {
        let text = once.repeat(TEXT_BYTES.div_ceil(once.len()));
        let mut whole = Aggregator::new(Limits::default());
        whole.handle_input(&text);
        let summary = whole.summary();
        assert_eq!(summary.lines, newline::count(&text) as u64);
        assert_eq!(aggregate(&text), summary);
        assert_eq!(parse(&text), summary.bytes_sent);
        Self { text, summary }
    }
}

fn main() {
    divan::main();
}

#[divan::bench]
fn newlines(bencher: Bencher<'_, '_>) {
    let log = &*SMALL;
    assert_eq!(lines(&log.text), log.summary.lines);
    bencher
        .counter(BytesCount::of_slice(&log.text))
        .bench(|| lines(&log.text));
}

#[divan::bench]
fn fields(bencher: Bencher<'_, '_>) {
    let log = &*SMALL;
    bencher
        .counter(BytesCount::of_slice(&log.text))
        .bench(|| parse(&log.text));
}

#[divan::bench]
fn figures(bencher: Bencher<'_, '_>) {
    let log = &*SMALL;
    bencher
        .counter(BytesCount::of_slice(&log.text))
        .bench(|| aggregate(&log.text));
}

#[divan::bench]
fn figures_of_many_addresses_and_paths(bencher: Bencher<'_, '_>) {
    let log = &*LARGE;
    bencher
        .counter(BytesCount::of_slice(&log.text))
        .bench(|| aggregate(&log.text));
}

/// Measures the same with one parsing thread per core, in addition to the thread that counts.
#[divan::bench]
fn figures_by_all_cores(bencher: Bencher<'_, '_>) {
    let log = &*SMALL;
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let read = || {
        let mut pool = Pool::new(Limits::default(), threads);
        log.text
            .chunks(PIECE_BYTES)
            .for_each(|piece| pool.handle_input(piece));
        pool.handle_eof();
        pool.log().requests()
    };
    assert_eq!(read(), log.summary.requests);
    bencher.counter(BytesCount::of_slice(&log.text)).bench(read);
}

/// Measures a query that scans all requests and selects some or all of them.
#[divan::bench(args = [
    r#"method != """#,
    r#"method == "POST""#,
    r#"status >= 400 && path.contains("7") || bytes_sent > 60000 && method == "POST""#,
])]
fn query(bencher: Bencher<'_, '_>, filter: &str) {
    ask(bencher, filter);
}

/// Measures a query with the largest possible number of tests per request.
#[divan::bench]
fn query_of_64_conditions(bencher: Bencher<'_, '_>) {
    let pairs = (0..32).map(|n| format!("(path != \"/{n}\" && bytes_sent == {n})"));
    ask(bencher, &pairs.collect::<Vec<_>>().join(" || "));
}

fn ask(bencher: Bencher<'_, '_>, filter: &str) {
    let mut aggregator = Aggregator::new(Limits::default());
    aggregator.handle_input(&SMALL.text);
    let query = Query {
        filters: vec![filter.into()],
        ..Query::default()
    };
    aggregator
        .figures(&query)
        .expect("the query is within the limits");
    bencher
        .counter(ItemsCount::new(SMALL.summary.requests as usize))
        .bench(|| aggregator.figures(&query));
}

/// Measures a snapshot that ranks 100,000 paths.
#[divan::bench]
fn summary_of_many_paths(bencher: Bencher<'_, '_>) {
    let mut aggregator = Aggregator::new(Limits::default());
    aggregator.handle_input(&LARGE.text);
    assert_eq!(aggregator.summary(), LARGE.summary);
    bencher.bench(|| aggregator.summary());
}

/// Counts the lines.
fn lines(text: &[u8]) -> u64 {
    let mut splitter = LineSplitter::new(LINE_BYTES_MAX);
    let mut lines = 0;
    for piece in text.chunks(PIECE_BYTES) {
        splitter.handle_input(piece, |line| {
            divan::black_box(line);
            lines += 1;
        });
    }
    lines
}

/// Parses every line and sums the bytes sent.
fn parse(text: &[u8]) -> u64 {
    let mut splitter = LineSplitter::new(LINE_BYTES_MAX);
    let mut parser = Parser::new(Format::default());
    let mut bytes_sent = 0;
    for piece in text.chunks(PIECE_BYTES) {
        splitter.handle_input(piece, |line| {
            if let Line::Whole(line) = line
                && let Ok(record) = parser.parse(line)
            {
                bytes_sent += divan::black_box(record).bytes_sent;
            }
        });
    }
    bytes_sent
}

fn aggregate(text: &[u8]) -> Summary {
    let mut aggregator = Aggregator::new(Limits::default());
    for piece in text.chunks(PIECE_BYTES) {
        aggregator.handle_input(piece);
    }
    aggregator.summary()
}
