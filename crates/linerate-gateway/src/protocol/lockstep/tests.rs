//! Simulated clients, each with one window over everything that it receives, inflate what followers
//! are sent.

use std::time::{Duration, Instant};

use linerate_budget::{Budget, Consumer};
use linerate_hub::{
    ChannelName, ChannelOptions, ClientId, Hub, HubOptions, Publication, Start,
    SubscriptionOptions, Transmit,
};
use linerate_proto::{
    Engine, Role, Server,
    deflate::{Agreement, Prepared},
    engine::MessageKind,
};
use linerate_testkit::{Cuts, Rng, Seen, TestEndpoint, feed};

use super::*;
use crate::protocol::{Block, encoders, encoding_id, raw::RAW};

const CONTEXT: Context = Context {
    window_bits: 15,
    takeover: true,
};

fn deflate() -> Deflate {
    let mut deflate = Deflate::default();
    deflate.external_takeover = true;
    deflate
}

/// A browser, and what the server knows of it.
struct Browser {
    client: ClientId,
    follower: Follower,
    server: Engine<Server>,
    engine: Engine<TestEndpoint>,
    /// The bytes that it received.
    bytes: usize,
    /// How many items it takes at once.
    pace: usize,
}

impl Browser {
    fn new(client: ClientId) -> Self {
        let agreement = Agreement {
            sending: CONTEXT,
            receiving: CONTEXT,
        };
        let server = Engine::new(Server, Arc::default(), Duration::ZERO);
        let engine = Engine::new(TestEndpoint(Role::Client), Arc::default(), Duration::ZERO);
        Self {
            client,
            follower: Follower::default(),
            server: server.with_deflate(agreement, &deflate(), &ThreadPool),
            engine: engine.with_deflate(agreement, &Deflate::default(), &ThreadPool),
            bytes: 0,
            pace: usize::MAX,
        }
    }

    /// Sends a block as the wire does, checks what arrives, and returns the bytes on the wire.
    fn send(&mut self, block: &Block) -> Vec<u8> {
        let account = Account::default();
        let frames = block.compressed_after(&mut self.follower, &deflate(), &account);
        let mut wire = Vec::new();
        if frames.is_compressed() {
            for (kind, payload) in messages(block) {
                let prepared = Prepared::new(kind, payload, &deflate(), &ThreadPool);
                self.server.send_prepared(&mut wire, &prepared).unwrap();
            }
        } else {
            wire.extend_from_slice(frames.as_bytes());
        }
        self.bytes += wire.len();
        let expected: Vec<Seen> = messages(block)
            .map(|(kind, bytes)| Seen::Message { kind, bytes })
            .collect();
        assert_eq!(feed(&mut self.engine, &wire, Cuts::Whole).seen, expected);
        wire
    }
}

/// Returns the kinds and payloads of the messages in a block.
fn messages(block: &Block) -> impl Iterator<Item = (MessageKind, Vec<u8>)> + use<> {
    let mut plain = Engine::new(TestEndpoint(Role::Client), Arc::default(), Duration::ZERO);
    let seen = feed(&mut plain, block.bytes(), Cuts::Whole).seen;
    seen.into_iter().map(|seen| match seen {
        Seen::Message { kind, bytes } => (kind, bytes),
        other => panic!("unexpected {other:?}"),
    })
}

/// A hub with browsers.
struct World {
    hub: Hub<Arc<Block>>,
    now: Instant,
    browsers: Vec<Browser>,
}

impl World {
    fn new() -> Self {
        Self {
            hub: Hub::new(HubOptions {
                encodings: encoders(),
                ..HubOptions::default()
            }),
            now: Instant::now(),
            browsers: Vec::new(),
        }
    }

    fn join(&mut self, channels: &[&str]) {
        let client = self.hub.connect();
        for channel in channels {
            let options = SubscriptionOptions {
                is_sequenced: true,
                batch_bytes_max: 1_000,
                ..SubscriptionOptions::new(encoding_id(&RAW))
            };
            let ring = ChannelOptions {
                ring_messages_max: 20,
                ..ChannelOptions::default()
            };
            let subscription = self
                .hub
                .subscribe(self.now, client, name(channel), ring, options)
                .unwrap();
            self.hub.activate(self.now, subscription, Start::Live);
        }
        self.browsers.push(Browser::new(client));
        self.deliver();
    }

    fn publish(&mut self, channel: &str, payload: String) {
        let publication = Publication::new(payload.into());
        self.hub.publish(self.now, &name(channel), publication);
    }

    /// Delivers to each browser what it takes at its pace. Returns the wire bytes of all blocks.
    fn deliver(&mut self) -> Vec<Vec<u8>> {
        let mut wires = Vec::new();
        while let Some(client) = self.hub.poll_ready() {
            let known = self.browsers.iter_mut();
            let mut known = known.filter(|browser| browser.client == client);
            let Some(browser) = known.next() else {
                continue;
            };
            for _ in 0..browser.pace {
                match self.hub.poll_transmit(self.now, client) {
                    Some(Transmit::Block { block, .. }) => wires.push(browser.send(&block)),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        wires
    }

    /// Lets all browsers take more.
    fn catch_up(&mut self) {
        for browser in &self.browsers {
            self.hub.handle_writable(browser.client);
        }
        self.deliver();
    }

    /// Publishes a quote and returns how many bytes each browser receives.
    fn lengths(&mut self, channel: &str, number: u64) -> Vec<usize> {
        let received = |world: &Self| -> Vec<usize> {
            world.browsers.iter().map(|browser| browser.bytes).collect()
        };
        let before = received(self);
        self.publish(channel, quote(number));
        self.deliver();
        let after = received(self).into_iter().zip(before);
        after.map(|(after, before)| after - before).collect()
    }
}

fn name(channel: &str) -> ChannelName {
    ChannelName::new(channel).unwrap()
}

/// Returns a publication of about 250 bytes.
fn quote(number: u64) -> String {
    let mut rng = Rng::new(number + 1);
    let mut below = |limit| rng.below(limit);
    let symbol = ["ACME", "INIT", "UMBR", "WAYN", "STRK", "TYRL"][below(6)];
    let (bid, cents) = (100 + below(40), below(98));
    format!(
        r#"{{"symbol":"{symbol}","exchange":"XNAS","currency":"USD","bid":{bid}.{cents:02},"bidSize":{},"ask":{bid}.{:02},"askSize":{},"volume":{},"time":{},"session":"regular","status":"open","condition":"firm","venues":["XNAS","ARCX","BATS"],"source":"consolidated"}}"#,
        below(900) * 10,
        cents + 2,
        below(900) * 10,
        1_000_000 + number * 113,
        1_732_600_000_000 + number * 137,
    )
}

/// Returns a message to one client, about as long as a publication.
fn reply(number: u64) -> Block {
    let mut wire = Vec::new();
    Frames::append(&mut wire, MessageKind::Text, quote(number).as_bytes());
    Block::new(wire, 1)
}

#[test]
fn everyone_who_has_everything_gets_the_same_short_bytes() {
    let mut world = World::new();
    for _ in 0..5 {
        world.join(&["a"]);
    }
    let first = world.lengths("a", 0);
    let (mut sum, mut last) = (0, Vec::new());
    for number in 1..=100 {
        world.publish("a", quote(number));
        last = world.deliver();
        assert_eq!(last.len(), 5);
        assert!(last.iter().all(|wire| *wire == last[0]));
        sum += last[0].len();
    }
    assert!(sum / 100 <= 60, "{} of {first:?}", sum / 100);
    // RSV1 is set.
    assert_eq!(last[0][0], 0xC1);
}

#[test]
fn a_newcomer_costs_the_others_nothing_and_catches_up() {
    let mut world = World::new();
    for _ in 0..3 {
        world.join(&["a"]);
    }
    for number in 0..50 {
        world.lengths("a", number);
    }
    world.join(&["a"]);
    for number in 50..80 {
        let lengths = world.lengths("a", number);
        let (full, newcomer) = (lengths[0], lengths[3]);
        assert_eq!(lengths[..3], [full; 3]);
        match number {
            50 => assert!(newcomer > 130, "{newcomer}"),
            51..55 => assert!(newcomer < full + 40, "{newcomer}, {full}"),
            68.. => assert_eq!(newcomer, full),
            _ => {}
        }
    }
}

#[test]
fn another_compressed_message_takes_a_client_out_for_one_block() {
    let mut world = World::new();
    for _ in 0..3 {
        world.join(&["a"]);
    }
    for number in 0..40 {
        world.lengths("a", number);
    }
    assert!(world.browsers[1].send(&reply(1)).len() > 100);
    let lengths = world.lengths("a", 40);
    assert_eq!(lengths[0], lengths[2]);
    assert!(lengths[1] > lengths[0] + 60, "{lengths:?}");
    // Short replies are not compressed, and change nothing.
    let mut wire = Vec::new();
    Frames::append(&mut wire, MessageKind::Text, b"{}");
    world.browsers[0].send(&Block::new(wire, 1));
    let lengths = world.lengths("a", 41);
    assert_eq!(lengths[0], lengths[2]);
    assert!(lengths[1] < lengths[0] + 40, "{lengths:?}");
}

#[test]
fn channels_do_not_share_a_stream() {
    let mut world = World::new();
    for channels in [&["a"][..], &["a"], &["b"], &["b"], &["a", "b"]] {
        world.join(channels);
    }
    for number in 0..40 {
        world.lengths(["a", "b"][number as usize % 2], number);
    }
    let both = world.browsers[4].bytes;
    let one = world.browsers[0].bytes;
    assert!(one < 20 * 80, "{one}");
    // For the client of both, no block may refer to the one before it.
    assert!(both > 40 * 130, "{both}");
}

#[test]
fn a_slow_client_that_takes_every_block_stays_in_step() {
    let mut world = World::new();
    for _ in 0..3 {
        world.join(&["a"]);
    }
    for number in 0..30 {
        world.lengths("a", number);
    }
    let before = world.browsers[2].bytes;
    world.browsers[2].pace = 0;
    for number in 30..40 {
        world.lengths("a", number);
    }
    world.browsers[2].pace = usize::MAX;
    world.catch_up();
    let taken = world.browsers[2].bytes - before;
    assert!(taken < 10 * 65, "{taken}");
}

#[test]
fn whatever_happens_every_client_inflates_what_it_is_sent() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let mut world = World::new();
        for number in 0..200 {
            match rng.below(20) {
                0 if world.browsers.len() < 12 => {
                    world.join([&["a"][..], &["a"], &["b"], &["a", "b"]][rng.below(4)]);
                }
                1 if world.browsers.len() > 4 => {
                    let gone = world.browsers.swap_remove(rng.below(5));
                    world.hub.disconnect(gone.client);
                }
                2 | 3 if !world.browsers.is_empty() => {
                    let lucky = rng.below(world.browsers.len());
                    world.browsers[lucky].send(&reply(number));
                }
                4 if !world.browsers.is_empty() => {
                    let which = rng.below(world.browsers.len());
                    world.browsers[which].pace = [0, 1, 2, usize::MAX][rng.below(4)];
                }
                5 => world.catch_up(),
                6 => world.publish("a", quote(number).repeat(rng.below(100))),
                7 => world.publish("b", "short".into()),
                _ => world.publish(["a", "a", "b"][rng.below(3)], quote(number)),
            }
            if rng.below(4) > 0 {
                world.deliver();
            }
        }
        world
            .browsers
            .iter_mut()
            .for_each(|one| one.pace = usize::MAX);
        world.catch_up();
    }
}

#[test]
fn a_client_that_cannot_refer_back_does_not_follow() {
    let narrow = Context {
        window_bits: 11,
        ..CONTEXT
    };
    let alone = Context {
        takeover: false,
        ..CONTEXT
    };
    let least = Context {
        window_bits: 12,
        ..CONTEXT
    };
    assert!(!Follower::is_possible(narrow) && !Follower::is_possible(alone));
    assert!(Follower::is_possible(least) && Follower::is_possible(CONTEXT));
}

#[test]
fn forms_are_charged_as_long_as_their_block_lasts() {
    let budget = Budget::new(1 << 20);
    let account = budget.account(Consumer::Blocks);
    let lockstep: linerate_hub::Sequence = Arc::new(Lockstep::new());
    let place = Place {
        sequence: &lockstep,
        from: 0,
        to: 1,
    };
    let block = reply(1).with_place(&place);
    let frames = block.compressed_after(&mut Follower::default(), &deflate(), &account);
    assert_eq!(account.bytes(), frames.len() as u64);
    drop(block);
    assert_eq!(account.bytes(), 0);
}
