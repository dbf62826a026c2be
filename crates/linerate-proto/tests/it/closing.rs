//! The closing handshake (RFC 6455 §1.4, §5.5.1, §7).

use core::time::Duration;

use linerate_proto::{
    CloseCode, Config, ProtocolError, Role, SendError,
    engine::{Closed, State, Timeout},
};
use linerate_testkit::{Cuts, Frame, Pair, Record, Seen, feed};

use crate::situation::{ROLES, Situation, close_frame, engine_in};

fn clean(code: u16) -> Option<Closed> {
    Some(Closed { code, clean: true })
}

#[test]
fn the_client_starts_and_the_server_answers_and_ends_the_stream() {
    let mut pair = Pair::new(Config::default());
    let now = pair.now();
    let client = &mut pair.client.engine;
    client.close(CloseCode::NORMAL, "done", now).unwrap();
    assert_eq!(client.state(), State::Closing);
    pair.drive();
    assert_eq!(pair.server.record.seen, [Seen::close(Some(1000), "done")]);
    assert_eq!(pair.client.record.seen, [Seen::close(Some(1000), "")]);
    assert_eq!(pair.server.record.output, close_frame(Role::Server, 1000));
    assert_eq!(pair.client.engine.state(), State::Closed);
    assert_eq!(pair.server.engine.state(), State::Closed);
    assert_eq!(pair.client.closed, clean(1000));
    assert_eq!(pair.server.closed, clean(1000));
}

#[test]
fn the_server_starts_and_the_client_answers() {
    let mut pair = Pair::new(Config::default()).with_read_bytes_max(1);
    let now = pair.now();
    let server = &mut pair.server.engine;
    server.close(CloseCode::GOING_AWAY, "bye", now).unwrap();
    pair.drive();
    assert_eq!(pair.client.record.seen, [Seen::close(Some(1001), "bye")]);
    assert_eq!(pair.server.record.seen, [Seen::close(Some(1001), "")]);
    assert_eq!(pair.client.record.output, close_frame(Role::Client, 1001));
    assert_eq!(pair.client.closed, clean(1001));
    assert_eq!(pair.server.closed, clean(1001));
}

#[test]
fn k01_both_start_at_once_and_each_sends_one_close() {
    let mut pair = Pair::new(Config::default());
    let now = pair.now();
    let (client, server) = (&mut pair.client.engine, &mut pair.server.engine);
    client.close(CloseCode::NORMAL, "", now).unwrap();
    server.close(CloseCode::GOING_AWAY, "", now).unwrap();
    pair.drive();
    assert_eq!(pair.client.record.output, close_frame(Role::Client, 1000));
    assert_eq!(pair.server.record.output, close_frame(Role::Server, 1001));
    assert_eq!(pair.client.record.seen, [Seen::close(Some(1001), "")]);
    assert_eq!(pair.server.record.seen, [Seen::close(Some(1000), "")]);
    assert_eq!(pair.client.closed, clean(1001));
    assert_eq!(pair.server.closed, clean(1000));
}

#[test]
fn k01_nothing_can_be_sent_after_our_close() {
    for role in ROLES {
        for situation in [Situation::CloseSent, Situation::CloseReceived] {
            let mut engine = engine_in(situation, role);
            let mut output = Vec::new();
            let late = [
                engine.send_text(&mut output, "late"),
                engine.send_binary(&mut output, b"late"),
                engine.send_ping(&mut output, b"late"),
                engine.send_pong(&mut output, b"late"),
            ];
            assert_eq!(late, [Err(SendError::Closed); 4]);
            engine
                .close(CloseCode::NORMAL, "again", Duration::ZERO)
                .unwrap();
            assert!(!engine.poll_transmit(&mut output));
            assert_eq!(output, b"");
        }
    }
}

#[test]
fn f23_input_after_the_peers_close_is_ignored() {
    for role in ROLES {
        let mut wire = Frame::new(0x8, b"\x03\xe8").to_role(role).to_bytes();
        for late in [
            Frame::new(0x1, b"data"),
            Frame::new(0x9, b"ping"),
            Frame::new(0x8, b"\x03\xe9"),
            Frame::new(0xF, b"junk").with_rsv(7),
        ] {
            wire.extend(late.to_role(role).to_bytes());
        }
        for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Random(23)] {
            let mut engine = engine_in(Situation::Idle, role);
            let record = feed(&mut engine, &wire, cuts);
            let expected = Record {
                seen: vec![Seen::close(Some(1000), "")],
                unfinished: None,
                output: close_frame(role, 1000),
            };
            assert_eq!(record, expected);
            assert_eq!(engine.state(), State::Closed);
        }
    }
}

#[test]
fn data_is_delivered_after_our_close_until_the_peers() {
    for role in ROLES {
        let wire = [
            Frame::new(0x1, b"on its way"),
            Frame::new(0x9, b"ping"),
            Frame::new(0x8, b"\x03\xe9"),
            Frame::new(0x1, b"too late"),
        ]
        .map(|frame| frame.to_role(role).to_bytes())
        .concat();
        let mut engine = engine_in(Situation::CloseSent, role);
        let record = feed(&mut engine, &wire, Cuts::Whole);
        let expected = Record {
            seen: vec![
                Seen::text("on its way"),
                Seen::Ping(b"ping".to_vec()),
                Seen::close(Some(1001), ""),
            ],
            unfinished: None,
            output: Vec::new(),
        };
        assert_eq!(record, expected);
        assert_eq!(engine.state(), State::Closed);
    }
}

#[test]
fn a_due_pong_neither_follows_nor_precedes_our_close() {
    for role in ROLES {
        let mut ping = Frame::new(0x9, b"ping").to_role(role).to_bytes();
        let mut engine = engine_in(Situation::Idle, role);
        let mut events = engine.handle_input(&mut ping, Duration::ZERO);
        assert!(events.next().is_some());
        engine.close(CloseCode::NORMAL, "", Duration::ZERO).unwrap();
        let mut output = Vec::new();
        engine.poll_transmit(&mut output);
        assert_eq!(output, close_frame(role, 1000));
    }
}

#[test]
fn a_close_that_is_never_answered_uses_up_its_budget() {
    let config = Config::default();
    let mut pair = Pair::new(config);
    pair.advance(Duration::from_secs(1));
    let now = pair.now();
    let server = &mut pair.server.engine;
    server.close(CloseCode::NORMAL, "", now).unwrap();
    server.poll_transmit(&mut Vec::new());
    assert_eq!(server.poll_timeout(), Some(now + config.close_timeout));
    pair.advance(config.close_timeout - Duration::from_nanos(1));
    assert_eq!(pair.server.timeouts, []);
    pair.advance(Duration::from_nanos(1));
    let timeout = Timeout::Close {
        budget: config.close_timeout,
    };
    assert_eq!(pair.server.timeouts, [timeout]);
    pair.cut();
    let closed = Closed {
        code: Closed::ABNORMAL,
        clean: false,
    };
    assert_eq!(pair.server.closed, Some(closed));
}

#[test]
fn input_does_not_extend_the_budget() {
    let config = Config::default();
    let mut pair = Pair::new(config);
    let now = pair.now();
    let server = &mut pair.server.engine;
    server.close(CloseCode::NORMAL, "", now).unwrap();
    server.poll_transmit(&mut Vec::new());
    for _ in 0..5 {
        pair.client
            .engine
            .send_text(&mut pair.client.outbox, "still talking")
            .unwrap();
        pair.drive();
        pair.advance(Duration::from_secs(1));
    }
    assert_eq!(pair.server.record.seen.len(), 5);
    assert_eq!(pair.server.timeouts.len(), 1);
}

#[test]
fn a_peer_that_never_ends_the_stream_uses_up_the_same_budget() {
    let config = Config::default();
    let mut engine = engine_in(Situation::CloseReceived, Role::Client);
    assert!(engine.is_output_over() && engine.is_input_over());
    assert!(!engine.ends_stream(), "a client waits for the server");
    assert_eq!(engine.poll_timeout(), Some(config.close_timeout));
    assert!(engine.handle_timeout(config.close_timeout).is_err());
}

#[test]
fn the_responders_budget_begins_with_the_peers_close() {
    let config = Config::default();
    let mut engine = engine_in(Situation::Idle, Role::Client);
    let now = Duration::from_secs(7);
    let mut input = close_frame(Role::Server, 1000);
    let mut events = engine.handle_input(&mut input, now);
    assert!(matches!(events.next(), Some(Ok(_))));
    engine.poll_transmit(&mut Vec::new());
    assert_eq!(engine.poll_timeout(), Some(now + config.close_timeout));
}

#[test]
fn either_side_ends_the_stream_of_a_failed_connection() {
    for role in ROLES {
        let wire = Frame::new(0x3, b"").to_role(role).to_bytes();
        let mut engine = engine_in(Situation::Idle, role);
        let mut input = wire.clone();
        let mut events = engine.handle_input(&mut input, Duration::ZERO);
        let error = ProtocolError::ReservedOpcode { opcode: 3 };
        assert_eq!(events.next(), Some(Err(error)));
        assert!(!engine.ends_stream(), "our Close is not written yet");
        engine.poll_transmit(&mut Vec::new());
        assert!(engine.ends_stream());
    }
}

#[test]
fn a_missing_code_is_1005_and_an_unanswered_close_is_not_clean() {
    for role in ROLES {
        let mut engine = engine_in(Situation::CloseReceived, role);
        let closed = Closed {
            code: Closed::NO_STATUS,
            clean: true,
        };
        assert_eq!(engine.handle_eof(), closed);

        let mut close = Frame::new(0x8, b"\x0b\xb8").to_role(role).to_bytes();
        let mut engine = engine_in(Situation::Idle, role);
        let mut events = engine.handle_input(&mut close, Duration::ZERO);
        assert!(events.next().is_some());
        let closed = Closed {
            code: 3000,
            clean: false,
        };
        assert_eq!(engine.handle_eof(), closed);
    }
}
