//! Tests that zlib-rs, with one window over all messages, inflates what is compressed here.

use alloc::{format, sync::Arc, vec, vec::Vec};
use core::time::Duration;
use std::boxed::Box;

use proptest::prelude::*;
use zlib_rs::{Inflate, InflateFlush};

use super::*;
use crate::{
    Engine, Server,
    deflate::{Agreement, Budget, Context, Prepared, ThreadPool, compressor::TAIL},
    engine::MessageKind,
};

fn options() -> Deflate {
    Deflate {
        message_bytes_min: 32,
        // A budget for each test.
        budget: Box::leak(Box::new(Budget::new(1 << 20))),
        ..Deflate::default()
    }
}

fn block(payloads: &[Vec<u8>]) -> Vec<u8> {
    let mut frames = vec![];
    for payload in payloads {
        append_frame(&mut frames, true, Opcode::Binary, payload);
    }
    frames
}

/// A client that keeps its window from message to message.
struct Peer {
    inflate: Inflate,
    /// The position at which the last block ended, and how many bytes before it are in the window.
    end: u64,
    held: u64,
}

impl Peer {
    fn new() -> Self {
        Self {
            inflate: Inflate::new(false, Lockstep::WINDOW_BITS),
            end: 0,
            held: 0,
        }
    }

    /// Returns how many bytes before `positions` it holds.
    fn reach(&mut self, positions: &Range<u64>) -> u64 {
        if self.end != positions.start {
            self.held = 0;
        }
        let reach = self.held;
        self.held += positions.end - positions.start;
        self.end = positions.end;
        reach
    }

    /// Returns the payloads of frames, some of which are compressed.
    fn receive(&mut self, wire: &[u8]) -> Vec<Vec<u8>> {
        let mut rest = wire;
        let mut payloads = vec![];
        while let Ok(Some((header, start))) = Header::decode(rest) {
            let end = start + header.payload_bytes as usize;
            let payload = &rest[start..end];
            payloads.push(match header.rsv {
                0 => payload.to_vec(),
                _ => self.inflate(payload),
            });
            rest = &rest[end..];
        }
        assert!(rest.is_empty(), "a frame is incomplete");
        payloads
    }

    fn inflate(&mut self, payload: &[u8]) -> Vec<u8> {
        let message = [payload, &TAIL].concat();
        let mut output = vec![0; short::BYTES_MAX + 1];
        let (taken, before) = (self.inflate.total_in(), self.inflate.total_out());
        let status = self
            .inflate
            .decompress(&message, &mut output, InflateFlush::SyncFlush);
        assert!(status.is_ok(), "{status:?}");
        assert_eq!(self.inflate.total_in() - taken, message.len() as u64);
        output.truncate((self.inflate.total_out() - before) as usize);
        output
    }
}

fn compressed(stream: &Lockstep, block: &[u8], reach: u64) -> Vec<u8> {
    let mut wire = vec![];
    stream.compress(block, reach, &ThreadPool, &mut wire);
    wire
}

/// Returns a quote of about 250 bytes, as a client of Centrifuge's protocol receives it.
fn quote(number: u64) -> Vec<u8> {
    let symbol = ["ACME", "INIT", "UMBR", "WAYN", "STRK", "TYRL"][number as usize * 7 % 6];
    let mut random = number
        .wrapping_mul(6_364_136_223_846_793_005)
        .rotate_left(17);
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    let (bid, cents, size) = (100 + below(40), below(100), below(900) * 10);
    let (ask_size, time) = (below(900) * 10, 1_732_600_000_000 + number * 137);
    format!(
        r#"{{"push":{{"channel":"market:quotes","pub":{{"data":{{"symbol":"{symbol}","exchange":"XNAS","currency":"USD","bid":{bid}.{cents:02},"bidSize":{size},"ask":{bid}.{:02},"askSize":{ask_size},"volume":{},"time":{time},"status":"open"}},"offset":{}}}}}}}"#,
        cents + 2,
        1_000_000 + number * 113,
        4_200 + number,
    )
    .into_bytes()
}

#[test]
fn a_member_that_has_everything_gets_the_shortest_form() {
    let (mut stream, mut peer) = (Lockstep::new(&options()), Peer::new());
    let (mut first, mut others, mut plain) = (0, 0, 0);
    for number in 0..300 {
        let message = quote(number);
        let block = block(std::slice::from_ref(&message));
        let positions = stream.append(&block).unwrap();
        assert_eq!(stream.end(), positions.end);
        let wire = compressed(&stream, &block, peer.reach(&positions));
        if number == 0 {
            first = wire.len();
        } else {
            (others, plain) = (others + wire.len(), plain + block.len());
        }
        assert_eq!(peer.receive(&wire), [message]);
    }
    let (mean, plain) = (others / 299, plain / 299);
    assert!(plain > 230 && first < 170, "{plain} bytes become {first}");
    assert!(mean < 50, "{plain} bytes become {mean}");
}

/// What a peer receives between two blocks.
#[derive(Clone, Copy, Debug)]
enum Between {
    Nothing,
    /// A compressed message of another origin, such as a reply.
    Other,
    /// It does not receive the next block.
    Missed,
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        8 => Just(Between::Nothing),
        1 => Just(Between::Other),
        2 => Just(Between::Missed),
    ]
}

/// Generates payloads with repetitions within and between them.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let some = prop_oneof![6 => 0..400_usize, 2 => 0..3_000_usize, 1 => 0..9_000_usize];
    (some, any::<u64>(), 1..200_u64).prop_map(|(bytes, seed, alphabet)| {
        let mut payload = vec![];
        let mut random = seed | 1;
        while payload.len() < bytes {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            match random % 3 {
                0 => payload.extend(quote(random % 8)),
                1 => payload.extend_from_slice(&random.to_le_bytes()),
                _ => payload.push((random % alphabet) as u8),
            }
        }
        payload.truncate(bytes);
        payload
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_peer_inflates_every_form_that_it_may_receive(
        blocks in prop::collection::vec(prop::collection::vec(payload(), 1..4), 1..20),
        events in prop::collection::vec(between(), 100),
        reaches in prop::collection::vec(0..5_000_u64, 20),
        level in 1_u8..=9,
    ) {
        let mut options = options();
        options.level = level;
        let mut stream = Lockstep::new(&options);
        let mut peers: Vec<Peer> = (0..5).map(|_| Peer::new()).collect();
        let mut events = events.into_iter().cycle();
        for (payloads, reach_max) in blocks.iter().zip(reaches) {
            let block = block(payloads);
            let positions = stream.append(&block).unwrap();
            for (number, peer) in peers.iter_mut().enumerate() {
                match events.next().unwrap() {
                    Between::Nothing => {}
                    Between::Other => {
                        let other = Lockstep::alone(&options, payloads);
                        prop_assert_eq!(&peer.receive(&other), payloads);
                        peer.held = 0;
                        peer.end = u64::MAX;
                    }
                    Between::Missed => continue,
                }
                let held = peer.reach(&positions);
                // Any reach up to what the peer holds is allowed.
                let reach = if number == 0 { held } else { held.min(reach_max) };
                let wire = compressed(&stream, &block, reach);
                prop_assert_eq!(&peer.receive(&wire), payloads);
            }
        }
    }
}

impl Lockstep {
    /// Compresses messages for a peer that holds nothing.
    fn alone(options: &Deflate, payloads: &[Vec<u8>]) -> Vec<u8> {
        let mut stream = Self::new(options);
        let block = block(payloads);
        stream.append(&block).unwrap();
        compressed(&stream, &block, 0)
    }
}

/// Returns bytes without repetitions, six bits each, so that no block is stored.
fn noise(bytes: usize) -> Vec<u8> {
    let mut rng = linerate_testkit::Rng::new(7);
    let mut noise = rng.bytes(bytes);
    noise.iter_mut().for_each(|byte| *byte %= 64);
    noise
}

#[test]
fn messages_refer_back_exactly_as_far_as_the_reach() {
    let window = 1 << Lockstep::WINDOW_BITS;
    for distance in [64, 65, 250, 1_000, window - 1, window, window + 1] {
        let mut stream = Lockstep::new(&options());
        let earlier = noise(distance);
        stream
            .append(&block(std::slice::from_ref(&earlier)))
            .unwrap();
        // The first 40 bytes again: `distance` bytes back.
        let again = block(&[earlier[..40].to_vec()]);
        stream.append(&again).unwrap();
        let bytes = |reach| compressed(&stream, &again, reach).len();
        let is_far = distance > window;
        assert_eq!(bytes(distance as u64) < 12, !is_far, "{distance}");
        assert!(bytes(distance as u64 - 40) > 30, "{distance}");
        assert!(bytes(0) > 30, "{distance}");
    }
}

#[test]
fn messages_of_a_block_refer_to_each_other() {
    let mut stream = Lockstep::new(&options());
    let (one, two) = (block(&[quote(1)]), block(&[quote(1), quote(1)]));
    stream.append(&one).unwrap();
    let single = compressed(&stream, &one, 0).len();
    stream.append(&two).unwrap();
    assert!(compressed(&stream, &two, 0).len() < single + 12);
}

#[test]
fn messages_that_are_not_worth_it_are_not_in_the_stream() {
    let mut stream = Lockstep::new(&options());
    let (short, empty) = (vec![b'a'; 31], vec![]);
    let noise = linerate_testkit::Rng::new(1).bytes(1_000);
    let mixed = [short, quote(1), noise, empty];
    let block = block(&mixed);
    let positions = stream.append(&block).unwrap();
    assert_eq!(positions, 0..quote(1).len() as u64);
    let wire = compressed(&stream, &block, 0);
    assert_eq!(Peer::new().receive(&wire), mixed);
    assert_eq!(wire[0], 0x82);
    let nothing = self::block(&mixed[2..]);
    let empty = stream.append(&nothing).unwrap();
    assert_eq!(empty, positions.end..positions.end);
    assert_eq!(compressed(&stream, &nothing, 9), nothing);
}

#[test]
fn blocks_that_are_too_long_are_refused() {
    let mut stream = Lockstep::new(&options());
    let text = |bytes| vec![b'a'; bytes];
    assert!(stream.append(&block(&[text(short::BYTES_MAX)])).is_some());
    let end = stream.end();
    assert!(
        stream
            .append(&block(&[text(short::BYTES_MAX + 1)]))
            .is_none()
    );
    assert!(stream.append(&block(&vec![text(8_188); 8])).is_some());
    assert!(stream.append(&block(&vec![text(8_189); 8])).is_none());
    assert!(
        stream
            .append(b"\x82\x05abc")
            .is_some_and(|positions| positions.is_empty())
    );
    assert!(stream.end() > end);
}

#[test]
fn memory_is_drawn_from_the_budget() {
    let options = options();
    let budget = options.budget;
    let mut stream = Lockstep::new(&options);
    assert_eq!(budget.used(), 0);
    let short = block(&[quote(1)]);
    stream.append(&short).unwrap();
    let least = budget.used();
    assert!(least > 20_000 && least < 40_000, "{least}");
    budget.set_bytes_max(least);
    let positions = stream.append(&short).unwrap();
    assert!(stream.append(&block(&vec![vec![b'a'; 8_000]; 8])).is_none());
    assert_eq!(budget.used(), 0);
    // It starts again when there is room; the positions continue.
    let next = stream.append(&short).unwrap();
    assert_eq!(next.start, positions.end);
    let wire = compressed(&stream, &short, 10_000);
    assert_eq!(Peer::new().receive(&wire), [quote(1)]);
    drop(stream);
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_connection_with_external_takeover_agrees_on_it_and_keeps_nothing() {
    let options = Deflate {
        external_takeover: true,
        ..options()
    };
    let context = |takeover| Context {
        window_bits: 12,
        takeover,
    };
    let agreement = Agreement {
        sending: context(true),
        receiving: context(false),
    };
    let engine = Engine::new(Server, Arc::default(), Duration::ZERO);
    let mut engine = engine.with_deflate(agreement, &options, &ThreadPool);
    assert_eq!(engine.compression(), Some(context(true)));
    let prepared = Prepared::new(MessageKind::Text, quote(1), &options, &ThreadPool);
    let mut send = |is_prepared: bool| {
        let mut wire = vec![];
        let sent = match is_prepared {
            true => engine.send_prepared(&mut wire, &prepared),
            false => engine.send(&mut wire, MessageKind::Text, &quote(1)),
        };
        sent.unwrap();
        wire
    };
    // No message refers to the one before it.
    let first = send(true);
    assert_eq!(
        [send(false), send(true), send(false)],
        [(); 3].map(|()| first.clone())
    );
    assert_eq!(options.budget.used(), 0);
}
