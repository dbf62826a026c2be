//! Connections that move to another engine, at every byte.

mod refusing;
pub(crate) mod sending;

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{
    CloseCode, Config, Engine, Event, ProtocolError, Role,
    engine::{Importer, State},
    portable::Version,
};
use linerate_testkit::{Cuts, Frame, Record, Rng, Seen, TestEndpoint, feed};
use proptest::prelude::*;

use crate::situation::ROLES;

/// When everything happens.
pub(crate) const NOW: Duration = Duration::from_secs(100);

/// Returns an engine that continues where `engine` is.
///
/// Checks that the new engine exports the same bytes, and that exporting changes nothing.
pub(crate) fn moved(
    engine: &mut Engine<TestEndpoint>,
    importer: &Importer,
) -> Engine<TestEndpoint> {
    let state = engine
        .export(Version::NEWEST, NOW)
        .expect("it can be exported");
    let mut new = importer
        .import(TestEndpoint(engine.endpoint().0), &state, NOW)
        .expect("it can be imported");
    for engine in [&mut *engine, &mut new] {
        assert!(engine.export(Version::NEWEST, NOW).as_ref() == Ok(&state));
    }
    assert_eq!(new.state(), engine.state());
    assert_eq!(new.sent_close(), engine.sent_close());
    assert_eq!(new.poll_timeout(), engine.poll_timeout());
    assert_eq!(new.latency(), engine.latency());
    assert_eq!(new.wants_transmit(), engine.wants_transmit());
    assert_eq!(
        new.is_message_in_progress(),
        engine.is_message_in_progress()
    );
    assert_eq!(new.payload_bytes_left(), engine.payload_bytes_left());
    new
}

/// Feeds `wire` in pieces that end at `cuts`. Moves the connection after each piece, and before as
/// many events as `between` returns.
pub(crate) fn feed_moving(
    mut engine: Engine<TestEndpoint>,
    importer: &Importer,
    wire: &[u8],
    cuts: &[usize],
    mut between: impl FnMut() -> bool,
) -> Record {
    let mut record = Record::default();
    let mut input = wire.to_vec();
    let mut at = 0;
    for &end in cuts.iter().chain([&wire.len()]) {
        loop {
            let mut events = engine.handle_input(&mut input[at..end], NOW);
            let Some(event) = events.next() else { break };
            record.add(event);
            at += events.consumed();
            engine.poll_transmit(&mut record.output);
            if between() {
                engine = moved(&mut engine, importer);
            }
        }
        at = end;
        engine = moved(&mut engine, importer);
    }
    record
}

/// Feeds `wire` to the engine that `start` returns, moving it at every position, at all positions,
/// and between events; the record is always the same.
pub(crate) fn assert_moves_do_not_matter(
    start: impl Fn() -> Engine<TestEndpoint>,
    importer: &Importer,
    wire: &[u8],
) -> Record {
    let whole = feed(&mut start(), wire, Cuts::Whole);
    for at in 0..=wire.len() {
        let record = feed_moving(start(), importer, wire, &[at], || false);
        assert!(record == whole, "moved at {at}: {record:?}, not {whole:?}");
    }
    let all: Vec<usize> = (0..wire.len()).collect();
    assert!(feed_moving(start(), importer, wire, &all, || false) == whole);
    assert!(feed_moving(start(), importer, wire, &[], || true) == whole);
    assert!(feed_moving(start(), importer, wire, &all, || true) == whole);
    whole
}

/// Reads `wire` without compression, moving at every position.
fn read(role: Role, config: &Arc<Config>, wire: &[u8]) -> Record {
    let start = || Engine::new(TestEndpoint(role), Arc::clone(config), NOW);
    assert_moves_do_not_matter(start, &Importer::new(Arc::clone(config)), wire)
}

/// Frames of all kinds: text and binary, whole and in fragments, empty and long, with control
/// frames in between, and a Close frame at the end.
fn script(role: Role) -> Vec<u8> {
    let text = "zażółć gęślą jaźń €𐍈 ";
    let (first, rest) = text.as_bytes().split_at(27);
    let frames = [
        Frame::new(1, text.as_bytes()),
        Frame::new(2, b""),
        Frame::new(1, &first[..3]).with_fin(false),
        Frame::new(9, b"in a message"),
        Frame::new(0, b"").with_fin(false),
        Frame::new(0, &first[3..]).with_fin(false),
        Frame::new(10, b"not asked for"),
        Frame::new(9, b""),
        Frame::new(0, rest),
        Frame::new(2, &[7; 126]).with_fin(false),
        Frame::new(0, &[8; 300]),
        Frame::new(2, &[9; 125]),
        Frame::new(1, b"").with_fin(false),
        Frame::new(0, b""),
        Frame::new(8, b"\x03\xe8that is all"),
        Frame::new(2, b"ignored"),
    ];
    frames
        .into_iter()
        .flat_map(|frame| frame.to_role(role).to_bytes())
        .collect()
}

#[test]
fn a_connection_can_move_at_every_byte() {
    for role in ROLES {
        let record = read(role, &Arc::default(), &script(role));
        let messages = |seen: &&Seen| matches!(seen, Seen::Message { .. });
        assert_eq!(record.seen.iter().filter(messages).count(), 6);
        assert_eq!(
            record.seen.last(),
            Some(&Seen::close(Some(1000), "that is all"))
        );
    }
}

#[test]
fn a_long_frame_can_move() {
    for role in ROLES {
        let payload = Rng::new(1).bytes(70_000);
        let wire = Frame::new(2, &payload).to_role(role).to_bytes();
        let importer = Importer::new(Arc::default());
        for at in (0..20).chain([127, 255, 256, 257, 1_000, 65_551, wire.len() - 1]) {
            let engine = Engine::new(TestEndpoint(role), Arc::default(), NOW);
            let record = feed_moving(engine, &importer, &wire, &[at], || false);
            assert_eq!(record.seen, [Seen::binary(&payload)], "{at}");
        }
    }
}

#[test]
fn errors_are_the_same_after_a_move() {
    for (frames, code) in [
        (vec![Frame::new(1, b"\xe2\x82x")], 1007_u16),
        (
            vec![
                Frame::new(1, b"\xf0\x90").with_fin(false),
                Frame::new(0, b"\x8d"),
            ],
            1007,
        ),
        (
            vec![Frame::new(1, b"a").with_fin(false), Frame::new(1, b"b")],
            1002,
        ),
        (vec![Frame::new(0, b"a")], 1002),
        (vec![Frame::new(9, b"a").with_fin(false)], 1002),
        (
            vec![
                Frame::new(2, &[0; 200]).with_fin(false),
                Frame::new(0, &[0; 60]),
            ],
            1009,
        ),
        (vec![Frame::new(2, b"").with_fin(false); 5], 1008),
        (vec![Frame::new(8, b"x")], 1002),
    ] {
        let mut config = Config::default();
        config.limits.message_bytes_max = 250;
        config.limits.fragments_max = 4;
        for role in ROLES {
            let wire: Vec<u8> = frames
                .iter()
                .flat_map(|frame| frame.clone().to_role(role).to_bytes())
                .collect();
            let record = read(role, &Arc::new(config), &wire);
            assert!(
                matches!(record.seen.last(), Some(Seen::Error(_))),
                "{record:?}"
            );
            let found = record.output.len();
            assert!(found > 0, "{code} is sent");
        }
    }
}

#[test]
fn an_arriving_message_that_exceeds_the_new_limits_fails_the_connection() {
    let mut old = Engine::new(TestEndpoint(Role::Client), Arc::default(), NOW);
    let mut input = *b"\x82\x7e\x10\x00abc";
    let mut events = old.handle_input(&mut input, NOW);
    assert!(matches!(events.next(), Some(Ok(Event::Chunk(_)))));
    let mut config = Config::default();
    config.limits.message_bytes_max = 4_095;
    let state = old.export(Version::NEWEST, NOW).unwrap();
    let importer = Importer::new(Arc::new(config));
    let mut new = importer
        .import(TestEndpoint(Role::Client), &state, NOW)
        .unwrap();
    let (bytes, bytes_max) = (4_096, 4_095);
    let expected = ProtocolError::MessageTooBig { bytes, bytes_max };
    let (close, _) = new.sent_close().expect("it has failed");
    assert_eq!(close.code, Some(expected.close_code()));
    assert!(new.is_input_over() && new.poll_transmit(&mut Vec::new()));
}

#[test]
fn a_closing_handshake_continues() {
    for role in ROLES {
        let importer = Importer::new(Arc::default());
        let mut engine = Engine::new(TestEndpoint(role), Arc::default(), NOW);
        engine.close(CloseCode::GOING_AWAY, "deploy", NOW).unwrap();
        let mut engine = moved(&mut engine, &importer);
        assert_eq!(engine.state(), State::Closing);
        let mut out = Vec::new();
        assert!(engine.poll_transmit(&mut out));
        let close = Frame::new(8, b"\x03\xe9deploy");
        let peer = if role == Role::Client {
            Role::Server
        } else {
            Role::Client
        };
        assert_eq!(out, close.to_role(peer).to_bytes());
        let mut engine = moved(&mut engine, &importer);
        assert!(!engine.poll_transmit(&mut out));
        let mut answer = Frame::new(8, b"\x03\xe9").to_role(role).to_bytes();
        let mut events = engine.handle_input(&mut answer, NOW);
        assert!(matches!(events.next(), Some(Ok(Event::Close(_)))));
        let mut engine = moved(&mut engine, &importer);
        assert_eq!(engine.state(), State::Closed);
        let closed = engine.handle_eof();
        assert_eq!((closed.code, closed.clean), (1001, true));
        moved(&mut engine, &importer);
    }
}

#[test]
fn an_end_without_a_close_frame_is_remembered() {
    let importer = Importer::new(Arc::default());
    let mut engine = Engine::new(TestEndpoint(Role::Server), Arc::default(), NOW);
    assert!(!engine.handle_eof().clean);
    let mut engine = moved(&mut engine, &importer);
    assert!(engine.is_input_over());
    let mut out = Vec::new();
    assert!(engine.send_text(&mut out, "too late").is_err());
}

/// The new process may have started a moment ago.
#[test]
fn deadlines_are_kept_as_far_as_the_new_clock_reaches() {
    let config = Arc::new(Config::default());
    let (interval, timeout) = (config.ping_interval.unwrap(), config.ping_timeout);
    let second = Duration::from_secs(1);
    let importer = Importer::new(Arc::clone(&config));
    let import = |engine: &mut Engine<TestEndpoint>, now, new_now| {
        let state = engine.export(Version::NEWEST, now).unwrap();
        importer
            .import(TestEndpoint(Role::Server), &state, new_now)
            .unwrap()
    };
    let mut engine = Engine::new(TestEndpoint(Role::Server), Arc::clone(&config), NOW);
    let now = NOW + 7 * second;
    let due = |engine: &Engine<TestEndpoint>| engine.poll_timeout().unwrap();
    assert_eq!(due(&import(&mut engine, now, now)), NOW + interval);
    assert_eq!(
        due(&import(&mut engine, now, 10 * second)),
        3 * second + interval
    );
    assert_eq!(due(&import(&mut engine, now, 2 * second)), interval);
    // A Ping that was not answered yet.
    let now = NOW + interval;
    engine.handle_timeout(now).unwrap();
    let mut new = import(&mut engine, now + second, 9 * second);
    assert_eq!(due(&new), 8 * second + timeout);
    let mut ping = Vec::new();
    assert!(new.poll_transmit(&mut ping));
    let pong = Frame::new(10, &ping[2..]).to_role(Role::Server).to_bytes();
    let record = feed(
        &mut import(&mut new, 9 * second, 9 * second),
        &pong,
        Cuts::Whole,
    );
    assert!(matches!(record.seen[..], [Seen::Pong(_)]));
    let mut new = import(&mut engine, now + second, Duration::ZERO);
    assert!(due(&new) <= timeout + Duration::from_nanos(1));
    assert!(new.handle_timeout(timeout + second).is_err());
}

/// Returns random frames, most of them valid.
fn random_script(rng: &mut Rng, role: Role) -> Vec<u8> {
    let (mut wire, mut in_message) = (Vec::new(), false);
    let text = "zażółć gęślą jaźń €𐍈 ".repeat(20);
    for _ in 0..1 + rng.below(12) {
        let is_control = rng.below(3) == 0;
        let opcode = match (is_control, in_message) {
            (true, _) => *rng.pick(&[9, 9, 10, 10, 8]),
            (false, true) => 0,
            (false, false) => *rng.pick(&[1, 2]),
        };
        let bytes = match is_control {
            true => rng.below(126),
            false => *rng.pick(&[0, 1, 5, 125, 126, 200, 400]),
        };
        let fin = is_control || rng.below(2) == 0;
        in_message = if is_control { in_message } else { !fin };
        let frame = Frame::new(opcode, &text.as_bytes()[..bytes]).with_fin(fin);
        wire.extend(frame.to_role(role).to_bytes());
    }
    wire
}

proptest! {
    #[test]
    fn random_frames_are_the_same_after_several_moves(
        seed in any::<u64>(),
        moves in 1_usize..10,
        to_server in any::<bool>(),
    ) {
        let role = if to_server { Role::Server } else { Role::Client };
        let mut rng = Rng::new(seed);
        let wire = random_script(&mut rng, role);
        let start = || Engine::new(TestEndpoint(role), Arc::default(), NOW);
        let whole = feed(&mut start(), &wire, Cuts::Whole);
        let mut cuts: Vec<usize> = (0..moves).map(|_| rng.below(wire.len() + 1)).collect();
        cuts.sort_unstable();
        let importer = Importer::new(Arc::default());
        let record = feed_moving(start(), &importer, &wire, &cuts, || rng.below(2) == 0);
        prop_assert_eq!(record, whole);
    }
}
