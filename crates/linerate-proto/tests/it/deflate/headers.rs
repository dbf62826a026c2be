//! F28 with compression: checks every pair of first bytes in every situation against the rules.

use std::sync::Arc;

use linerate_proto::{Engine, Role, deflate::Deflate, engine::MessageKind};
use linerate_testkit::{Cuts, Frame, TestEndpoint, feed, feed_on};

use super::{FULL, deflated, engine_of};
use crate::{
    oracle::{consequences, judge, judged, wire},
    situation::Situation,
};

/// The situation of a connection, and whether its unfinished message is compressed.
const SITUATIONS: [(Situation, bool); 7] = [
    (Situation::CloseReceived, false),
    (Situation::CloseSent, false),
    (Situation::Idle, false),
    (Situation::InBinary, false),
    (Situation::InBinary, true),
    (Situation::InText, false),
    (Situation::InText, true),
];

const RSV1: u8 = 0x40;

/// A payload, and its inflated form.
struct Payload {
    wire: Vec<u8>,
    inflated: Vec<u8>,
}

impl Payload {
    /// Returns an uncompressed payload of this many bytes, or the payload of a Close frame with a
    /// code.
    fn plain(length: usize, is_close: bool) -> Self {
        let mut wire = vec![b'a'; length];
        if is_close {
            let code = wire.iter_mut().zip(b"\x03\xe8");
            code.for_each(|(to, from)| *to = *from);
        }
        let inflated = wire.clone();
        Self { wire, inflated }
    }

    /// Returns a compressed message whose compressed form has this many bytes.
    fn compressed(length: usize) -> Self {
        let (wire, inflated) = match length {
            // RFC 7692 §7.2.3.6: an empty message is an empty stored block, whose end is removed. A
            // payload without any bytes is treated the same.
            0 => (vec![], vec![]),
            1 => (vec![0], vec![]),
            // An empty block of the fixed code before it.
            2 => (vec![2, 0], vec![]),
            // Literals of the fixed code, eight bits each.
            3..=5 => (deflated(&b"abc"[..length - 2]), b"abc"[..length - 2].into()),
            // A stored block, RFC 1951 §3.2.4.
            6..=0x1_0004 => {
                let bytes = vec![b'b'; length - 6];
                let stored = bytes.len() as u16;
                let head = [&[0][..], &stored.to_le_bytes(), &(!stored).to_le_bytes()].concat();
                ([&head[..], &bytes, &[0]].concat(), bytes)
            }
            _ => unreachable!("no frame in this test is longer"),
        };
        assert_eq!(
            wire.len(),
            length,
            "the payload has the length that was asked"
        );
        Self { wire, inflated }
    }
}

fn engine_in(situation: Situation, is_compressed: bool, role: Role) -> Engine<TestEndpoint> {
    let mut engine = engine_of(role, &Arc::default(), FULL, &Deflate::default());
    if !is_compressed {
        situation.lead(&mut engine);
        return engine;
    }
    let opcode = match situation.record().unfinished {
        Some((MessageKind::Text, _)) => 0x1,
        _ => 0x2,
    };
    let frame = Frame::new(opcode, b"").with_rsv(4).with_fin(false);
    feed(&mut engine, &frame.to_role(role).to_bytes(), Cuts::Whole);
    engine
}

/// Checks one frame in one situation, whole and split after its first byte.
fn check(first: u8, second: u8, payload: &Payload, at: (Situation, bool), role: Role) {
    let (situation, is_compressed) = at;
    let begins = matches!(first & 0xF, 0x1 | 0x2);
    let inflates = (begins && first & RSV1 != 0) || (is_compressed && first & 0xF == 0);
    // RFC 7692 §6: RSV1 is "Per-Message Compressed" in the first fragment of a message, and must
    // not be set elsewhere.
    let as_plain = if begins { first & !RSV1 } else { first };
    let verdict = judge(as_plain, second, payload.wire.len(), situation, role);
    let content = if inflates {
        &payload.inflated
    } else {
        &payload.wire
    };
    let expected = consequences(verdict, content, situation, role);
    let mut wire = wire(second, &payload.wire, role);
    wire[0] = first;
    // Splitting matters only for the header, and long payloads take long.
    let cuts: &[_] = match wire.len() {
        0..=0xFFFF => &[Cuts::Whole, Cuts::At(1)],
        _ => &[Cuts::Whole],
    };
    for &cuts in cuts {
        let mut engine = engine_in(situation, is_compressed, role);
        let record = feed_on(situation.record(), &mut engine, &wire, cuts);
        assert_eq!(
            judged(record),
            expected,
            "{first:#04x} {second:#04x} {at:?} {verdict:?} {cuts:?}"
        );
    }
}

fn assert_all_headers_are_judged_right(role: Role) {
    for second in 0..=0xFF {
        let length = match second & 0x7F {
            126 => 126,
            127 => 65_536,
            length => length as usize,
        };
        let plain = Payload::plain(length, false);
        let close = Payload::plain(length, true);
        let compressed = Payload::compressed(length);
        for first in 0..=0xFF {
            for at in SITUATIONS {
                let payload = match first & 0xF {
                    0x0 if at.1 => &compressed,
                    0x1 | 0x2 if first & RSV1 != 0 => &compressed,
                    0x8 => &close,
                    _ => &plain,
                };
                check(first, second, payload, at, role);
            }
        }
    }
}

#[test]
fn f28_a_client_that_inflates_judges_all_headers_like_the_oracle() {
    assert_all_headers_are_judged_right(Role::Client);
}

#[test]
fn f28_a_server_that_inflates_judges_all_headers_like_the_oracle() {
    assert_all_headers_are_judged_right(Role::Server);
}
