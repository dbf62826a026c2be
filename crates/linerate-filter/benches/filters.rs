//! Measures filters: one on a payload, a thousand on the same payload, and the parser on hostile
//! texts.
//!
//! `cargo bench -p linerate-filter`. Each benchmark checks its answers before it is timed.

use std::sync::Arc;

use divan::{Bencher, black_box, counter::ItemsCount};
use linerate_filter::{Filter, FilterSet, Limits};

const PAYLOAD: &[u8] = br#"{"time":"2026-11-22T10:15:30.123Z","level":"error","host":"web-17.example.com","method":"GET","path":"/api/v1/orders/4711","status":502,"bytes":1834,"duration_ms":12.75,"agent":"Mozilla/5.0 (X11; Linux x86_64)","request":"r500","retries":[0,1],"ok":false}"#;

const FILTERS: usize = 1_000;

fn main() {
    divan::main();
}

fn filter(text: &str) -> Arc<Filter> {
    Arc::new(Filter::new(text, &Limits::default()).expect("the text is a filter"))
}

fn count(set: &FilterSet) -> usize {
    let mut count = 0;
    set.visit(black_box(PAYLOAD), |_| count += 1);
    count
}

/// Both comparisons hold, or the second one fails.
#[divan::bench(args = [true, false])]
fn one_filter(bencher: Bencher<'_, '_>, is_match: bool) {
    let bytes = if is_match { 1_000 } else { 2_000 };
    let filter = filter(&format!(r#"level == "error" && bytes > {bytes}"#));
    assert_eq!(filter.matches(PAYLOAD), is_match);
    bencher
        .counter(ItemsCount::new(1_usize))
        .bench(|| filter.matches(black_box(PAYLOAD)));
}

/// Returns filters that an index can find, or filters that must be evaluated one by one.
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

/// Returns a text of up to 1 KiB: the longest valid filter of its kind, or a hostile text.
fn shape(name: &str) -> String {
    let fill = |part: &str, end: &str| {
        let bytes = Limits::default().expression_bytes_max - end.len();
        format!("{}{end}", part.repeat(bytes / part.len()))
    };
    match name {
        "list of digits" => format!("a in [{}1]", "1,".repeat(508)),
        "list of decimals" => format!("a in [{}1]", "1.5e1,".repeat(169)),
        "list of negatives" => format!("a in [{}1]", "-1,".repeat(338)),
        "list of strings" => format!("a in [{}'']", "'',".repeat(338)),
        "list of words" => format!("a in [{}null]", "true,".repeat(202)),
        "one string" => format!("a == '{}'", "x".repeat(1_016)),
        "escapes" => format!(r"a == '{}'", r"\x41".repeat(254)),
        "names" => vec!["abcdefghijklm"; 32].join("||"),
        "steps" => fill("a.", "a"),
        "indices" => format!("a{}", "['b']".repeat(62)),
        "disjunction" => fill("a||", "a"),
        "comparisons" => vec!["a==b"; 16].join("||"),
        "nested" => format!("{}a{}", "(".repeat(32), ")".repeat(32)),
        "brackets" => fill("(", ""),
        "not" => fill("!", "a"),
        "minus" => fill("- ", "1"),
        "blanks" => fill(" ", "a"),
        "comments" => fill("//\n", "a"),
        "functions" => fill("size(", "a"),
        "tests" => vec!["a.contains(b)"; 16].join("||"),
        "no token" => fill("🦀", ""),
        other => unreachable!("{other}"),
    }
}

#[divan::bench(args = [
    "list of digits", "list of decimals", "list of negatives", "list of strings", "list of words", "one string",
    "escapes", "names", "steps", "indices", "disjunction", "comparisons", "nested", "brackets", "not", "minus",
    "blanks", "comments", "functions", "tests", "no token",
])]
fn parse_kibibyte(bencher: Bencher<'_, '_>, name: &str) {
    let limits = Limits::default();
    let text = shape(name);
    assert!(text.len() <= limits.expression_bytes_max, "{}", text.len());
    bencher.bench(|| Filter::new(black_box(&text), &limits).is_ok());
}
