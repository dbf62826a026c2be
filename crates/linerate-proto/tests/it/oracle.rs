//! F28: checks every pair of first bytes in every situation against rules derived only from the
//! RFC.

use std::sync::Arc;

use linerate_proto::{Config, Role, engine::MessageKind};
use linerate_testkit::{Cuts, Frame, KEY, Record, Seen, feed_on};

use crate::situation::{ROLES, Situation, close_frame};

/// The required outcome of a frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// A Close frame with this code, or without a code.
    Close(Option<u16>),
    /// Part of a message that continues.
    Fragment,
    /// §5.5.1: everything after a Close frame is ignored.
    Ignored,
    /// The end of a message of this kind.
    Message(MessageKind),
    Ping,
    Pong,
    /// _Fail the WebSocket Connection_ with 1002.
    Violation,
}

/// Determines the outcome of a frame from its first two bytes. `length` is the length of its
/// payload, encoded in its shortest form. The payload of a Close frame has the code 1000 if there
/// is room for a code.
pub(crate) fn judge(
    first: u8,
    second: u8,
    length: usize,
    situation: Situation,
    receiver: Role,
) -> Verdict {
    if situation == Situation::CloseReceived {
        return Verdict::Ignored;
    }
    // §5.2: RSV1 to RSV3 "MUST be 0 unless an extension is negotiated".
    if first & 0b0111_0000 != 0 {
        return Verdict::Violation;
    }
    // §5.1: "The server MUST close the connection upon receiving a frame that is not masked", "A
    // client MUST close a connection if it detects a masked frame".
    let masked = second & 0b1000_0000 != 0;
    if masked && receiver == Role::Client || !masked && receiver == Role::Server {
        return Verdict::Violation;
    }
    let fin = first & 0b1000_0000 != 0;
    let continues = match situation {
        Situation::InText => Some(MessageKind::Text),
        Situation::InBinary => Some(MessageKind::Binary),
        _ => None,
    };
    match first & 0b1111 {
        // §5.4: a fragmented message is one frame with an opcode, then continuations, the last with
        // FIN; "fragments of one message MUST NOT be interleaved" with another message's.
        0x0 => match continues {
            Some(kind) if fin => Verdict::Message(kind),
            Some(_) => Verdict::Fragment,
            None => Verdict::Violation,
        },
        0x1 | 0x2 if continues.is_some() => Verdict::Violation,
        0x1 | 0x2 if !fin => Verdict::Fragment,
        0x1 => Verdict::Message(MessageKind::Text),
        0x2 => Verdict::Message(MessageKind::Binary),
        // §5.5: control frames "MUST have a payload length of 125 bytes or less and MUST NOT be
        // fragmented".
        0x8..=0xA if !fin || length > 125 => Verdict::Violation,
        // §5.5.1: "If there is a body, the first two bytes of the body MUST be a 2-byte" code.
        0x8 => match length {
            0 => Verdict::Close(None),
            1 => Verdict::Violation,
            _ => Verdict::Close(Some(1000)),
        },
        0x9 => Verdict::Ping,
        0xA => Verdict::Pong,
        // §5.2: all other opcodes are reserved.
        _ => Verdict::Violation,
    }
}

/// Returns what the application sees and what is written for a frame and the Ping after it.
pub(crate) fn consequences(
    verdict: Verdict,
    payload: &[u8],
    situation: Situation,
    role: Role,
) -> Record {
    let close_sent = situation == Situation::CloseSent;
    let pong = |payload| {
        let mask = (role == Role::Client).then_some(KEY);
        Frame::new(0xA, payload).with_mask(mask).to_bytes()
    };
    let mut record = Record::default();
    let mut goes_on = true;
    match verdict {
        Verdict::Close(code) => {
            goes_on = false;
            record.seen.push(match code {
                Some(code) => Seen::close(Some(code), &"a".repeat(payload.len() - 2)),
                None => Seen::close(None, ""),
            });
            record.output = match (code, role) {
                (Some(code), _) => close_frame(role, code),
                (None, Role::Server) => vec![0x88, 0x00],
                (None, Role::Client) => [&[0x88, 0x80][..], &KEY].concat(),
            };
        }
        Verdict::Fragment => {}
        Verdict::Ignored => return record,
        Verdict::Message(kind) => record.seen.push(Seen::Message {
            kind,
            bytes: payload.to_vec(),
        }),
        Verdict::Ping => {
            record.seen.push(Seen::Ping(payload.to_vec()));
            record.output = pong(payload);
        }
        Verdict::Pong => record.seen.push(Seen::Pong(payload.to_vec())),
        Verdict::Violation => {
            goes_on = false;
            record.output = close_frame(role, 1002);
        }
    }
    if goes_on {
        record.seen.push(Seen::Ping(b"probe".to_vec()));
        record.output.extend(pong(b"probe"));
    }
    if close_sent {
        record.output.clear();
    }
    record
}

/// Returns a frame with this second byte and a complete payload, followed by a Ping.
pub(crate) fn wire(second: u8, payload: &[u8], role: Role) -> Vec<u8> {
    let mask = (second & 0x80 != 0).then_some(KEY);
    let frame = Frame::new(0, payload).with_mask(mask).to_bytes();
    assert_eq!(
        frame[1], second,
        "the payload does not have the requested length"
    );
    let probe = Frame::new(0x9, b"probe").to_role(role).to_bytes();
    [frame, probe].concat()
}

fn run(wire: &[u8], situation: Situation, role: Role, config: &Arc<Config>) -> Record {
    let mut engine = situation.engine(role, config);
    let record = feed_on(situation.record(), &mut engine, wire, Cuts::Whole);
    judged(record)
}

/// Removes what the oracle does not determine: the exact error, and how much of an unfinished
/// message has arrived.
pub(crate) fn judged(mut record: Record) -> Record {
    record.unfinished = None;
    record.seen.retain(|seen| match seen {
        Seen::Error(error) => {
            assert_eq!(error.close_code().as_u16(), 1002, "{error}");
            false
        }
        _ => true,
    });
    record
}

fn assert_all_headers_are_judged_right(role: Role) {
    let config = Arc::default();
    for second in 0..=0xFF {
        let length = match second & 0x7F {
            126 => 126,
            127 => 65_536,
            length => length as usize,
        };
        let data = vec![b'a'; length];
        let mut close = data.clone();
        close
            .iter_mut()
            .zip(b"\x03\xe8")
            .for_each(|(to, from)| *to = *from);
        let mut wires = [wire(second, &data, role), wire(second, &close, role)];
        for first in 0..=0xFF {
            let is_close = first & 0xF == 0x8;
            let payload = if is_close { &close } else { &data };
            let wire = &mut wires[usize::from(is_close)];
            wire[0] = first;
            for situation in Situation::ALL {
                let verdict = judge(first, second, length, situation, role);
                assert_eq!(
                    run(wire, situation, role, &config),
                    consequences(verdict, payload, situation, role),
                    "{first:#04x} {second:#04x} {situation:?} {verdict:?}"
                );
            }
        }
    }
}

#[test]
fn f28_a_client_judges_all_headers_like_the_oracle() {
    assert_all_headers_are_judged_right(Role::Client);
}

#[test]
fn f28_a_server_judges_all_headers_like_the_oracle() {
    assert_all_headers_are_judged_right(Role::Server);
}

#[test]
fn the_oracle_is_not_trivial() {
    let mut counts = std::collections::BTreeMap::new();
    for role in ROLES {
        for situation in Situation::ALL {
            for header in 0..=u16::MAX {
                let [first, second] = header.to_be_bytes();
                let length = (second & 0x7F) as usize;
                let verdict = judge(first, second, length, situation, role);
                *counts.entry(format!("{verdict:?}")).or_insert(0) += 1;
            }
        }
    }
    // Per role, 128 lengths with the right mask bit; 126 of them for control frames.
    let expected = [
        ("Close(None)", 2 * 4),
        ("Close(Some(1000))", 2 * 4 * 124),
        ("Fragment", 2 * 128 * (2 * 2 + 2)),
        ("Ignored", 2 * 65_536),
        ("Message(Binary)", 2 * 128 * 3),
        ("Message(Text)", 2 * 128 * 3),
        ("Ping", 2 * 4 * 126),
        ("Pong", 2 * 4 * 126),
    ];
    for (verdict, count) in expected {
        assert_eq!(counts.remove(verdict), Some(count), "{verdict}");
    }
    assert_eq!(counts.into_keys().collect::<Vec<_>>(), ["Violation"]);
}
