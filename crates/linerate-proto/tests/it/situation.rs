//! The situations in which an input can arrive, and the required state of a failed connection.

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{CloseCode, Config, Engine, ProtocolError, Role, engine::MessageKind};
use linerate_testkit::{
    Cuts, Frame, KEY, Record, Seen, TestEndpoint, assert_cuts_do_not_matter, feed,
};

pub(crate) const ROLES: [Role; 2] = [Role::Client, Role::Server];

/// What has happened on a connection before the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Situation {
    CloseReceived,
    CloseSent,
    Idle,
    InBinary,
    InText,
}

impl Situation {
    pub(crate) const ALL: [Self; 5] = [
        Self::CloseReceived,
        Self::CloseSent,
        Self::Idle,
        Self::InBinary,
        Self::InText,
    ];

    /// The situations in which input is not ignored.
    pub(crate) const READING: [Self; 4] =
        [Self::CloseSent, Self::Idle, Self::InBinary, Self::InText];

    /// The situations in which a continuation is expected.
    pub(crate) const IN_MESSAGE: [Self; 2] = [Self::InBinary, Self::InText];

    /// The situations in which a new message is expected.
    pub(crate) const BETWEEN_MESSAGES: [Self; 2] = [Self::CloseSent, Self::Idle];

    /// Returns a new engine in this situation that has written everything that is due.
    pub(crate) fn engine(self, role: Role, config: &Arc<Config>) -> Engine<TestEndpoint> {
        let mut engine = Engine::new(TestEndpoint(role), Arc::clone(config), Duration::ZERO);
        self.lead(&mut engine);
        engine
    }

    /// Brings a new engine into this situation, and writes everything that is due.
    pub(crate) fn lead(self, engine: &mut Engine<TestEndpoint>) {
        match self {
            Self::Idle => {}
            Self::InText => first_fragment(engine, 0x1),
            Self::InBinary => first_fragment(engine, 0x2),
            Self::CloseSent => engine
                .close(CloseCode::GOING_AWAY, "", Duration::ZERO)
                .expect("an empty reason fits"),
            Self::CloseReceived => {
                let close = Frame::new(0x8, b"").to_role(engine.endpoint().0);
                feed(engine, &close.to_bytes(), Cuts::Whole);
            }
        }
        engine.poll_transmit(&mut Vec::new());
    }

    /// Returns the record of the part of a message that the engine has read.
    pub(crate) fn record(self) -> Record {
        let kind = match self {
            Self::InBinary => MessageKind::Binary,
            Self::InText => MessageKind::Text,
            _ => return Record::default(),
        };
        Record {
            unfinished: Some((kind, Vec::new())),
            ..Record::default()
        }
    }
}

fn first_fragment(engine: &mut Engine<TestEndpoint>, opcode: u8) {
    let role = engine.endpoint().0;
    let frame = Frame::new(opcode, b"").with_fin(false).to_role(role);
    feed(engine, &frame.to_bytes(), Cuts::Whole);
}

/// Returns an engine with default settings in `situation`.
pub(crate) fn engine_in(situation: Situation, role: Role) -> Engine<TestEndpoint> {
    situation.engine(role, &Arc::default())
}

/// Feeds `wire` to a new connection with default settings, split at every position.
pub(crate) fn read(role: Role, wire: &[u8]) -> Record {
    let config = Arc::default();
    let start = || (Situation::Idle.engine(role, &config), Record::default());
    assert_cuts_do_not_matter(start, wire)
}

/// Returns the bytes of a Close frame from `sender` with a code and no reason.
pub(crate) fn close_frame(sender: Role, code: u16) -> Vec<u8> {
    let [high, low] = code.to_be_bytes();
    match sender {
        Role::Client => [b"\x88\x82" as &[u8], &KEY, &[high ^ KEY[0], low ^ KEY[1]]].concat(),
        Role::Server => vec![0x88, 0x02, high, low],
    }
}

/// Feeds `wire` in each of `situations`, split at every position, and asserts that the connection
/// fails: the error is the only event, its code is the only output, and a valid frame after it is
/// ignored.
pub(crate) fn assert_fails(
    role: Role,
    situations: &[Situation],
    wire: &[u8],
    error: ProtocolError,
    code: u16,
) {
    let probe = Frame::new(0x9, b"probe").to_role(role).to_bytes();
    let wire = [wire, &probe].concat();
    let config = Arc::default();
    for situation in situations {
        let start = || (situation.engine(role, &config), situation.record());
        let expected = Record {
            seen: vec![Seen::Error(error)],
            unfinished: None,
            output: match situation {
                Situation::CloseSent => Vec::new(),
                _ => close_frame(role, code),
            },
        };
        let record = assert_cuts_do_not_matter(start, &wire);
        assert_eq!(record, expected, "{role:?} {situation:?}");
    }
    let mut closed = Situation::CloseReceived.engine(role, &config);
    assert_eq!(feed(&mut closed, &wire, Cuts::Whole), Record::default());
}
