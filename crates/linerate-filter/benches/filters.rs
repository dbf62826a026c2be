//! What filters cost: one over a payload, a thousand over the same, and hostile texts to the parser.
//!
//! `cargo bench -p linerate-filter`. Answers are checked before they are timed.

use std::sync::Arc;

use divan::{Bencher, black_box, counter::ItemsCount};
use linerate_filter::{Filter, FilterSet, Limits};

const PAYLOAD: &[u8] = br#"{"time":"2026-11-22T10:15:30.123Z","level":"error","host":"web-17.example.com","method":"GET","path":"/api/v1/orders/4711","status":502,"bytes":1834,"duration_ms":12.75,"agent":"Mozilla/5.0 (X11; Linux x86_64)","request":"r500","retries":[0,1],"ok":false}"#;

const FILTERS: usize = 1_000;

fn main() {
    divan::main();
}

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::new(text, &Limits::default()).expect("is a filter"))
}

fn count(set: &FilterSet) -> usize {
    let mut count = 0;
    set.visit(black_box(PAYLOAD), |_| count += 1);
    count
}

#[divan::bench]
fn one_filter(bencher: Bencher<'_, '_>) {
    let filter = filter(r#"level == "error" && bytes > 1000"#);
    assert!(filter.matches(PAYLOAD));
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench(|| filter.matches(black_box(PAYLOAD)));
}

/// Filters that an index has, and filters that are evaluated one by one.
fn texts(kind: &str) -> impl Iterator<Item = String> {
    let is_indexed = kind == "indexed";
    (0..FILTERS).map(move |number| match is_indexed {
        true => format!(r#"request == "r{number}" && bytes > 1000"#),
        false => format!("bytes > {}", number + 1_334),
    })
}

#[divan::bench(args = ["indexed", "evaluated"])]
fn thousand_filters_in_a_set(bencher: Bencher<'_, '_>, kind: &str) {
    let mut set = FilterSet::default();
    texts(kind)
        .enumerate()
        .for_each(|(id, text)| set.insert(id, filter(&text)));
    assert_eq!(count(&set), if kind == "indexed" { 1 } else { 500 });
    bencher
        .counter(ItemsCount::new(FILTERS))
        .bench(|| count(&set));
}

#[divan::bench(args = ["indexed", "evaluated"])]
fn thousand_filters_one_by_one(bencher: Bencher<'_, '_>, kind: &str) {
    let filters: Vec<_> = texts(kind).map(|text| filter(&text)).collect();
    let count = || {
        filters
            .iter()
            .filter(|filter| filter.matches(black_box(PAYLOAD)))
            .count()
    };
    assert_eq!(count(), if kind == "indexed" { 1 } else { 500 });
    bencher.counter(ItemsCount::new(FILTERS)).bench(count);
}

/// A kibibyte of each.
#[divan::bench(args = ["(", "!", "a.", "a||", "(a||b)&&", "a in [1,2,3,", "'\\x41", "🦀", "a.b.c.d&&", "1.5e10||", "a==b||"])]
fn parse_hostile(bencher: Bencher<'_, '_>, part: &str) {
    let limits = Limits::default();
    let mut text = part.repeat(limits.expression_bytes_max / part.len());
    if part.starts_with("a in") {
        text = format!("a in [{}1]", "1,".repeat(508));
    }
    bencher.bench(|| Filter::new(black_box(&text), &limits).is_ok());
}
