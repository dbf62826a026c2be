//! Slow readers, pausing, and the ways to send messages.

use std::sync::{Arc, Mutex};

use linerate_reactor::{
    CloseCode, Closed, ConnectionId, Context, Handler, Message, MessageKind, Opened, Options,
    SendError,
};

use crate::support::{Raw, Running, fragment, masked, unmasked, wait_until};

/// The log of a handler.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Log>>);

#[derive(Debug, Default)]
struct Log {
    messages: usize,
    drains: usize,
    backlog_bytes_max: usize,
    paused: Option<ConnectionId>,
    closed: Vec<Closed>,
    pings: Vec<Vec<u8>>,
    last_in_input: Vec<bool>,
}

/// Does what each message asks for.
#[derive(Clone, Default)]
struct Obedient(Seen);

impl Handler for Obedient {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let mut log = self.0.0.lock().unwrap();
        log.messages += 1;
        log.last_in_input.push(cx.last_in_input());
        match message {
            Message::Text("large") => cx.send_binary(&[7; 300_000]).unwrap(),
            Message::Text("pause") => {
                cx.pause();
                log.paused = Some(cx.id());
            }
            Message::Text("parts") => {
                let large = [b'x'; 5_000];
                cx.send_parts(MessageKind::Text, &[b"a", &large, b"", b"b"])
                    .unwrap();
            }
            Message::Text("fill") => {
                cx.send_with(MessageKind::Binary, 3, |payload| payload[1] = 9)
                    .unwrap();
            }
            Message::Text("frames") => {
                cx.send_frames(20, |frames| {
                    while frames.push(linerate_proto::Opcode::Text, b"tick", None) {}
                })
                .unwrap();
            }
            Message::Text("ping") => cx.ping(b"there?").unwrap(),
            Message::Text("close") => {
                cx.send_text("before").unwrap();
                cx.close(CloseCode::NORMAL, "enough").unwrap();
                assert_eq!(cx.send_text("after"), Err(SendError::Closed));
            }
            Message::Binary(bytes) => {
                // The message without a copy, a part of it, and another message after them.
                cx.send_binary(bytes).unwrap();
                cx.send_binary(&bytes[1..]).unwrap();
                cx.send_text("end").unwrap();
            }
            Message::Text(text) => cx.send_text(text).unwrap(),
        }
        log.backlog_bytes_max = log.backlog_bytes_max.max(cx.backlog_bytes());
    }

    fn drain(&mut self, (): &mut (), cx: &mut Context<'_>) {
        assert_eq!(cx.backlog_bytes(), 0);
        self.0.0.lock().unwrap().drains += 1;
    }

    fn pong(&mut self, (): &mut (), cx: &mut Context<'_>, payload: &[u8]) {
        cx.send_binary(payload).unwrap();
    }

    fn ping(&mut self, (): &mut (), _cx: &mut Context<'_>, payload: &[u8]) {
        self.0.0.lock().unwrap().pings.push(payload.to_vec());
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, closed: Closed) {
        assert_eq!(cx.send_text("too late"), Err(SendError::Closed));
        self.0.0.lock().unwrap().closed.push(closed);
    }
}

#[test]
fn a_slow_reader_is_not_read_from_and_delays_nobody() {
    let handler = Obedient::default();
    let seen = handler.0.clone();
    let server = Running::start(handler, 1, Options::default());
    let mut slow = Raw::open(server.address);
    // The replies would add up to 600 MB, none of which is read. All requests arrive in one read.
    slow.send(&masked(0x1, b"large").repeat(2_000));
    Raw::open(server.address).round_trip();
    // Allows one message beyond the limit, and what the kernel accepts, which is a few megabytes.
    let log = seen.0.lock().unwrap();
    assert!(log.backlog_bytes_max < (64 << 10) + 300_010, "{log:?}");
    assert!(log.messages < 200, "{log:?}");
    drop(log);
    for _ in 0..2_000 {
        assert_eq!(slow.frame(), (0x82, vec![7; 300_000]));
    }
    slow.round_trip();
    assert!(seen.0.lock().unwrap().drains > 0);
}

#[test]
fn a_reader_that_takes_nothing_is_dropped_with_what_was_not_sent() {
    let mut options = Options::default();
    options.write_timeout = std::time::Duration::from_millis(50);

    let handler = Obedient::default();
    let seen = handler.0.clone();
    let server = Running::start(handler, 1, options);
    let mut slow = Raw::open(server.address);
    slow.send(&masked(0x1, b"large").repeat(2_000));
    wait_until(|| server.remote.counters().connections() == 0);
    let log = seen.0.lock().unwrap();
    assert!(
        matches!(
            log.closed[..],
            [Closed {
                code: 1006,
                clean: false,
                ..
            }]
        ),
        "{log:?}"
    );
    let end = std::io::copy(&mut slow.stream, &mut std::io::sink());
    assert_eq!(end.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[test]
fn nothing_is_handed_over_while_paused() {
    let handler = Obedient::default();
    let seen = handler.0.clone();
    let server = Running::start(handler, 1, Options::default());
    let mut raw = Raw::open(server.address);
    for round in 1..=3 {
        raw.send(
            &[
                masked(0x1, b"pause"),
                masked(0x1, b"one"),
                masked(0x9, b"two"),
            ]
            .concat(),
        );
        wait_until(|| seen.0.lock().unwrap().paused.is_some());
        raw.send(&masked(0x1, b"three"));
        // A round trip on another connection shows that the worker has handled all earlier input.
        Raw::open(server.address).round_trip();
        let id = seen.0.lock().unwrap().paused.take().unwrap();
        assert_eq!(seen.0.lock().unwrap().pings.len(), round - 1);
        assert!(server.remote.resume(id));
        let mut frames: Vec<_> = (0..3).map(|_| raw.frame()).collect();
        frames.sort();
        let expected = [(0x81, &b"one"[..]), (0x81, b"three"), (0x8A, b"two")];
        assert!(
            frames
                .iter()
                .map(|frame| (frame.0, &frame.1[..]))
                .eq(expected)
        );
    }
}

#[test]
fn all_ways_to_send_keep_the_order() {
    let server = Running::start(Obedient::default(), 1, Options::default());
    let mut raw = Raw::open(server.address);
    for bytes in [10, 5_000, 100_000] {
        let payload: Vec<u8> = (0..bytes).map(|number| number as u8).collect();
        let parts = ["a", &"x".repeat(5_000), "b"].concat();
        let wire = [
            masked(0x1, b"parts"),
            masked(0x2, &payload),
            masked(0x1, b"fill"),
            fragment(0x2, &payload[..7], false),
            fragment(0x0, &payload[7..], true),
            masked(0x1, b"frames"),
            masked(0x1, b"ping"),
        ];
        raw.send(&wire.concat());
        let twice = [
            unmasked(0x2, &payload),
            unmasked(0x2, &payload[1..]),
            unmasked(0x1, b"end"),
        ]
        .concat();
        let expected = [
            unmasked(0x1, parts.as_bytes()),
            twice.clone(),
            unmasked(0x2, &[0, 9, 0]),
            twice,
            unmasked(0x1, b"tick").repeat(3),
            unmasked(0x9, b"there?"),
        ]
        .concat();
        assert!(raw.read(expected.len()) == expected, "{bytes}");
        raw.send(&masked(0xA, b"there!"));
        assert_eq!(raw.frame(), (0x82, b"there!".to_vec()));
    }
}

#[test]
fn a_handler_closes_behind_what_it_has_sent() {
    let handler = Obedient::default();
    let seen = handler.0.clone();
    let server = Running::start(handler, 1, Options::default());
    let mut raw = Raw::open(server.address);
    raw.send(&masked(0x1, b"close"));
    assert_eq!(raw.frame(), (0x81, b"before".to_vec()));
    assert_eq!(raw.frame(), (0x88, b"\x03\xe8enough".to_vec()));
    raw.send(&masked(0x8, b"\x0f\xa0"));
    assert_eq!(raw.rest(), b"");
    wait_until(|| !seen.0.lock().unwrap().closed.is_empty());
    let log = seen.0.lock().unwrap();
    assert!(
        matches!(
            log.closed[..],
            [Closed {
                code: 4000,
                clean: true,
                ..
            }]
        ),
        "{log:?}"
    );
}

#[test]
fn the_last_message_of_a_read_is_known() {
    let handler = Obedient::default();
    let seen = handler.0.clone();
    let server = Running::start(handler, 1, Options::default());
    let mut raw = Raw::open(server.address);
    raw.send(&masked(0x1, b"x").repeat(3));
    (0..3).for_each(|_| drop(raw.frame()));
    assert_eq!(seen.0.lock().unwrap().last_in_input, [false, false, true]);
}
