//! The keepalive: a Ping after silence, and the effect of an answer or its absence.

use core::time::Duration;

use linerate_proto::{
    CloseCode, Config, ProtocolError, Role,
    engine::{State, Timeout},
};
use linerate_testkit::{Frame, Pair, Seen};

use crate::situation::close_frame;

const INTERVAL: Duration = Duration::from_secs(20);

fn config() -> Config {
    let config = Config::default();
    assert_eq!(config.ping_interval, Some(INTERVAL));
    config
}

/// Lets only the server hear nothing for the interval, so that only the server sends a Ping.
fn pair_with_a_ping_due() -> Pair {
    let quiet_client = |pair: &mut Pair| {
        let now = pair.now();
        let mut pong = Frame::new(0xA, b"").to_bytes();
        let mut events = pair.client.engine.handle_input(&mut pong, now);
        assert!(events.next().is_some());
    };
    let mut pair = Pair::new(config());
    pair.advance(INTERVAL - Duration::from_nanos(1));
    assert!(!pair.server.engine.wants_transmit());
    quiet_client(&mut pair);
    pair.advance(Duration::from_nanos(1));
    assert!(pair.server.engine.wants_transmit());
    pair
}

#[test]
fn a_ping_goes_out_after_silence_and_its_pong_gives_the_latency() {
    let mut pair = pair_with_a_ping_due();
    let sent = pair.now();
    pair.server.engine.poll_transmit(&mut pair.server.outbox);
    assert_eq!(pair.server.outbox[..2], *b"\x89\x08");
    pair.advance(Duration::from_millis(35));
    pair.drive();
    assert!(matches!(pair.client.record.seen[..], [Seen::Ping(_)]));
    assert!(matches!(pair.server.record.seen[..], [Seen::Pong(_)]));
    assert_eq!(
        pair.server.engine.latency(),
        Some(Duration::from_millis(35))
    );
    assert_eq!(pair.server.timeouts, []);
    // The interval of silence starts again with the Pong.
    assert_eq!(
        pair.server.engine.poll_timeout(),
        Some(pair.now() + INTERVAL)
    );
    assert_eq!(pair.now(), sent + Duration::from_millis(35));
}

#[test]
fn only_the_first_pong_to_a_ping_gives_the_latency() {
    let mut pair = pair_with_a_ping_due();
    pair.server.engine.poll_transmit(&mut pair.server.outbox);
    let payload = pair.server.outbox[2..].to_vec();
    pair.advance(Duration::from_millis(1));
    pair.drive();
    pair.advance(Duration::from_secs(2));
    pair.client
        .engine
        .send_pong(&mut pair.client.outbox, &payload)
        .unwrap();
    pair.drive();
    assert_eq!(pair.server.record.seen.len(), 2);
    assert_eq!(pair.server.engine.latency(), Some(Duration::from_millis(1)));
}

#[test]
fn a_pong_before_any_ping_gives_no_latency() {
    let mut pair = Pair::new(config());
    pair.advance(Duration::from_secs(1));
    pair.client
        .engine
        .send_pong(&mut pair.client.outbox, &[0; 8])
        .unwrap();
    pair.drive();
    assert_eq!(pair.server.record.seen, [Seen::Pong(vec![0; 8])]);
    assert_eq!(pair.server.engine.latency(), None);
}

#[test]
fn any_input_counts_as_an_answer() {
    let mut pair = pair_with_a_ping_due();
    pair.server.engine.poll_transmit(&mut Vec::new());
    pair.advance(Duration::from_secs(1));
    // An incomplete frame.
    let now = pair.now();
    let mut first_byte = [0x82];
    let mut events = pair.server.engine.handle_input(&mut first_byte, now);
    assert!(events.next().is_none());
    pair.advance(config().ping_timeout - Duration::from_nanos(1));
    assert_eq!(pair.server.timeouts, []);
    assert_eq!(pair.server.engine.state(), State::Open);
    assert_eq!(pair.server.engine.latency(), None);
}

/// Sends a frame in pieces of `bytes` bytes, one per second, for at most twice as long as a peer
/// may be silent; returns for how many seconds the server accepted it.
fn seconds_of_a_frame_in_pieces(bytes: usize) -> u64 {
    let mut pair = Pair::new(config());
    let frame = Frame::new(2, &[7; 500_000]).with_mask(Some([1, 2, 3, 4]));
    let wire = frame.to_bytes();
    let silence = INTERVAL + config().ping_timeout;
    for (second, piece) in wire
        .chunks(bytes)
        .enumerate()
        .take(2 * silence.as_secs() as usize)
    {
        let now = pair.now();
        let mut piece = piece.to_vec();
        let mut events = pair.server.engine.handle_input(&mut piece, now);
        while events.next().is_some() {}
        pair.advance(Duration::from_secs(1));
        pair.server.engine.poll_transmit(&mut Vec::new());
        if !pair.server.timeouts.is_empty() {
            return second as u64 + 1;
        }
    }
    2 * silence.as_secs()
}

#[test]
fn r03_a_frame_that_trickles_in_is_no_sign_of_life() {
    let silence = INTERVAL + config().ping_timeout;
    // Signs of life are recorded with a resolution of 4 ms.
    let given_up = silence.as_secs()..=silence.as_secs() + 1;
    assert!(given_up.contains(&seconds_of_a_frame_in_pieces(1)));
    assert!(given_up.contains(&seconds_of_a_frame_in_pieces(24)));
    assert_eq!(seconds_of_a_frame_in_pieces(60), 2 * silence.as_secs());
    assert_eq!(seconds_of_a_frame_in_pieces(1_024), 2 * silence.as_secs());
}

#[test]
fn a_pong_after_a_frame_that_trickled_in_is_an_answer() {
    let mut pair = pair_with_a_ping_due();
    let mut ping = Vec::new();
    pair.server.engine.poll_transmit(&mut ping);
    let frame = Frame::new(2, b"ab").with_mask(Some([0; 4])).to_bytes();
    let pong = Frame::new(0xA, &ping[2..]).with_mask(Some([0; 4]));
    let take = |wire: &[u8], pair: &mut Pair| {
        pair.advance(Duration::from_secs(9));
        let now = pair.now();
        let mut wire = wire.to_vec();
        let mut events = pair.server.engine.handle_input(&mut wire, now);
        while events.next().is_some() {}
    };
    take(&frame[..7], &mut pair);
    take(&[&frame[7..], &pong.to_bytes()].concat(), &mut pair);
    let latency = pair.server.engine.latency();
    assert_eq!(latency, Some(Duration::from_secs(18)));
    let due = pair.server.engine.poll_timeout();
    assert_eq!(due, Some(pair.now() + INTERVAL));
}

#[test]
fn an_active_connection_is_not_pinged() {
    let mut pair = Pair::new(config());
    for _ in 0..10 {
        pair.advance(INTERVAL / 2);
        for side in [&mut pair.client, &mut pair.server] {
            side.engine.send_text(&mut side.outbox, "tick").unwrap();
        }
        pair.drive();
    }
    assert_eq!(pair.client.record.output, b"");
    assert_eq!(pair.server.record.output, b"");
}

#[test]
fn an_unanswered_ping_fails_with_1011_and_then_the_budget_runs() {
    let config = config();
    let mut pair = pair_with_a_ping_due();
    let server = &mut pair.server.engine;
    server.poll_transmit(&mut Vec::new());
    let due = server.poll_timeout();
    assert_eq!(due, Some(pair.now() + config.ping_timeout));
    pair.advance(config.ping_timeout);
    let error = ProtocolError::KeepaliveTimeout {
        timeout: config.ping_timeout,
    };
    assert_eq!(pair.server.timeouts, [Timeout::Keepalive(error)]);

    let mut output = Vec::new();
    pair.server.engine.poll_transmit(&mut output);
    assert_eq!(output, close_frame(Role::Server, 1011));
    pair.advance(config.close_timeout);
    let timeout = Timeout::Close {
        budget: config.close_timeout,
    };
    assert_eq!(pair.server.timeouts[1..], [timeout]);
}

#[test]
fn a_ping_that_could_not_be_written_is_not_queued_twice() {
    let mut pair = pair_with_a_ping_due();
    pair.advance(Duration::from_secs(1));
    pair.advance(Duration::from_secs(1));
    let mut output = Vec::new();
    pair.server.engine.poll_transmit(&mut output);
    assert_eq!(output.len(), 10, "one Ping of eight bytes");
}

#[test]
fn a_due_ping_is_not_sent_with_our_close() {
    let mut pair = pair_with_a_ping_due();
    let now = pair.now();
    let server = &mut pair.server.engine;
    server.close(CloseCode::NORMAL, "", now).unwrap();
    let mut output = Vec::new();
    server.poll_transmit(&mut output);
    assert_eq!(output, close_frame(Role::Server, 1000));
}

#[test]
fn without_an_interval_there_is_no_deadline() {
    for ping_interval in [None, Some(Duration::ZERO)] {
        let mut pair = Pair::new({
            let mut config = config();
            config.ping_interval = ping_interval;
            config
        });
        assert_eq!(pair.server.engine.poll_timeout(), None);
        pair.advance(Duration::from_secs(1_000_000));
        assert!(!pair.server.engine.wants_transmit());
        assert_eq!(pair.server.timeouts, []);
    }
}

#[test]
fn an_end_of_the_stream_leaves_nothing_to_transmit() {
    let mut pair = pair_with_a_ping_due();
    pair.cut();
    assert!(!pair.server.engine.wants_transmit());
    assert!(!pair.server.engine.poll_transmit(&mut Vec::new()));
}
