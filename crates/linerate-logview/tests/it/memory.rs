//! The memory use of aggregation, measured with a counting allocator.

use std::io::Write;

use linerate_logview::{
    aggregate::{Aggregator, Limits},
    session::{self, Followed},
};

use crate::generator::{self, Recipe};

const MIB: u64 = 1 << 20;

#[test]
fn known_values_allocate_nothing_but_columns() {
    let log = generator::combined(Recipe {
        lines: 20_000,
        addresses: 500,
        paths: 500,
        seed: 3,
    });
    let pieces = || log.text.chunks(4_099);
    let mut aggregator = Aggregator::new(Limits::default());
    pieces().for_each(|piece| aggregator.handle_input(piece));
    let cost = allocation_counter::measure(|| {
        pieces().for_each(|piece| aggregator.handle_input(piece));
    });
    // One block of columns is allocated for every 4,096 requests.
    assert!(
        cost.count_total < 20_000 / 4_096 * 24,
        "{}",
        cost.count_total
    );
    assert_eq!(aggregator.requests(), 40_000);
    assert_eq!(aggregator.summary().bytes_sent, 2 * log.bytes_sent);
}

/// Appends a line whose address, path, agent and referrer are unique.
pub(crate) fn write_distinct(line: u64, text: &mut Vec<u8>) {
    let [a, b] = [line >> 16, line & 0xFFFF];
    let year = 1970 + line % 230;
    write!(
        text,
        "2001:0db8:1111:2222:3333:4444:{a:04x}:{b:04x} - - [22/Jan/{year}:01:47:05 +0000] \
         \"M{} /{line:063} HTTP/1.1\" 200 {} \"{line:0300}\" \"bot {line:0300}\"\n{line:0199}\n",
        line % 1_000,
        line * 7_919 % (1 << 24),
    )
    .expect("writing to a vector succeeds");
}

/// Reads lines with distinct values. Returns the aggregator, the bytes that it holds, and the most
/// that it held at any time.
fn read_distinct(lines: u64) -> (Aggregator, u64, u64) {
    let mut text = Vec::with_capacity(1 << 20);
    let mut created = None;
    let cost = allocation_counter::measure(|| {
        let aggregator = created.insert(Aggregator::new(Limits::default()));
        for line in 0..lines {
            write_distinct(line, &mut text);
            aggregator.handle_input(&text);
            text.clear();
        }
        aggregator.handle_input(&[b'x'; 64 << 10]);
    });
    let held = u64::try_from(cost.bytes_current).expect("more is allocated than freed");
    let aggregator = created.expect("the aggregator was created");
    (aggregator, held, cost.bytes_max)
}

#[test]
fn all_limits_reached_hold_less_than_80_mib() {
    let (aggregator, held, most) = read_distinct(300_000);
    let summary = aggregator.summary();
    assert_eq!(summary.requests, 300_000);
    let panels = summary.panels;
    for panel in [panels.address, panels.path, panels.agent, panels.referrer] {
        assert!(!panel.exact);
        assert!(
            panel.distinct.abs_diff(300_000) < 300_000 / 40,
            "{}",
            panel.distinct
        );
        // A value that occurred once may have replaced any other, so the error is not zero.
        let error_max = panel.error_max;
        assert!(
            (1..=panel.not_counted / 2_048).contains(&error_max),
            "{error_max}"
        );
    }
    // The rows have not reached their limit yet.
    let columns = summary.filterable;
    assert!(columns.complete);
    let with_columns = held + columns.bytes_max - columns.bytes;
    assert!(with_columns < 80 * MIB, "{with_columns}");
    // While a buffer grows, the allocator may also hold the old one.
    assert!(most < held + 10 * MIB, "{most}");
    let said = aggregator.memory_bytes() as u64;
    assert!(said.abs_diff(held) < 128 << 10, "{said} said, {held} held");
}

/// Takes minutes in a debug build.
#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes in a debug build")]
fn ten_million_distinct_values_hold_less_than_80_mib() {
    let (aggregator, held, most) = read_distinct(10_000_000);
    let summary = aggregator.summary();
    assert_eq!(summary.requests, 10_000_000);
    let path = summary.panels.path;
    assert!(
        path.distinct.abs_diff(10_000_000) < 10_000_000 / 40,
        "{}",
        path.distinct
    );
    assert!(!summary.filterable.complete);
    assert!(held < 40 * MIB && most < 80 * MIB, "{held} {most}");
}

#[test]
fn followed_log_stays_within_its_limit_for_any_input() {
    for bytes_max in [8 * MIB, 24 * MIB] {
        let mut limits = session::Limits::default();
        limits.aggregate = limits.aggregate.within(bytes_max as usize);
        let mut text = Vec::with_capacity(1 << 20);
        let mut log = None;
        let cost = allocation_counter::measure(|| {
            let mut followed = Followed::new(limits);
            for line in 0..60_000 {
                write_distinct(line, &mut text);
                if text.len() > 200 << 10 {
                    followed
                        .handle_input(&text)
                        .expect("plain text always decodes");
                    text.clear();
                }
            }
            log = Some(followed);
        });
        let held = u64::try_from(cost.bytes_current).expect("more is allocated than freed");
        assert!(held <= bytes_max, "{held} of {bytes_max}");
        assert!(held > bytes_max / 4, "{held} of {bytes_max}");
        // While a list grows, the allocator may also hold the old one.
        assert!(
            cost.bytes_max <= bytes_max * 5 / 4,
            "{} of {bytes_max}",
            cost.bytes_max
        );
        let said = log.expect("the log was created").memory_bytes() as u64;
        assert!(said + MIB / 8 >= held, "{said} said, {held} held");
    }
}

#[test]
fn endless_lines_are_not_kept() {
    let piece = vec![b'x'; 1 << 20];
    let mut aggregator = Aggregator::new(Limits::default());
    let cost = allocation_counter::measure(|| {
        (0..16).for_each(|_| aggregator.handle_input(&piece));
    });
    assert!(cost.bytes_max < MIB / 2, "{}", cost.bytes_max);
    assert_eq!(aggregator.summary().unparsed, 1);
}
