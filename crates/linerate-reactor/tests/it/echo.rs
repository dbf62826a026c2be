//! Messages of all sizes, in all kinds of pieces, are echoed.

use std::{io::Write, thread};

use linerate_reactor::Options;
use linerate_testkit::Rng;

use crate::support::{ACCEPTED, Echo, REQUEST, Raw, Running, fragment, masked, unmasked};

/// Sends `wire` from another thread, so that data moves in both directions, and checks the reply.
fn comes_back(raw: &mut Raw, wire: Vec<u8>, expected: &[u8]) {
    let mut sending = raw.stream.try_clone().unwrap();
    let sender = thread::spawn(move || sending.write_all(&wire).unwrap());
    let read = raw.read(expected.len());
    assert!(read == expected, "{} bytes differ", expected.len());
    sender.join().unwrap();
}

#[test]
fn messages_of_all_sizes_come_back() {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = 20 << 20;
    let server = Running::start(Echo, 1, options);
    let mut raw = Raw::open(server.address);
    let mut rng = Rng::new(1);
    let sizes = [
        0,
        1,
        125,
        126,
        4_095,
        4_096,
        65_535,
        65_536,
        262_130,
        262_144,
        1 << 20,
        17 << 20,
    ];
    for bytes in sizes {
        let payload = rng.bytes(bytes);
        comes_back(&mut raw, masked(0x2, &payload), &unmasked(0x2, &payload));
        let text = "zażółć gęślą jaźń ".repeat(bytes / 27);
        let text = text.as_bytes();
        comes_back(&mut raw, masked(0x1, text), &unmasked(0x1, text));
    }
}

#[test]
fn messages_in_flight_come_back_in_order() {
    let server = Running::echo();
    let mut raw = Raw::open(server.address);
    let mut rng = Rng::new(2);
    let (mut wire, mut expected) = (Vec::new(), Vec::new());
    for number in 0..3_000_usize {
        let most = if number % 50 == 0 { 40_000 } else { 200 };
        let bytes = rng.below(most);
        let payload = rng.bytes(bytes);
        wire.extend(masked(0x2, &payload));
        expected.extend(unmasked(0x2, &payload));
    }
    comes_back(&mut raw, wire, &expected);
}

#[test]
fn fragments_become_one_message() {
    let server = Running::echo();
    let mut raw = Raw::open(server.address);
    for bytes in [3, 3_000, 90_000] {
        let text = "€".repeat(bytes);
        let text = text.as_bytes();
        let cut = bytes + 1;
        let wire = [
            fragment(0x1, &text[..cut], false),
            masked(0x9, b"in between"),
            fragment(0x0, &text[cut..], false),
            fragment(0x0, b"", true),
        ];
        let expected = [unmasked(0xA, b"in between"), unmasked(0x1, text)];
        comes_back(&mut raw, wire.concat(), &expected.concat());
    }
}

#[test]
fn every_way_to_cut_the_input_comes_to_the_same() {
    let server = Running::echo();
    let wire = [
        masked(0x1, "Spam €".as_bytes()),
        masked(0x9, b"ping"),
        fragment(0x2, b"ab", false),
        fragment(0x0, b"", false),
        fragment(0x0, b"cd", true),
        masked(0x2, &[7; 130]),
        masked(0x8, b"\x03\xe8bye"),
    ]
    .concat();
    let expected = [
        unmasked(0x1, "Spam €".as_bytes()),
        unmasked(0xA, b"ping"),
        unmasked(0x2, b"abcd"),
        unmasked(0x2, &[7; 130]),
        unmasked(0x8, b"\x03\xe8"),
    ]
    .concat();
    for at in 0..wire.len() {
        let mut raw = Raw::open(server.address);
        raw.send(&wire[..at]);
        if at % 8 == 0 {
            // This lets the two parts arrive in two reads, at least some of the time.
            thread::sleep(std::time::Duration::from_millis(3));
        }
        raw.send(&wire[at..]);
        assert_eq!(raw.rest(), expected, "cut at {at}");
    }
    let mut raw = Raw::open(server.address);
    wire.iter().for_each(|byte| raw.send(&[*byte]));
    assert_eq!(raw.rest(), expected, "byte by byte");
}

#[test]
fn frames_behind_the_request_are_not_lost() {
    let server = Running::echo();
    let mut raw = Raw::connect(server.address);
    raw.send(
        &[
            REQUEST.as_bytes(),
            &masked(0x1, b"eager"),
            &masked(0x2, b"x")[..3],
        ]
        .concat(),
    );
    let expected = [ACCEPTED.as_bytes(), &unmasked(0x1, b"eager")].concat();
    assert_eq!(raw.read(expected.len()), expected);
    raw.send(&masked(0x2, b"x")[3..]);
    assert_eq!(raw.frame(), (0x82, b"x".to_vec()));
}

#[test]
fn a_connection_may_turn_from_small_messages_to_large_ones_and_back() {
    let server = Running::echo();
    let mut raw = Raw::open(server.address);
    let mut rng = Rng::new(3);
    for _ in 0..20 {
        for _ in 0..5 {
            raw.round_trip();
        }
        let (mut wire, mut expected) = (Vec::new(), Vec::new());
        for _ in 0..10 {
            let payload = rng.bytes(20_000);
            wire.extend(masked(0x2, &payload));
            expected.extend(unmasked(0x2, &payload));
        }
        comes_back(&mut raw, wire, &expected);
    }
}
