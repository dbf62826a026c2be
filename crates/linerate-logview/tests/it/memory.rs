//! What aggregation costs in memory, by a counting allocator.

use std::io::Write;

use linerate_logview::aggregate::{Aggregator, Limits};

use crate::generator::{self, Recipe};

const MIB: u64 = 1 << 20;

#[test]
fn known_addresses_and_paths_allocate_nothing() {
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
    assert_eq!(cost.count_total, 0);
    assert_eq!(aggregator.requests(), 40_000);
    assert_eq!(aggregator.summary().bytes_sent, 2 * log.bytes_sent);
}

/// Appends a line whose address, path and time no other line has.
fn write_distinct(line: u64, text: &mut Vec<u8>) {
    let [a, b] = [line >> 16, line & 0xFFFF];
    let year = 1970 + line % 230;
    write!(
        text,
        "2001:0db8:1111:2222:3333:4444:{a:04x}:{b:04x} - - [22/Jan/{year}:01:47:05 +0000] \
         \"M{} /{line:0127} HTTP/1.1\" 200 5\n{line:0199}\n",
        line % 1_000,
    )
    .expect("a vector takes all");
}

#[test]
fn all_limits_reached_hold_less_than_40_mib() {
    let mut text = Vec::with_capacity(1 << 20);
    let mut aggregator = Aggregator::new(Limits::default());
    let cost = allocation_counter::measure(|| {
        for line in 0..300_000 {
            write_distinct(line, &mut text);
            aggregator.handle_input(&text);
            text.clear();
        }
        aggregator.handle_input(&[b'x'; 64 << 10]);
    });
    let summary = aggregator.summary();
    assert_eq!(summary.requests, 300_000);
    assert_eq!(
        (summary.unique_addresses, summary.unique_paths),
        (262_144, 131_072)
    );
    assert!(!summary.unique_addresses_exact && !summary.paths_exact);
    let held = u64::try_from(cost.bytes_current).unwrap();
    assert!(held < 40 * MIB, "{held}");
    // While a buffer grows, the allocator may hold the old one too.
    assert!(cost.bytes_max < 50 * MIB, "{}", cost.bytes_max);
    let said = aggregator.memory_bytes() as u64;
    assert!(said.abs_diff(held) < 64 << 10, "{said} said, {held} held");
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
