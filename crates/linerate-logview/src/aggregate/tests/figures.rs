//! The figures of a log that contains one line of every odd kind.

use std::collections::BTreeMap;

use super::cuts::ODD_LOG;
use crate::aggregate::{Aggregator, Limits};
use crate::summary::Summary;

fn figures(log: &[u8]) -> Summary {
    let mut aggregator = Aggregator::new(Limits::default());
    aggregator.handle_input(log);
    aggregator.handle_eof();
    aggregator.summary()
}

#[test]
fn odd_log_has_the_expected_figures() {
    let summary = figures(ODD_LOG);
    assert_eq!(summary.lines, 18);
    assert_eq!(
        (summary.requests, summary.unparsed, summary.blank),
        (11, 5, 2)
    );
    assert_eq!(summary.bytes_read, ODD_LOG.len() as u64);
    assert_eq!(summary.bytes_sent, 1 + 2 + 4 + 8 + 16 + 32 + 64 + 128 + 256);
    assert_eq!(summary.unique_addresses, 3);
    assert!(summary.unique_addresses_exact && summary.paths_exact);
    assert_eq!(summary.paths_not_counted, 0);
    assert_eq!(summary.requests_without_path, 4);
    let counts = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let pairs = pairs.iter();
        pairs
            .map(|&(key, count)| (key.to_string(), count))
            .collect()
    };
    let statuses = [("000", 1), ("200", 4), ("304", 1), ("400", 4), ("503", 1)];
    assert_eq!(summary.statuses, counts(&statuses));
    assert_eq!(summary.methods, counts(&[("GET", 6), ("POST", 1)]));
    let paths: Vec<_> = summary
        .top_paths
        .iter()
        .map(|(path, n)| (&**path, *n))
        .collect();
    let expected = [
        ("/a", 3),
        ("/", 1),
        (r"/\x22", 1),
        ("/b c", 1),
        ("/\u{FFFD}", 1),
    ];
    assert_eq!(paths, expected);
    assert_eq!(summary.unique_paths, 5);
    let classes: Vec<_> = summary.status_classes.into_values().collect();
    assert_eq!(classes, [0, 4, 1, 4, 1, 1]);
}

#[test]
fn odd_log_has_the_expected_timeline() {
    let summary = figures(ODD_LOG);
    let start = 1_611_280_020;
    assert_eq!(summary.first_time, Some(start));
    assert_eq!(summary.last_time, Some(start + 185));
    let timeline = summary.timeline;
    assert_eq!((timeline.start, timeline.bucket_seconds), (Some(start), 1));
    let by_minute = |class: &str| -> Vec<u64> {
        let minutes = timeline.classes[class].chunks(60);
        minutes.map(|minute| minute.iter().sum()).collect()
    };
    assert_eq!(by_minute("2xx"), [3, 0, 0, 1]);
    assert_eq!(by_minute("4xx"), [3, 1, 0, 0]);
    assert_eq!(timeline.outside, 0);
}

#[test]
fn first_unparsed_lines_are_shown_with_number_and_reason() {
    let summary = figures(ODD_LOG);
    let samples: Vec<_> = summary
        .unparsed_samples
        .iter()
        .map(|sample| (sample.line, sample.reason, &*sample.text))
        .collect();
    let expected = [
        (1, "missing field", "rotated"),
        (14, "bad address", "\0\0\0"),
        (15, "missing field", "\u{FFFD}\u{FFFD}"),
        (
            16,
            "bad timestamp",
            "::1 - - [99/Jan/2021:01:47:05 +0000] \"\" 200 5",
        ),
        (
            17,
            "bad status",
            "::1 - - [22/Jan/2021:01:47:05 +0000] \"\" 20 5",
        ),
    ];
    assert_eq!(samples, expected);
    let reasons: u64 = summary.unparsed_reasons.values().sum();
    assert_eq!(reasons, summary.unparsed);
}

#[test]
fn empty_log_has_no_lines_and_no_times() {
    let summary = figures(b"");
    assert_eq!(
        (summary.lines, summary.requests, summary.bytes_read),
        (0, 0, 0)
    );
    assert_eq!((summary.first_time, summary.last_time), (None, None));
    assert_eq!(summary.timeline.start, None);
    assert!(summary.timeline.classes["2xx"].is_empty());
}

#[test]
fn sum_of_bytes_stays_at_its_maximum() {
    let line = b"::1 - - [22/Jan/2021:01:47:05 +0000] \"\" 200 18446744073709551615\n";
    assert_eq!(figures(&line.repeat(3)).bytes_sent, u64::MAX);
}

#[test]
fn json_has_the_names_and_shapes_that_the_page_reads() {
    let json = serde_json::to_value(figures(ODD_LOG)).unwrap();
    assert_eq!(json["statuses"]["200"], 4);
    assert_eq!(json["status_classes"]["5xx"], 1);
    assert_eq!(json["top_paths"][0], serde_json::json!(["/a", 3]));
    assert_eq!(json["unparsed_samples"][0]["line"], 1);
    assert_eq!(json["timeline"]["classes"]["2xx"][185], 1);
    assert_eq!(json["timeline"]["start"], 1_611_280_020);
}

#[test]
fn files_of_the_same_time_have_common_busiest_minutes() {
    let file = |requests: usize| {
        (0..60).map(move |minute| {
            let line = format!(
                "192.0.2.7 - - [22/Jan/2021:01:{minute:02}:05 +0000] \"GET / HTTP/1.1\" 200 1\n"
            );
            line.repeat(if minute == 30 { requests } else { 1 })
        })
    };
    let log: String = file(5).chain(file(7)).collect();
    let firewall = figures(log.as_bytes()).firewall;
    let busiest = &firewall.by_rate[0];
    assert_eq!((busiest.peak_per_minute, firewall.error_max), (12, 0));
    assert_eq!(busiest.peak_at % 3_600, 30 * 60);
}
