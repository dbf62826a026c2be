//! Connections that move to another process, with the messages that they join.

use std::{io::IoSlice, os::unix::net::UnixStream, sync::Arc};

use bytes::Bytes;
use linerate_proto::{
    Engine, Role,
    deflate::{Agreement, Context, Deflate, ThreadPool},
    engine::Importer,
    portable::{ImportError, Reader, Version, Writer},
};
use linerate_testkit::{Frame, Rng};

use super::*;
use crate::{
    connection::{Stage, backlog::SLICES_MAX, endpoint::RuntimeRole, id::Slot},
    driver::{
        Driver,
        event::{Interest, Source},
        kind::DriverKind,
    },
    export::ImportOptions,
    topics::burst::Burst,
    wheel::tick_after,
};

const NOW: Duration = Duration::from_secs(100);

/// A process: memory, and a socket to a peer.
struct Process {
    memory: Memory,
    _peer: UnixStream,
}

impl Process {
    /// Returns a process with a connection.
    fn new(deflate: bool) -> (Self, Connection) {
        let (socket, peer) = UnixStream::pair().expect("there are enough files");
        let socket = socket.into();
        let mut driver = Driver::new(DriverKind::Portable).expect("every machine has it");
        let slot = Slot {
            index: 0,
            serial: 0,
        };
        let added = driver.add(Source::Socket, &socket, slot.token(), Interest::READ);
        let watch = added.expect("there are enough files");
        let mut engine = Engine::new(RuntimeRole(Role::Server), Arc::default(), NOW);
        if deflate {
            engine = engine.with_deflate(agreement(), &options(), &ThreadPool);
        }
        let stage = Stage::Open { route: 0, data: 0 };
        let connection = Connection::new(socket, slot, stage, engine, watch);
        let process = Self {
            memory: Memory::default(),
            _peer: peer,
        };
        (process, connection)
    }

    fn import(&mut self, connection: &mut Connection, state: &[u8]) -> Result<(), ImportError> {
        let importer = Importer::new(Arc::default()).with_deflate(&options(), &ThreadPool);
        let (mut state, _) = Reader::new(state)?;
        let options = ImportOptions::new();
        connection.import(&mut state, &importer, &options, &mut self.memory, NOW)?;
        state.finish()
    }

    /// Handles `input` and records the events; streamed messages are those of `streamed_bytes_min`
    /// bytes and more. Input after `frames_max` frames is held.
    fn handle(
        &mut self,
        connection: &mut Connection,
        input: &[u8],
        (streamed_bytes_min, frames_max): (u64, u32),
        seen: &mut Vec<String>,
    ) {
        let Memory { pool, held, .. } = &mut self.memory;
        connection.held.append(input, pool, held);
        let mut input = std::mem::take(&mut connection.held);
        let mut frames = 0;
        while !input.is_empty() && frames < frames_max {
            frames += 1;
            let budget = (&mut frames, frames_max);
            let memory = &mut self.memory;
            let bytes = input.unprocessed_mut();
            let (event, taken) = next(connection, bytes, streamed_bytes_min, memory, budget, NOW);
            seen.extend(match event {
                InputEvent::Nothing | InputEvent::Incomplete => None,
                InputEvent::Whole(mut whole) => Some(format!("whole {:?}", whole.take())),
                InputEvent::Streamed(piece) => {
                    let bytes = match &piece.held[..] {
                        [] => &input.unprocessed_mut()[taken - piece.bytes..taken],
                        held => held,
                    };
                    Some(format!("{} {} {bytes:?}", piece.begins, piece.ends))
                }
                InputEvent::Ping(payload) => Some(format!("ping {:?}", payload.as_slice())),
                InputEvent::Pong(payload) => Some(format!("pong {:?}", payload.as_slice())),
                InputEvent::Error(error) => Some(error.to_string()),
            });
            let Memory { pool, held, .. } = &mut self.memory;
            input.skip(taken, pool, held);
        }
        connection.held = input;
    }
}

fn export(connection: &mut Connection) -> Vec<u8> {
    let mut state = Writer::new(Version::NEWEST);
    let is_paused = connection.paused;
    let exported = connection.export(&mut state, Version::NEWEST, is_paused, NOW);
    exported.expect("it can be exported");
    state.finish()
}

/// Returns what keeps the most state: both sides keep their context in the largest window.
const fn agreement() -> Agreement {
    let context = Context {
        window_bits: 15,
        takeover: true,
    };
    Agreement {
        sending: context,
        receiving: context,
    }
}

fn options() -> Deflate {
    let mut options = Deflate::default();
    options.exportable = true;
    options
}

fn plain_script() -> Vec<u8> {
    let text = "zażółć gęślą jaźń €𐍈 ".repeat(3);
    let (first, rest) = text.as_bytes().split_at(31);
    let frames = [
        Frame::new(1, text.as_bytes()),
        Frame::new(1, first).with_fin(false),
        Frame::new(9, b"in a message"),
        Frame::new(0, b"").with_fin(false),
        Frame::new(0, rest),
        Frame::new(2, &[7; 300]).with_fin(false),
        Frame::new(10, b""),
        Frame::new(0, &[8; 10]),
        Frame::new(1, &[b'x'; 150]).with_fin(false),
        Frame::new(0, b"\xff"),
    ];
    let to_bytes = |frame: Frame| frame.to_role(Role::Server).to_bytes();
    frames.into_iter().flat_map(to_bytes).collect()
}

fn compressed_script() -> Vec<u8> {
    let client = Engine::new(RuntimeRole(Role::Client), Arc::default(), NOW);
    let mut client = client.with_deflate(agreement(), &options(), &ThreadPool);
    let (mut wire, mut rng) = (Vec::new(), Rng::new(1));
    for bytes in [100, 40_000, 200] {
        let text: String = (0..bytes / 5)
            .map(|_| *rng.pick(&["price", "żółć ", "42.5 "]))
            .collect();
        let kind = MessageKind::Text;
        let (first, rest) = text.as_bytes().split_at(text.len() / 3);
        let sent = client
            .send_text(&mut wire, "short")
            .and_then(|()| client.send_fragment(&mut wire, kind, first, false))
            .and_then(|()| client.send_ping(&mut wire, b"between"))
            .and_then(|()| client.send_fragment(&mut wire, kind, rest, true));
        sent.expect("the connection is open");
    }
    wire
}

/// Returns what a handler sees if the connection moves after `at` bytes, or not at all.
fn seen(wire: &[u8], at: usize, how: (u64, u32), deflate: bool, moves: bool) -> Vec<String> {
    let (mut old, mut connection) = Process::new(deflate);
    let mut seen = Vec::new();
    old.handle(&mut connection, &wire[..at], how, &mut seen);
    if moves {
        let state = export(&mut connection);
        let (mut new, mut imported) = Process::new(false);
        new.import(&mut imported, &state)
            .expect("it was just exported");
        assert!(export(&mut imported) == state);
        (old, connection) = (new, imported);
    }
    old.handle(&mut connection, &wire[at..], how, &mut seen);
    while !connection.held.is_empty() {
        old.handle(&mut connection, b"", how, &mut seen);
    }
    seen
}

#[test]
fn a_connection_can_move_while_messages_are_joined_or_streamed() {
    for (wire, deflate) in [(plain_script(), false), (compressed_script(), true)] {
        for how in [
            (u64::MAX, u32::MAX),
            (100, u32::MAX),
            (u64::MAX, 2),
            (20, 3),
        ] {
            for at in (0..=wire.len()).step_by(if deflate { 97 } else { 1 }) {
                let moving = seen(&wire, at, how, deflate, true);
                assert!(
                    moving == seen(&wire, at, how, deflate, false),
                    "at {at}, {how:?}"
                );
            }
        }
    }
}

#[test]
fn output_that_waits_moves_with_its_droppable_frames() {
    let (mut old, mut connection) = Process::new(false);
    let mut burst = Burst::default();
    (0..100).for_each(|number| burst.push("t", MessageKind::Binary, &[number; 100]));
    let frames = burst.iter().next().unwrap().frames;
    let burst = Arc::new(burst);
    let Memory { pool, queues, .. } = &mut old.memory;
    connection.backlog.append(b"\x82\x01x", pool, queues);
    (connection.backlog).append_shared(&burst, frames.clone(), 40, true, pool, queues);
    connection.backlog.append(b"\x82\x01y", pool, queues);
    (connection.paused, connection.congested) = (true, true);
    let state = export(&mut connection);
    let (mut new, mut imported) = Process::new(false);
    new.import(&mut imported, &state).unwrap();
    assert!(imported.paused && imported.congested);
    assert_eq!(imported.backlog.len(), 3 + frames.len() - 40 + 3);
    for (connection, process) in [(&mut connection, &mut old), (&mut imported, &mut new)] {
        assert_eq!(
            connection.backlog.drop_oldest(0, &mut process.memory.pool),
            98
        );
        assert_eq!(connection.backlog.len(), 3 + 62 + 102 + 3);
    }
    assert!(export(&mut imported) == export(&mut connection));
}

#[test]
fn deadlines_continue_with_the_time_that_is_left() {
    let (mut old, mut connection) = Process::new(false);
    let half = &Frame::new(2, b"Spam").to_role(Role::Server).to_bytes()[..8];
    old.handle(&mut connection, half, (u64::MAX, u32::MAX), &mut Vec::new());
    let Memory { pool, queues, .. } = &mut old.memory;
    let later = |seconds| NOW + Duration::from_secs(seconds);
    queues.stall_due = tick_after(later(30));
    connection.backlog.append(b"\x82\x01x", pool, queues);
    connection.message_due = tick_after(later(20));
    let state = export(&mut connection);
    for (stall_seconds, expected) in [(60, 30), (10, 10)] {
        let (mut new, mut imported) = Process::new(false);
        new.memory.queues.stall_due = tick_after(later(stall_seconds));
        new.import(&mut imported, &state).unwrap();
        let due = imported.backlog.stall_due().unwrap();
        // A tick is added for the time that has passed of the first one.
        assert!((0..=1).contains(&(due - tick_after(later(expected)))));
        let due = imported.message_due;
        assert!((0..=1).contains(&(due - tick_after(later(20)))));
    }
}

#[test]
fn output_moves_after_any_number_of_its_bytes() {
    let (mut old, mut connection) = Process::new(false);
    let mut burst = Burst::default();
    (0..3).for_each(|number| burst.push("t", MessageKind::Binary, &[number; 40]));
    let frames = burst.iter().next().unwrap().frames;
    let burst = Arc::new(burst);
    let shared = Bytes::from(Frame::new(2, &[9; 5_000]).to_bytes());
    let Memory { pool, queues, .. } = &mut old.memory;
    connection.backlog.append(b"\x82\x01x", pool, queues);
    connection
        .backlog
        .append_bytes(&shared, 0, true, pool, queues);
    (connection.backlog).append_shared(&burst, frames, 0, true, pool, queues);
    let content = |connection: &Connection| {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let count = connection.backlog.slices(&mut slices);
        let slices = slices[..count].iter();
        slices.flat_map(|slice| slice.to_vec()).collect::<Vec<_>>()
    };
    let before = content(&connection);
    for written in 1..before.len() {
        let Memory { pool, queues, .. } = &mut old.memory;
        connection.backlog.skip(1, pool, queues);
        let (mut new, mut imported) = Process::new(false);
        new.import(&mut imported, &export(&mut connection)).unwrap();
        assert!(content(&imported) == before[written..], "{written}");
        // What may be dropped is the same.
        let Memory { pool, queues, .. } = &mut new.memory;
        imported.backlog.drop_frames(pool, queues);
        let begun = match before.len() - written {
            // One long frame and three short ones can be dropped, the first bytes cannot.
            left @ 5_130.. => left - 5_130,
            left @ 126.. => left - 126,
            left => left % 42,
        };
        assert_eq!(imported.backlog.len(), begun, "{written}");
    }
}

#[test]
fn changed_states_never_cause_a_panic() {
    let wire = plain_script();
    let (mut old, mut connection) = Process::new(false);
    old.handle(
        &mut connection,
        &wire[..180],
        (u64::MAX, 2),
        &mut Vec::new(),
    );
    let mut burst = Burst::default();
    burst.push("t", MessageKind::Binary, &[7; 10]);
    let frames = burst.iter().next().unwrap().frames;
    let Memory { pool, queues, .. } = &mut old.memory;
    let burst = Arc::new(burst);
    (connection.backlog).append_shared(&burst, frames, 0, true, pool, queues);
    let state = export(&mut connection);
    for at in 0..state.len() {
        let (mut new, mut imported) = Process::new(false);
        assert!(new.import(&mut imported, &state[..at]).is_err());
        for value in [0, 1, 2, 3, 0x7F, 0x80, 0xFF] {
            let mut changed = state.clone();
            changed[at] = value;
            let (mut new, mut imported) = Process::new(false);
            if new.import(&mut imported, &changed).is_ok() {
                new.handle(&mut imported, &wire[180..], (20, 30), &mut Vec::new());
                imported.backlog.drop_oldest(0, &mut new.memory.pool);
                _ = export(&mut imported);
            }
            imported.free(&mut new.memory);
        }
    }
}
