//! Nothing is allocated per frame, in the codec or in the engine.
//!
//! This is a separate test binary, because it counts the calls of the global allocator.

use core::time::Duration;
use std::sync::Arc;

use allocation_counter::measure;
use linerate_proto::{
    Client, CloseCode, Config, Endpoint, Engine, MaskKey, Opcode, Role, Server,
    engine::MessageKind,
    frame::{BulkEncoder, FrameFactory, encode_in_place, head_room, listen},
};
use linerate_testkit::Frame;

const KEY: MaskKey = MaskKey([0x37, 0xFA, 0x21, 0x3D]);
const ROUNDS: usize = 100;

fn client() -> Engine<Client<impl FnMut() -> MaskKey>> {
    Engine::new(Client::new(|| KEY), Arc::default(), Duration::ZERO)
}

fn server() -> Engine<Server> {
    Engine::new(Server, Arc::default(), Duration::ZERO)
}

/// Asserts that `work` allocates nothing.
fn assert_no_allocation(name: &str, work: impl FnOnce()) {
    let info = measure(work);
    assert_eq!(info.count_total, 0, "{name}: {info:?}");
}

/// Feeds `wire` in reads of `read_bytes` bytes, takes every event, and returns their number.
fn drive<E: Endpoint>(engine: &mut Engine<E>, wire: &mut [u8], read_bytes: usize) -> usize {
    let mut count = 0;
    for read in wire.chunks_mut(read_bytes) {
        let mut events = engine.handle_input(read, Duration::ZERO);
        while let Some(event) = events.next() {
            event.expect("the frames are legal");
            count += 1;
        }
    }
    count
}

/// Messages of all lengths, whole and in fragments, without control frames.
fn messages(role: Role) -> Vec<u8> {
    [
        Frame::new(0x1, b"Hello"),
        Frame::new(0x2, b""),
        Frame::new(0x1, &[b'x'; 125]),
        Frame::new(0x2, &[7; 70_000]),
        Frame::new(0x1, "κό".as_bytes()).with_fin(false),
        Frame::new(0x0, b"").with_fin(false),
        Frame::new(0x0, "σμε".as_bytes()),
    ]
    .map(|frame| frame.to_role(role).to_bytes())
    .concat()
}

#[test]
fn the_counter_counts() {
    let allocate = || drop(std::hint::black_box(vec![0u8; 10]));
    assert_eq!(measure(allocate).count_total, 1);
}

#[test]
fn listening_allocates_nothing() {
    for role in [Role::Client, Role::Server] {
        let mut wire = messages(role);
        let mut seen = 0;
        assert_no_allocation("listen", || {
            for _ in 0..ROUNDS {
                let mut count = |_, _, _, payload: &mut [u8]| seen += payload.len();
                let consumed = listen(role, &mut wire, &mut count);
                assert_eq!(consumed, Ok(wire.len()));
            }
        });
        assert_eq!(seen, ROUNDS * (5 + 125 + 70_000 + 4 + 6));
    }
}

#[test]
fn each_way_to_write_a_frame_allocates_nothing() {
    let mut memory = vec![0; 4096];
    for mask in [None, Some(KEY)] {
        for bytes in [0, 13, 125, 126, 1_024] {
            let payload = vec![b'x'; bytes];
            assert_no_allocation("factory", || {
                let frame = FrameFactory::start(&mut memory, Opcode::Text, bytes, mask);
                let mut frame = frame.expect("it fits");
                frame.payload_mut().copy_from_slice(&payload);
                frame.finish();
            });
            assert_no_allocation("in place", || {
                let start = head_room(bytes, mask.is_some());
                let payload = start..start + bytes;
                encode_in_place(&mut memory, payload, Opcode::Binary, mask);
            });
            assert_no_allocation("bulk", || {
                let mut frames = BulkEncoder::new(&mut memory);
                while frames.push(Opcode::Text, &payload, mask) {}
                assert!(!frames.written().is_empty());
            });
        }
    }
}

#[test]
fn reading_messages_allocates_nothing() {
    for read_bytes in [usize::MAX, 1_400, 7, 1] {
        let mut server = server();
        let mut wires = vec![messages(Role::Server); ROUNDS / 10];
        assert_no_allocation("server", || {
            for wire in &mut wires {
                assert!(drive(&mut server, wire, read_bytes) >= 7);
            }
        });
        let mut client = client();
        let mut wire = messages(Role::Client);
        assert_no_allocation("client", || {
            assert!(drive(&mut client, &mut wire, read_bytes) >= 7);
        });
    }
}

#[test]
fn sending_into_a_warm_buffer_allocates_nothing() {
    let (mut server, mut client) = (server(), client());
    let mut out = Vec::new();
    let payload = vec![b'x'; 70_000];
    let text = std::str::from_utf8(&payload[..300]).expect("ASCII is UTF-8");
    let mut round = |out: &mut Vec<u8>| {
        out.clear();
        server.send_text(out, text).expect("it is open");
        server.send_binary(out, &payload).expect("it is open");
        client.send_binary(out, &payload).expect("it is open");
        let (text, kind) = (text.as_bytes(), MessageKind::Text);
        client.send_fragment(out, kind, text, false).expect("open");
        client.send_ping(out, b"ping").expect("it is open");
        client.send_fragment(out, kind, text, true).expect("open");
        server.send_prefix(out, kind, 1 << 20).expect("it is open");
    };
    round(&mut out);
    assert_no_allocation("send", || (0..ROUNDS).for_each(|_| round(&mut out)));
}

#[test]
fn pings_and_pongs_after_the_first_allocate_nothing() {
    for read_bytes in [usize::MAX, 3, 1] {
        let mut engine = server();
        let mut out = Vec::with_capacity(1_024);
        let wire = [Frame::new(0x9, &[b'x'; 125]), Frame::new(0xA, &[b'y'; 125])]
            .map(|frame| frame.to_role(Role::Server).to_bytes())
            .concat();
        let mut wires = vec![wire; ROUNDS + 1];
        let (first, rest) = wires.split_first_mut().expect("there is one");
        let first = measure(|| assert_eq!(drive(&mut engine, first, read_bytes), 2));
        assert!(first.count_total <= 2, "the two slots for a payload");
        engine.poll_transmit(&mut out);
        assert_no_allocation("ping", || {
            for wire in rest {
                out.clear();
                assert_eq!(drive(&mut engine, wire, read_bytes), 2);
                assert!(engine.poll_transmit(&mut out));
            }
        });
        assert_eq!(out.len(), 127);
    }
}

#[test]
fn f09_a_claimed_length_allocates_nothing() {
    let mut config = Config::default();
    config.limits.message_bytes_max = 1 << 30;
    let mut engine = Engine::new(Server, Arc::new(config), Duration::ZERO);
    let frame = Frame::new(0x1, &[b'x'; 1_000]).with_claimed_bytes(60 << 20);
    let mut wire = frame.to_role(Role::Server).to_bytes();
    assert_no_allocation("slow frame", || {
        assert_eq!(drive(&mut engine, &mut wire, 1), 1_000);
    });
}

#[test]
fn f16_f17_fragments_allocate_nothing_however_many() {
    for payload in [&b""[..], b"x"] {
        let mut engine = server();
        let first = Frame::new(0x2, b"").with_fin(false).to_role(Role::Server);
        drive(&mut engine, &mut first.to_bytes(), usize::MAX);
        let next = Frame::new(0x0, payload).with_fin(false);
        let mut wire = next.to_role(Role::Server).to_bytes().repeat(100_000);
        assert_no_allocation("fragments", || {
            assert_eq!(drive(&mut engine, &mut wire, 4_096), 100_000);
        });
    }
}

#[test]
fn f18_f19_floods_of_pings_and_pongs_allocate_one_slot_at_most() {
    let mut engine = server();
    let flood = |opcode| {
        let frame = Frame::new(opcode, &[b'x'; 125]).to_role(Role::Server);
        frame.to_bytes().repeat(10_000)
    };
    let mut pongs = flood(0xA);
    assert_no_allocation("pongs", || {
        assert_eq!(drive(&mut engine, &mut pongs, usize::MAX), 10_000);
    });
    let mut pings = flood(0x9);
    let info = measure(|| assert_eq!(drive(&mut engine, &mut pings, usize::MAX), 10_000));
    assert_eq!(info.count_total, 1, "{info:?}");
    assert!(info.bytes_max < 256, "{info:?}");
}

#[test]
fn closing_allocates_one_payload() {
    let mut engine = server();
    let mut out = Vec::with_capacity(256);
    let info = measure(|| {
        let closed = engine.close(CloseCode::NORMAL, "bye", Duration::ZERO);
        closed.expect("the reason fits");
        engine.poll_transmit(&mut out);
    });
    assert_eq!(info.count_total, 1, "{info:?}");
}

#[test]
fn relaying_allocates_nothing() {
    use linerate_proto::relay::{Pings, Relay, Step};

    let wire = messages(Role::Server);
    let mut input = wire.clone();
    let mut relay = Relay::new(Role::Server, Client::new(|| KEY), Pings::Answer);
    assert_no_allocation("relay", || {
        for _ in 0..ROUNDS {
            input.copy_from_slice(&wire);
            let step = relay.next(&mut input).expect("the frames are legal");
            assert_eq!(step, Some(Step::Forward { bytes: wire.len() }));
        }
    });
}

#[cfg(all(feature = "deflate", feature = "std"))]
mod deflate {
    use linerate_proto::deflate::{Agreement, Context, Deflate, ThreadPool};

    use super::*;

    const TEXT: &str = r#"{"id":9182,"symbol":"ABC","price":123.45,"size":100,"side":"buy"}"#;

    fn engine<E: Endpoint>(endpoint: E, takeover: bool) -> Engine<E> {
        let context = Context {
            window_bits: 12,
            takeover,
        };
        let agreement = Agreement {
            sending: context,
            receiving: context,
        };
        let engine = Engine::new(endpoint, Arc::default(), Duration::ZERO);
        engine.with_deflate(agreement, &Deflate::default(), &ThreadPool)
    }

    /// Sends messages from one engine to the other, and back.
    fn exchange(
        ends: &mut (Engine<Server>, Engine<Client<impl FnMut() -> MaskKey>>),
        wire: &mut Vec<u8>,
    ) {
        for _ in 0..ROUNDS {
            wire.clear();
            ends.0.send_text(wire, TEXT).expect("it is open");
            assert_eq!(drive(&mut ends.1, wire, usize::MAX), 1);
            wire.clear();
            ends.1.send_text(wire, TEXT).expect("it is open");
            assert_eq!(drive(&mut ends.0, wire, usize::MAX), 1);
        }
    }

    #[test]
    fn compressed_messages_allocate_nothing_once_the_windows_are_full() {
        let mut ends = (engine(Server, true), engine(Client::new(|| KEY), true));
        let mut wire = Vec::with_capacity(1_000);
        exchange(&mut ends, &mut wire);
        assert_no_allocation("compressed", || exchange(&mut ends, &mut wire));
    }

    #[test]
    fn messages_compressed_separately_allocate_nothing_after_the_first() {
        let (server, client) = (engine(Server, false), engine(Client::new(|| KEY), false));
        let (mut ends, mut wire) = ((server, client), Vec::with_capacity(1_000));
        exchange(&mut ends, &mut wire);
        assert_no_allocation("compressed", || exchange(&mut ends, &mut wire));
    }

    #[test]
    fn x12_an_idle_compressed_connection_keeps_little_besides_its_windows() {
        let mut wire = Vec::with_capacity(1_000);
        // The pool that all connections of the thread share is full.
        for _ in 0..10 {
            let mut others = (engine(Server, true), engine(Client::new(|| KEY), true));
            exchange(&mut others, &mut wire);
        }
        let mut ends = None;
        let before_any = measure(|| {
            ends = Some((engine(Server, true), engine(Client::new(|| KEY), true)));
        });
        let ends = ends.as_mut().expect("they are made");
        let fresh = before_any.bytes_current / 4;
        assert!(
            fresh <= 512,
            "{fresh} bytes a direction before the first message"
        );
        let used = measure(|| exchange(ends, &mut wire));
        let held = fresh + used.bytes_current / 4;
        assert!(
            (4_096..=4_096 + 512).contains(&held),
            "{held} bytes a direction"
        );
    }
}
