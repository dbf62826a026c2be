//! Compressed messages (RFC 7692). Tests whose names begin with X and a number correspond to rows
//! of the project's table of bad inputs.

mod client;

use std::{
    sync::mpsc::{Sender, channel},
    thread,
};

use linerate_proto::{
    CloseCode, Role,
    engine::{MessageKind, State},
};
use linerate_reactor::{
    Budget, Chunk, Connector, Context, Deflate, Destination, Handler, Message, Opened, Options,
};
use linerate_testkit::{Frame, Rng};

use self::client::Client;
use crate::support::{Echo, PATIENCE, Raw, Running, driver, masked, wait_until};

const TEXT: &str =
    r#"{"id":9182,"symbol":"ABC","price":123.45,"size":100,"side":"buy","venue":"XNAS"}"#;

/// The DEFLATE output of zlib for zeros: a block header with its codes. Each 258 zeros then take
/// two bits.
const CODES: &[u8] = b"\xec\xc1\x01\x01\x00\x00\x00\x80\x90\xfe\xaf\xee\x08\x0a";

/// Returns options for compressing each message independently.
fn each() -> Deflate {
    let mut deflate = Deflate::default();
    deflate.takeover = false;
    deflate.peer_takeover = false;
    deflate
}

fn options(deflate: Option<Deflate>) -> Options {
    let mut options = Options::default();
    options.deflate = deflate;
    options.config.limits.message_bytes_max = 4 << 20;
    options
}

/// Returns a frame as sent by a client, with the bit that marks a compressed message.
fn compressed(opcode: u8, payload: &[u8]) -> Frame {
    Frame::new(opcode, payload)
        .with_rsv(4)
        .to_role(Role::Server)
}

#[test]
fn messages_are_compressed_only_if_both_sides_want_it() {
    let on = Some(Deflate::default());
    for (server, client, expected) in [(on, on, true), (on, None, false), (None, on, false)] {
        let server = Running::start(Echo, 1, options(server));
        let mut client = Client::open(server.address, client);
        assert_eq!(client.engine.compression().is_some(), expected);
        for _ in 0..20 {
            client.send(MessageKind::Text, TEXT.as_bytes());
            assert_eq!(client.message(), (MessageKind::Text, TEXT.into()));
        }
        let plain = 20 * TEXT.len();
        assert_eq!(client.received < plain / 3, expected, "{}", client.received);
    }
}

#[test]
fn messages_of_all_lengths_come_back_with_and_without_takeover() {
    let mut rng = Rng::new(7);
    let noise = rng.bytes(300_000);
    let text = TEXT.repeat(5_000);
    for deflate in [Deflate::default(), each()] {
        let server = Running::start(Echo, 1, options(Some(deflate)));
        let mut client = Client::open(server.address, Some(deflate));
        for round in 0..3 {
            for bytes in [
                0, 1, 63, 64, 300, 4_095, 4_096, 16_384, 16_385, 131_073, 300_000,
            ] {
                for (kind, whole) in [
                    (MessageKind::Text, text.as_bytes()),
                    (MessageKind::Binary, &noise[..]),
                ] {
                    let payload = &whole[round..round + bytes.min(whole.len() - round)];
                    client.send(kind, payload);
                    assert!(client.message() == (kind, payload.to_vec()), "{bytes}");
                }
            }
        }
    }
}

#[test]
fn messages_that_arrive_together_or_in_small_reads_come_back_in_order() {
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let mut client = Client::open(server.address, Some(Deflate::default()));
    let messages: Vec<_> = (0..200)
        .map(|n| format!("{n} {TEXT}").repeat(n % 7))
        .collect();
    for read_bytes in [1_000_000, 1_400, 100] {
        let mut wire = Vec::new();
        for message in &messages {
            let engine = &mut client.engine;
            engine.send_text(&mut wire, message).unwrap();
        }
        for part in wire.chunks(read_bytes) {
            client.write(part);
        }
        for message in &messages {
            assert_eq!(
                client.message(),
                (MessageKind::Text, message.as_bytes().to_vec())
            );
        }
    }
}

/// Replies in every available way, and streams long messages back in pieces.
#[derive(Clone)]
struct Ways;

impl Handler for Ways {
    type Data = ();

    const STREAMED_BYTES_MIN: u64 = 10_000;

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("all").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        let (kind, bytes) = (message.kind(), message.as_bytes());
        let (one, other) = bytes.split_at(bytes.len() / 2);
        cx.send_uncompressed(message).unwrap();
        cx.send(message).unwrap();
        cx.send_parts(kind, &[one, b"", other]).unwrap();
        let fill = |place: &mut [u8]| place.copy_from_slice(bytes);
        cx.send_with(kind, bytes.len(), fill).unwrap();
        cx.send_chunk(kind, one, false).unwrap();
        cx.send_chunk(kind, other, true).unwrap();
        let id = cx.id();
        cx.to(id).unwrap().send(message);
    }

    fn chunk(&mut self, (): &mut (), cx: &mut Context<'_>, chunk: Chunk<'_>) {
        cx.send_chunk(chunk.kind, chunk.bytes, chunk.ends).unwrap();
    }
}

#[test]
fn x13_all_ways_to_send_compress_but_the_one_that_must_not() {
    let server = Running::start(Ways, 1, options(Some(Deflate::default())));
    let mut client = Client::open(server.address, Some(Deflate::default()));
    for bytes in [300, 5_000, 9_000] {
        let text = TEXT.repeat(200);
        let text = &text[..bytes];
        client.send(MessageKind::Text, text.as_bytes());
        let mut lengths = Vec::new();
        for _ in 0..6 {
            let before = client.received;
            assert_eq!(client.message(), (MessageKind::Text, text.into()));
            lengths.push(client.received - before);
        }
        assert!(
            lengths[0] > bytes,
            "{lengths:?}: the first one is compressed"
        );
        assert!(
            lengths[2..].iter().all(|&sent| sent < bytes / 2),
            "{lengths:?}"
        );
    }
}

#[test]
fn what_is_inflated_in_pieces_is_handed_over_in_order() {
    let server = Running::start(Ways, 1, options(Some(Deflate::default())));
    let mut client = Client::open(server.address, Some(Deflate::default()));
    for payload in [TEXT.repeat(10_000).into_bytes(), vec![0; 3_000_000]] {
        client.send(MessageKind::Binary, &payload);
        assert!(client.message() == (MessageKind::Binary, payload));
    }
}

/// Publishes binary messages.
#[derive(Clone)]
struct Publishing;

impl Handler for Publishing {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("all").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Binary(_) => cx.publish("all", message),
            Message::Text(_) => cx.send(message).unwrap(),
        }
    }
}

#[test]
fn publications_reach_those_who_compress_and_those_who_do_not() {
    let server = Running::start(Publishing, 1, options(Some(Deflate::default())));
    let mut with = Client::open(server.address, Some(Deflate::default()));
    let mut without = Client::open(server.address, None);
    for round in 0..50_u8 {
        // This message, between two publications, refers back to earlier messages.
        with.send(MessageKind::Text, TEXT.as_bytes());
        assert_eq!(with.message(), (MessageKind::Text, TEXT.into()));
        let publication = [&[round; 3][..], TEXT.as_bytes()].concat();
        with.send(MessageKind::Binary, &publication);
        assert_eq!(with.message(), (MessageKind::Binary, publication.clone()));
        assert_eq!(without.message(), (MessageKind::Binary, publication));
    }
}

#[test]
fn x01_a_bomb_is_answered_1009_and_nobody_else_waits() {
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let mut other = Raw::open(server.address);
    let mut client = Client::open(server.address, Some(Deflate::default()));
    let bomb = [CODES, &vec![0; 1 << 20]].concat();
    client.write_lossy(&compressed(2, &bomb).to_bytes());
    other.round_trip();
    assert_eq!(client.end(), Some(CloseCode::MESSAGE_TOO_BIG));
    other.round_trip();
}

#[test]
fn x03_x04_what_can_not_be_inflated_is_answered_1007() {
    // A reserved block type; a distance beyond the start of the data; a truncated block.
    for payload in [&b"\x07"[..], b"\x4a\x04\x12\x00", b"\x4b"] {
        let server = Running::start(Echo, 1, options(Some(each())));
        let mut client = Client::open(server.address, Some(each()));
        client.write(&compressed(1, payload).to_bytes());
        assert_eq!(
            client.end(),
            Some(CloseCode::INVALID_PAYLOAD),
            "{payload:02x?}"
        );
    }
}

#[test]
fn x07_x10_empty_messages_and_final_blocks_are_accepted() {
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let mut client = Client::open(server.address, Some(Deflate::default()));
    // RFC 7692 §7.2.3.6: an empty block; §7.2.3.4: "Hello" in a block with BFINAL, and the byte
    // after it.
    let hello = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";
    for (payload, expected) in [(&b"\x00"[..], ""), (b"\x02\x00", ""), (hello, "Hello")] {
        client.write(&compressed(1, payload).to_bytes());
        assert_eq!(client.message(), (MessageKind::Text, expected.into()));
    }
}

#[test]
fn x08_x09_the_bit_anywhere_else_is_answered_1002() {
    let begun = compressed(1, b"\xf2\x48\xcd").with_fin(false).to_bytes();
    let again = compressed(0, b"\xc9\xc9\x07\x00").to_bytes();
    let ping = compressed(9, b"").to_bytes();
    for wire in [[begun, again].concat(), ping] {
        let server = Running::start(Echo, 1, options(Some(Deflate::default())));
        let mut client = Client::open(server.address, Some(Deflate::default()));
        client.write(&wire);
        assert_eq!(client.end(), Some(CloseCode::PROTOCOL_ERROR));
    }
    // Without an agreement the bit is not allowed.
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let mut raw = Raw::open(server.address);
    raw.send(&compressed(1, b"\xf2\x48\xcd\xc9\xc9\x07\x00").to_bytes());
    assert_eq!(raw.frame(), (0x88, 1002_u16.to_be_bytes().to_vec()));
}

#[test]
fn x14_pings_between_compressed_fragments_are_answered() {
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let mut client = Client::open(server.address, Some(Deflate::default()));
    let begun = compressed(1, b"\xf2\x48\xcd").with_fin(false).to_bytes();
    let rest = masked(0, b"\xc9\xc9\x07\x00");
    client.write(&[begun, masked(9, b"between"), rest].concat());
    assert_eq!(client.message(), (MessageKind::Text, "Hello".into()));
    assert_eq!(client.pongs, [b"between"]);
    assert_eq!(client.engine.state(), State::Open);
}

#[test]
fn x12_connections_count_their_windows_and_give_them_back() {
    static BUDGET: Budget = Budget::new(16 << 10);
    let mut deflate = Deflate::default();
    deflate.budget = &BUDGET;
    let server = Running::start(Echo, 1, options(Some(deflate)));
    let plain = Raw::open(server.address);
    assert_eq!(BUDGET.used(), 0, "compression was not negotiated");
    let mut clients: Vec<_> = (0..10)
        .map(|_| Client::open(server.address, Some(Deflate::default())))
        .collect();
    for client in &mut clients {
        client.send(MessageKind::Text, TEXT.as_bytes());
        assert_eq!(client.message(), (MessageKind::Text, TEXT.into()));
    }
    let takeover = |client: &&Client| client.engine.compression().is_some_and(|it| it.takeover);
    assert_eq!(
        clients.iter().filter(takeover).count(),
        4,
        "the budget fits four windows"
    );
    assert!(BUDGET.used() <= BUDGET.bytes_max());
    drop((clients, plain));
    wait_until(|| BUDGET.used() == 0);
}

/// Sends the given text and reports the replies.
#[derive(Clone)]
struct Asking {
    text: String,
    answers: Sender<(bool, String)>,
}

impl Handler for Asking {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) {
        let Opened::Connected { response, .. } = opened else {
            panic!("unexpected inbound connection");
        };
        let agreed = response.deflate().is_some();
        _ = self.answers.send((agreed, "opened".into()));
        (0..3).for_each(|_| cx.send_text(&self.text).unwrap());
    }

    fn message(&mut self, (): &mut (), _cx: &mut Context<'_>, message: Message<'_>) {
        let text = String::from_utf8_lossy(message.as_bytes()).into_owned();
        _ = self.answers.send((true, text));
    }
}

#[test]
fn both_ends_may_be_reactors() {
    let server = Running::start(Echo, 1, options(Some(Deflate::default())));
    let (answers, received) = channel();
    let text = TEXT.repeat(100);
    let asking = Asking {
        text: text.clone(),
        answers,
    };
    let mut options = options(Some(Deflate::default()));
    options.driver = driver();
    let connector = Connector::new().with_options(options);
    let connector = connector.prepare(asking).unwrap();
    let remote = connector.remote();
    let running = thread::spawn(move || connector.run());
    let url = format!("ws://{}/chat", server.address);
    remote.connect(Destination::parse(&url).unwrap()).unwrap();
    let opened = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(opened, (true, "opened".into()));
    for _ in 0..3 {
        let answer = received.recv_timeout(PATIENCE).unwrap();
        assert!(answer == (true, text.clone()));
    }
    remote.shut_down();
    running.join().unwrap().unwrap();
}
