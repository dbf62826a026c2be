//! The codec and the engine: frames per second and time per frame.
//!
//! Run with `cargo bench -p linerate-proto --bench codec`. Each item is one frame. The buffer is
//! warm, like that of a worker that reads for one connection after the other. All results are
//! checked before anything is measured.

use core::time::Duration;
use std::{hint::black_box, sync::Arc};

use divan::{
    Bencher,
    counter::{BytesCount, ItemsCount},
};
use linerate_proto::{
    Client, Config, Engine, Event, MaskKey, Opcode, Role, Server,
    frame::{BulkEncoder, listen},
};

/// The size in bytes of the buffer that frames are read from and written to, like that of a read.
const BUFFER_BYTES: usize = 60_000;
/// The masking key. Reading unmasks in place, and reading again masks. This key turns ASCII into
/// ASCII, so that the same buffer is valid text each time.
const KEY: MaskKey = MaskKey([0x37, 0x5A, 0x21, 0x3D]);
/// Payload lengths: single values, quotes, small JSON, the longest short frame, and a page of text.
const SIZES: [usize; 5] = [5, 13, 20, 125, 1024];

fn main() {
    for payload_bytes in SIZES {
        check(payload_bytes);
    }
    divan::main();
}

/// Returns a buffer full of frames and their number.
fn frames(payload_bytes: usize, opcode: Opcode, mask: Option<MaskKey>) -> (Vec<u8>, usize) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut encoder = BulkEncoder::new(&mut buffer);
    let payload = vec![b'x'; payload_bytes];
    let mut count = 0;
    while encoder.push(opcode, &payload, mask) {
        count += 1;
    }
    let bytes = encoder.written().len();
    buffer.truncate(bytes);
    (buffer, count)
}

/// Checks that each way of reading returns everything that was written.
fn check(payload_bytes: usize) {
    let payload = vec![b'x'; payload_bytes];
    for (role, mask) in [(Role::Server, Some(KEY)), (Role::Client, None)] {
        let (mut wire, count) = frames(payload_bytes, Opcode::Binary, mask);
        assert_eq!(count, BUFFER_BYTES / (wire.len() / count));
        let mut heard = 0;
        let consumed = listen(
            role,
            &mut wire,
            &mut |fin, rsv, opcode, bytes: &mut [u8]| {
                assert!(fin && rsv == 0 && opcode == Opcode::Binary && bytes == payload);
                heard += 1;
            },
        );
        assert_eq!((consumed, heard), (Ok(wire.len()), count));
    }
    let (mut wire, count) = frames(payload_bytes, Opcode::Text, Some(KEY));
    let mut engine = server();
    let mut events = engine.handle_input(&mut wire, Duration::ZERO);
    for _ in 0..count {
        match events.next() {
            Some(Ok(Event::Text(text))) => assert_eq!(text.as_bytes(), payload),
            other => panic!("{other:?}"),
        }
    }
    assert!(events.next().is_none());
    let mut sent = Vec::new();
    let mut client = Engine::new(Client::new(|| KEY), Arc::default(), Duration::ZERO);
    client.send_binary(&mut sent, &payload).expect("it is open");
    let (wire, count) = frames(payload_bytes, Opcode::Binary, Some(KEY));
    assert_eq!(sent, wire[..wire.len() / count]);
}

fn server() -> Engine<Server> {
    Engine::new(Server, Arc::new(Config::default()), Duration::ZERO)
}

/// Reading with the frame listener, which borrows payloads.
#[divan::bench(args = SIZES)]
fn decode_listen_masked(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    let (mut wire, count) = frames(payload_bytes, Opcode::Binary, Some(KEY));
    bencher
        .counter(ItemsCount::new(count))
        .counter(BytesCount::new(wire.len()))
        .bench_local(|| {
            let mut bytes = 0;
            let listener = &mut |_, _, _, payload: &mut [u8]| bytes += payload.len();
            (listen(Role::Server, black_box(&mut wire), listener), bytes)
        });
}

/// Reading with the engine, which also checks the rules for messages, unlike `listen`.
#[divan::bench(args = SIZES)]
fn decode_engine_binary(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    decode_engine(bencher, payload_bytes, Opcode::Binary);
}

/// Reading text with the engine, which validates it.
#[divan::bench(args = SIZES)]
fn decode_engine_text(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    decode_engine(bencher, payload_bytes, Opcode::Text);
}

fn decode_engine(bencher: Bencher<'_, '_>, payload_bytes: usize, opcode: Opcode) {
    let (mut wire, count) = frames(payload_bytes, opcode, Some(KEY));
    let mut engine = server();
    bencher
        .counter(ItemsCount::new(count))
        .counter(BytesCount::new(wire.len()))
        .bench_local(|| {
            let mut bytes = 0;
            let mut events = engine.handle_input(black_box(&mut wire), Duration::ZERO);
            while let Some(Ok(event)) = events.next() {
                bytes += match black_box(event) {
                    Event::Binary(payload) => payload.len(),
                    Event::Text(text) => text.len(),
                    _ => 0,
                };
            }
            bytes
        });
}

/// Writing many frames into one buffer, as a server.
#[divan::bench(args = SIZES)]
fn encode_bulk(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    encode(bencher, payload_bytes, None);
}

/// Writing many frames into one buffer, as a client.
#[divan::bench(args = SIZES)]
fn encode_bulk_masked(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    encode(bencher, payload_bytes, Some(KEY));
}

fn encode(bencher: Bencher<'_, '_>, payload_bytes: usize, mask: Option<MaskKey>) {
    let (wire, count) = frames(payload_bytes, Opcode::Binary, mask);
    let mut buffer = vec![0; BUFFER_BYTES];
    let payload = vec![b'x'; payload_bytes];
    bencher
        .counter(ItemsCount::new(count))
        .counter(BytesCount::new(wire.len()))
        .bench_local(|| {
            let mut encoder = BulkEncoder::new(&mut buffer);
            while encoder.push(Opcode::Binary, black_box(&payload), mask) {}
            black_box(encoder.written()).len()
        });
}

/// Sending one message with the engine into a buffer that has room.
#[divan::bench(args = SIZES)]
fn send_one(bencher: Bencher<'_, '_>, payload_bytes: usize) {
    let mut engine = server();
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    let payload = vec![b'x'; payload_bytes];
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        out.clear();
        let sent = engine.send_binary(&mut out, black_box(&payload));
        (sent, black_box(&out).len())
    });
}
