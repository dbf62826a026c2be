//! What is sent after a move continues what was sent before it.

use std::sync::Arc;

use linerate_proto::{
    Engine, Role, SendError,
    engine::{Importer, MessageKind},
};
use linerate_testkit::{Cuts, Rng, Seen, TestEndpoint, feed};
use proptest::prelude::*;

use super::{NOW, moved};
use crate::situation::ROLES;

/// One call of the application, with a payload.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Fragment(Vec<u8>, bool),
    Message(Vec<u8>),
    Ping(Vec<u8>),
    Uncompressed(Vec<u8>),
}

/// Returns random calls: messages that resemble each other, and fragments.
pub(crate) fn random_calls(rng: &mut Rng) -> Vec<Call> {
    let mut in_message = false;
    let mut calls: Vec<Call> = (0..2 + rng.below(12))
        .map(|_| {
            let words = rng.below(*rng.clone().pick(&[3, 40, 4_000]));
            let noise = rng.below(3) == 0;
            let payload = match noise {
                true => rng.bytes(words),
                false => (0..words)
                    .flat_map(|_| rng.pick(&["price ", "symbol ", "42.5 ", "zażółć "]).bytes())
                    .collect(),
            };
            match rng.below(if in_message { 4 } else { 8 }) {
                0 => Call::Ping(payload[..payload.len().min(125)].into()),
                1..4 => {
                    in_message = rng.below(3) > 0;
                    Call::Fragment(payload, !in_message)
                }
                4 => Call::Uncompressed(payload),
                _ => Call::Message(payload),
            }
        })
        .collect();
    if in_message {
        calls.push(Call::Fragment(b"the end".into(), true));
    }
    calls
}

/// Makes `calls` on `sender`, moving it before each call for which `moves` returns true. A peer
/// that never moves must see what was sent.
pub(crate) fn assert_peer_sees(
    mut sender: Engine<TestEndpoint>,
    importer: &Importer,
    mut peer: Engine<TestEndpoint>,
    calls: &[Call],
    mut moves: impl FnMut(usize) -> bool,
) {
    let kind = MessageKind::Binary;
    let (mut wire, mut expected, mut joined) = (Vec::new(), Vec::new(), Vec::new());
    for (number, call) in calls.iter().enumerate() {
        if moves(number) {
            sender = moved(&mut sender, importer);
        }
        let sent = match call {
            Call::Fragment(payload, fin) => {
                joined.extend_from_slice(payload);
                if *fin {
                    expected.push(Seen::binary(&std::mem::take(&mut joined)));
                }
                sender.send_fragment(&mut wire, kind, payload, *fin)
            }
            Call::Message(payload) => {
                expected.push(Seen::binary(payload));
                sender.send(&mut wire, kind, payload)
            }
            Call::Ping(payload) => {
                expected.push(Seen::Ping(payload.clone()));
                sender.send_ping(&mut wire, payload)
            }
            Call::Uncompressed(payload) => {
                expected.push(Seen::binary(payload));
                sender.send_uncompressed(&mut wire, kind, payload)
            }
        };
        sent.expect("the connection is open");
    }
    let record = feed(&mut peer, &wire, Cuts::Whole);
    assert!(record.seen == expected, "{calls:?}");
}

pub(crate) const fn other(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

#[test]
fn a_fragmented_message_continues_after_a_move() {
    for role in ROLES {
        let importer = Importer::new(Arc::default());
        let mut engine = Engine::new(TestEndpoint(role), Arc::default(), NOW);
        let mut out = Vec::new();
        let kind = MessageKind::Text;
        engine.send_fragment(&mut out, kind, b"a", false).unwrap();
        let mut engine = moved(&mut engine, &importer);
        assert_eq!(
            engine.send_text(&mut out, "b"),
            Err(SendError::MessageInProgress)
        );
        engine.send_fragment(&mut out, kind, b"b", true).unwrap();
        let mut engine = moved(&mut engine, &importer);
        engine.send_text(&mut out, "c").unwrap();
        let mut peer = Engine::new(TestEndpoint(other(role)), Arc::default(), NOW);
        let seen = feed(&mut peer, &out, Cuts::Whole).seen;
        assert_eq!(seen, [Seen::text("ab"), Seen::text("c")]);
    }
}

proptest! {
    #[test]
    fn random_messages_can_be_read_after_several_moves(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let role = *rng.pick(&ROLES);
        let calls = random_calls(&mut rng);
        let engine = |role| Engine::new(TestEndpoint(role), Arc::default(), NOW);
        let importer = Importer::new(Arc::default());
        let (sender, peer) = (engine(role), engine(other(role)));
        assert_peer_sees(sender, &importer, peer, &calls, |_| rng.below(2) == 0);
    }
}
