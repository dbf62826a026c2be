//! Ping, Pong and floods of them (RFC 6455 §5.5.2, §5.5.3).

use core::time::Duration;

use linerate_proto::{Event, Role, engine::Closed};
use linerate_testkit::{Cuts, Frame, KEY, Record, Seen, feed};

use crate::situation::{ROLES, Situation, engine_in, read};

#[test]
fn f18_a_ping_flood_is_answered_by_one_pong_to_the_latest() {
    let mut engine = engine_in(Situation::Idle, Role::Server);
    let mut flood = Vec::new();
    for i in 0..10_000u32 {
        let payload = [&i.to_be_bytes()[..], &[b'x'; 121]].concat();
        flood.extend(Frame::new(0x9, &payload).to_role(Role::Server).to_bytes());
    }
    let mut events = engine.handle_input(&mut flood, Duration::ZERO);
    let mut pings = 0;
    while let Some(event) = events.next() {
        assert!(matches!(event, Ok(Event::Ping(_))));
        pings += 1;
    }
    assert_eq!(pings, 10_000);

    let mut output = Vec::new();
    assert!(engine.wants_transmit());
    assert!(engine.poll_transmit(&mut output));
    let latest = [&9_999u32.to_be_bytes()[..], &[b'x'; 121]].concat();
    assert_eq!(output, Frame::new(0xA, &latest).to_bytes());
    assert!(!engine.wants_transmit());
    assert!(!engine.poll_transmit(&mut output));
}

#[test]
fn each_ping_is_answered_if_each_answer_is_taken() {
    for role in ROLES {
        let frames = |opcode, mask| {
            let frames =
                (0..10).map(|i| Frame::new(opcode, &[b'0' + i]).with_mask(mask).to_bytes());
            frames.collect::<Vec<_>>().concat()
        };
        let (to_us, from_us) = match role {
            Role::Client => (None, Some(KEY)),
            Role::Server => (Some(KEY), None),
        };
        let wire = frames(0x9, to_us);
        let record = read(role, &wire);
        assert_eq!(record.output, frames(0xA, from_us));
    }
}

#[test]
fn pings_can_be_answered_while_events_are_lent() {
    let mut engine = engine_in(Situation::Idle, Role::Client);
    let mut input = *b"\x89\x01a\x81\x01-\x89\x01b\x89\x01c";
    let mut output = Vec::new();
    let mut events = engine.handle_input(&mut input, Duration::ZERO);
    while let Some(event) = events.next() {
        if let Event::Ping(payload) = event.unwrap() {
            let answered = payload != b"b";
            assert!(!answered || events.poll_transmit(&mut output));
        }
    }
    let pongs =
        [b"a", b"c"].map(|payload| Frame::new(0xA, payload).with_mask(Some(KEY)).to_bytes());
    assert_eq!(output, pongs.concat());
    assert!(!engine.wants_transmit());
}

#[test]
fn f19_unsolicited_pongs_change_nothing() {
    for role in ROLES {
        let wire = Frame::new(0xA, b"nobody asked").to_role(role).to_bytes();
        let mut engine = engine_in(Situation::Idle, role);
        let record = feed(&mut engine, &wire.repeat(1_000), Cuts::Whole);
        assert_eq!(
            record.seen,
            vec![Seen::Pong(b"nobody asked".to_vec()); 1_000]
        );
        assert_eq!(record.output, b"");
        assert!(!engine.wants_transmit());
        assert_eq!(engine.latency(), None);
    }
}

#[test]
fn f25_empty_payloads_and_the_key_zero_are_legal() {
    let wire = [
        Frame::new(0x1, b""),
        Frame::new(0x2, b""),
        Frame::new(0x9, b""),
        Frame::new(0x1, b"plain"),
    ]
    .map(|frame| frame.with_mask(Some([0; 4])).to_bytes())
    .concat();
    let record = read(Role::Server, &wire);
    assert_eq!(
        record,
        Record {
            seen: vec![
                Seen::text(""),
                Seen::binary(b""),
                Seen::Ping(Vec::new()),
                Seen::text("plain"),
            ],
            unfinished: None,
            output: b"\x8a\x00".to_vec(),
        }
    );
}

#[test]
fn f25_an_empty_masked_ping_is_answered_by_an_empty_masked_pong() {
    let record = read(Role::Client, b"\x89\x00\x8a\x00\x81\x00");
    assert_eq!(record.output, b"\x8a\x80\x37\xfa\x21\x3d");
    assert_eq!(
        record.seen,
        [
            Seen::Ping(Vec::new()),
            Seen::Pong(Vec::new()),
            Seen::text("")
        ]
    );
}

/// A caller limits its work by counting events, because each event uses exactly one frame.
#[test]
fn f26_each_event_of_a_burst_takes_one_frame() {
    const FRAMES: usize = 1_000_000;
    let ping_and_message = b"\x89\x80\x00\x00\x00\x00\x81\x80\x00\x00\x00\x00";
    let mut burst = ping_and_message.repeat(FRAMES / 2);
    let mut engine = engine_in(Situation::Idle, Role::Server);
    let mut events = engine.handle_input(&mut burst, Duration::ZERO);
    for i in 0..FRAMES {
        match events.next() {
            Some(Ok(Event::Ping(b""))) => assert_eq!(i % 2, 0),
            Some(Ok(Event::Text(""))) => assert_eq!(i % 2, 1),
            other => panic!("{other:?}"),
        }
        assert_eq!(events.consumed(), 6 * (i + 1));
        assert_eq!(events.last_in_input(), i + 1 == FRAMES);
    }
    assert!(events.next().is_none());
    let mut output = Vec::new();
    engine.poll_transmit(&mut output);
    assert_eq!(output, b"\x8a\x00");
}

#[test]
fn f27_an_end_of_the_stream_without_close_is_1006_at_any_position() {
    for role in ROLES {
        let wire = [
            Frame::new(0x1, &[b'x'; 130]).with_fin(false),
            Frame::new(0x9, b"ping"),
            Frame::new(0x0, b"end"),
        ]
        .map(|frame| frame.to_role(role).to_bytes())
        .concat();
        for end in 0..wire.len() {
            let mut engine = engine_in(Situation::Idle, role);
            let record = feed(&mut engine, &wire[..end], Cuts::Random(end as u64));
            assert!(
                !record
                    .seen
                    .iter()
                    .any(|seen| matches!(seen, Seen::Message { .. })),
                "a message out of {end} bytes"
            );
            let closed = Closed {
                code: Closed::ABNORMAL,
                clean: false,
            };
            assert_eq!(engine.handle_eof(), closed);
            assert!(!engine.wants_transmit());
            let mut output = Vec::new();
            assert!(!engine.poll_transmit(&mut output));
            assert!(engine.send_text(&mut output, "late").is_err());
            assert_eq!(output, b"");
        }
    }
}
