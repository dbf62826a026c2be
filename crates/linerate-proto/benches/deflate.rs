//! Compression of messages without takeover: by the engine, and by zlib-rs, reset for each message;
//! and as blocks of a stream that many connections receive.
//!
//! Run with `cargo bench -p linerate-proto --features deflate,std --bench deflate`. An item is a
//! message. The compressed sizes are printed before anything is measured.

use core::time::Duration;
use std::{cell::Cell, hint::black_box, sync::Arc};

use divan::{Bencher, counter::ItemsCount};
use linerate_proto::{
    Engine, Opcode, Server,
    deflate::{Agreement, Context, Deflate, Lockstep, ThreadPool},
    engine::MessageKind,
    frame,
};
use zlib_rs::DeflateFlush;

/// Message lengths in bytes; the last is the longest that our own encoder takes.
const SIZES: [usize; 6] = [100, 250, 1_000, 3_000, 8_000, 16_384];

/// The number of different messages, which are used in turn.
const MESSAGES: usize = 32;

/// The maximum length of the header of a frame of less than 64 KiB, in bytes.
const HEADER_BYTES_MAX: usize = 4;

/// The number of bytes at the end of a flush that are not sent.
const TAIL_BYTES: usize = 4;

const CONTEXT: Context = Context {
    window_bits: 12,
    takeover: false,
};

fn main() {
    for bytes in SIZES {
        let (mut own, mut zlib, mut lockstep) = (own(), zlib(), lockstep());
        let messages = messages(bytes);
        let own: usize = messages.iter().map(|message| own(message)).sum();
        let zlib: usize = messages.iter().map(|message| zlib(message)).sum();
        let lockstep: usize = messages.iter().map(|message| lockstep(message)).sum();
        let (own, zlib, lockstep) = (own / MESSAGES, zlib / MESSAGES, lockstep / MESSAGES);
        println!("{bytes} bytes become {own} (zlib-rs: {zlib}; in a stream: {lockstep})");
    }
    divan::main();
}

/// Returns JSON rows like those sent to dashboards.
fn messages(bytes: usize) -> Vec<Vec<u8>> {
    let mut state = 7_u64;
    let mut random = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let message = |number: usize| {
        let mut text = format!(r#"{{"id":{number},"rows":["#);
        while text.len() < bytes {
            let (channel, offset) = (random(500), random(1_000_000));
            let (bid, cents, open) = (random(1_000), random(100), random(2) == 0);
            text += &format!(
                r#"{{"channel":"prices:{channel}","offset":{offset},"bid":{bid}.{cents:02},"open":{open}}},"#
            );
        }
        text.truncate(bytes);
        text.into_bytes()
    };
    (0..MESSAGES).map(message).collect()
}

/// Returns a function that compresses a message with the default settings and returns its length.
fn own() -> impl FnMut(&[u8]) -> usize {
    let agreement = Agreement {
        sending: CONTEXT,
        receiving: CONTEXT,
    };
    let engine = Engine::new(Server, Arc::default(), Duration::ZERO);
    let mut engine = engine.with_deflate(agreement, &Deflate::default(), &ThreadPool);
    let mut wire = Vec::new();
    move |message| {
        wire.clear();
        let sent = engine.send(&mut wire, MessageKind::Binary, message);
        sent.expect("the connection is open");
        black_box(&wire).len() - HEADER_BYTES_MAX
    }
}

/// Returns the same for zlib-rs.
fn zlib() -> impl FnMut(&[u8]) -> usize {
    let level = Deflate::default().level.into();
    let mut deflate = zlib_rs::Deflate::new(level, false, CONTEXT.window_bits);
    let mut output = vec![0; 64 << 10];
    move |message| {
        deflate.reset();
        let run = deflate.compress(message, &mut output, DeflateFlush::SyncFlush);
        run.expect("there is room for it");
        black_box(&output);
        deflate.total_out() as usize - TAIL_BYTES
    }
}

/// Returns a function that compresses a message as the next block of a stream, for connections that
/// have received all of it, and returns the length of its frame.
fn lockstep() -> impl FnMut(&[u8]) -> usize {
    let mut stream = Lockstep::new(&Deflate::default());
    let (mut block, mut wire) = (Vec::new(), Vec::new());
    move |message| {
        block.clear();
        frame::append(&mut block, Opcode::Binary, message);
        let positions = stream.append(&block).expect("the block is short");
        wire.clear();
        stream.compress(&block, positions.start, &ThreadPool, &mut wire);
        black_box(&wire).len()
    }
}

fn bench(bencher: Bencher<'_, '_>, bytes: usize, mut compress: impl FnMut(&[u8]) -> usize) {
    let messages = messages(bytes);
    let next = Cell::new(0);
    bencher.counter(ItemsCount::new(1_usize)).bench_local(|| {
        next.set((next.get() + 1) % MESSAGES);
        compress(&messages[next.get()])
    });
}

#[divan::bench(args = SIZES)]
fn compress_own(bencher: Bencher<'_, '_>, bytes: usize) {
    bench(bencher, bytes, own());
}

#[divan::bench(args = SIZES)]
fn compress_zlib_rs(bencher: Bencher<'_, '_>, bytes: usize) {
    bench(bencher, bytes, zlib());
}

#[divan::bench(args = SIZES)]
fn compress_lockstep(bencher: Bencher<'_, '_>, bytes: usize) {
    bench(bencher, bytes, lockstep());
}
