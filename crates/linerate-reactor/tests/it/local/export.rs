//! Connections that move between two reactors, as between two processes.

mod backlog;
mod closing;
#[cfg(feature = "deflate")]
mod deflate;
mod failing;

use std::io::{ErrorKind, Read, Write};

use linerate_reactor::{ExportError, Exported, ImportOptions, portable::Version};

use super::*;
use crate::support::fragment;

/// Two reactors, one of which has a connection whose messages it echoes, and the client.
struct Mover {
    reactors: [LocalReactor; 2],
    /// The reactor that has the connection.
    now: usize,
    id: ConnectionId,
    client: UnixStream,
    options: ImportOptions,
    seen: Seen,
}

/// What the two sides have seen.
#[derive(Debug, Default, Eq, PartialEq)]
struct Seen {
    messages: Vec<Vec<u8>>,
    closed: Option<u16>,
    /// What the client has received.
    output: Vec<u8>,
}

impl Mover {
    fn new(messages: LocalMessages) -> Self {
        Self::with(messages, quiet(), |adoption| adoption)
    }

    fn with(
        messages: LocalMessages,
        options: Options,
        prepare: impl FnOnce(Adoption) -> Adoption,
    ) -> Self {
        let mut reactors = [(); 2].map(|()| LocalReactor::new(options.clone()).unwrap());
        let (socket, client) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let (request, _) = reader.handle_input(REQUEST.as_bytes()).unwrap().unwrap();
        let adoption = prepare(Adoption::new(socket, request));
        let id = reactors[0].adopt(adoption, messages).unwrap();
        Self {
            reactors,
            now: 0,
            id,
            client,
            options: ImportOptions::new(),
            seen: Seen::default(),
        }
    }

    fn reactor(&mut self) -> &mut LocalReactor {
        &mut self.reactors[self.now]
    }

    fn export(&mut self) -> Result<Exported, ExportError> {
        let id = self.id;
        self.reactor().export(id, Version::NEWEST)
    }

    fn import(&mut self, exported: Exported) {
        let Self { options, now, .. } = self;
        let reactor = &mut self.reactors[*now];
        let imported = reactor.import(exported.socket, &exported.state, options);
        self.id = imported.unwrap();
    }

    /// Moves the connection to the other reactor.
    fn hand_over(&mut self) {
        let exported = self.export().unwrap();
        assert_eq!(self.reactor().connections(), 0);
        assert_eq!(self.reactor().memory(), Default::default());
        self.now = 1 - self.now;
        self.import(exported);
    }

    /// Sends the client's bytes.
    fn feed(&mut self, bytes: &[u8]) {
        self.client.write_all(bytes).unwrap();
        self.settle();
    }

    /// Turns until nothing more happens and the client has received everything.
    fn settle(&mut self) {
        loop {
            let did_turn = self.turn();
            let did_read = self.read(usize::MAX) > 0;
            if !did_turn && !did_read {
                return;
            }
        }
    }

    /// Turns once; returns whether something happened.
    fn turn(&mut self) -> bool {
        let Self {
            reactors,
            now,
            seen,
            ..
        } = self;
        let reactor = &mut reactors[*now];
        reactor.turn().unwrap();
        let mut happened = false;
        while let Some(event) = reactor.poll_event() {
            happened = true;
            match event {
                LocalEvent::Message {
                    connection: id,
                    kind,
                    payload,
                } => {
                    let mut connection = reactor.connection(id).unwrap();
                    let message = match kind {
                        MessageKind::Text => Message::Text(str::from_utf8(&payload).unwrap()),
                        MessageKind::Binary => Message::Binary(&payload),
                    };
                    connection.send(message).unwrap();
                    seen.messages.push(payload);
                }
                LocalEvent::Closed { closed, .. } => seen.closed = Some(closed.code),
                _ => {}
            }
        }
        let traffic = reactor.take_traffic();
        happened || traffic != Default::default()
    }

    /// Reads at most `bytes_max` bytes as the client; returns how many there were.
    fn read(&mut self, bytes_max: usize) -> usize {
        let mut buffer = vec![0; bytes_max.min(1 << 20)];
        match self.client.read(&mut buffer) {
            Ok(bytes) => {
                self.seen.output.extend_from_slice(&buffer[..bytes]);
                bytes
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        }
    }
}

fn quiet() -> Options {
    let mut options = Options::default();
    options.config.ping_interval = None;
    options
}

/// Returns frames of a client: messages of several sizes, whole and in fragments, in both kinds,
/// and control frames in between.
fn script() -> Vec<u8> {
    let text = "zażółć gęślą jaźń €𐍈 ".repeat(3);
    let (first, rest) = text.as_bytes().split_at(31);
    [
        masked(0x1, text.as_bytes()),
        fragment(0x1, first, false),
        masked(0x9, b"in a message"),
        fragment(0x0, rest, true),
        masked(0x2, b""),
        masked(0x2, &[7; 300]),
        fragment(0x2, b"one ", false),
        fragment(0x0, b"", false),
        masked(0xa, b"unsolicited"),
        fragment(0x0, b"two", true),
    ]
    .concat()
}

/// Feeds the pieces, after each of which the connection moves if `moves`.
fn run<'a>(mut mover: Mover, pieces: impl Iterator<Item = &'a [u8]>, moves: bool) -> Seen {
    for piece in pieces {
        mover.feed(piece);
        if moves {
            mover.hand_over();
        }
    }
    mover.settle();
    mover.seen
}

#[test]
fn a_connection_moves_to_and_fro_at_every_byte() {
    let wire = script();
    for messages in [LocalMessages::Collected, LocalMessages::Discarded] {
        let still = run(Mover::new(messages), wire.chunks(1), false);
        let moving = run(Mover::new(messages), wire.chunks(1), true);
        assert_eq!(moving, still);
        let expected = match messages {
            LocalMessages::Collected => 5,
            _ => 0,
        };
        assert_eq!(moving.messages.len(), expected);
    }
}

#[test]
fn a_connection_moves_once_at_each_byte() {
    let wire = script();
    for at in 0..=wire.len() {
        let (first, rest) = wire.split_at(at);
        let still = run(
            Mover::new(LocalMessages::Collected),
            [first, rest].into_iter(),
            false,
        );
        let moving = run(
            Mover::new(LocalMessages::Collected),
            [first, rest].into_iter(),
            true,
        );
        assert_eq!(moving, still, "at {at}");
    }
}

#[test]
fn long_messages_move_while_they_arrive() {
    let wire = [
        masked(0x2, &[3; 500_000]),
        fragment(0x1, "ä".repeat(90_000).as_bytes(), false),
        fragment(0x0, "ö".repeat(30_000).as_bytes(), true),
    ]
    .concat();
    for messages in [LocalMessages::Collected, LocalMessages::Discarded] {
        let still = run(Mover::new(messages), wire.chunks(9_973), false);
        let moving = run(Mover::new(messages), wire.chunks(9_973), true);
        assert!(moving == still);
    }
}

#[test]
fn a_paused_connection_moves_with_its_input() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let id = mover.id;
    let mut connection = mover.reactor().connection(id).unwrap();
    connection.pause();
    connection.flush();
    mover.feed(&masked(0x1, b"Spam"));
    mover.hand_over();
    mover.settle();
    assert!(mover.seen.messages.is_empty());
    let id = mover.id;
    mover.reactor().connection(id).unwrap().resume();
    mover.settle();
    assert_eq!(mover.seen.messages, [b"Spam"]);
}

/// Input that waits only because the owner has not taken messages does not wait for the owner's
/// `resume` after a move.
#[test]
fn input_that_waits_for_room_continues_after_a_move() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let wire = masked(0x2, &[1; 100_000]).repeat(2);
    let mut sent = 0;
    // The limit on collected messages is 1 MiB.
    while mover.reactor().memory().input_bytes < 1 << 20 {
        sent += mover.client.write(&wire[sent % wire.len()..]).unwrap_or(0);
        mover.reactor().turn().unwrap();
    }
    mover.client.set_nonblocking(false).unwrap();
    let mut writer = mover.client.try_clone().unwrap();
    let exported = mover.export().unwrap();
    while let Some(event) = mover.reactor().poll_event() {
        let LocalEvent::Message { payload, .. } = event else {
            panic!("unexpected {event:?}");
        };
        mover.seen.messages.push(payload);
    }
    mover.now = 1;
    mover.import(exported);
    let rest = wire[sent % wire.len()..].to_vec();
    let whole = (sent + rest.len()) / (wire.len() / 2);
    let writing = thread::spawn(move || writer.write_all(&rest));
    while mover.seen.messages.len() < whole {
        mover.turn();
        thread::yield_now();
    }
    writing.join().unwrap().unwrap();
    assert!(
        mover
            .seen
            .messages
            .iter()
            .all(|payload| *payload == [1; 100_000])
    );
}

#[test]
fn output_in_the_cork_is_written_before_the_export() {
    let mut mover = Mover::new(LocalMessages::Collected);
    let id = mover.id;
    let mut connection = mover.reactor().connection(id).unwrap();
    connection.send(Message::Text("Spam")).unwrap();
    let exported = mover.export().unwrap();
    mover.read(usize::MAX);
    assert_eq!(mover.seen.output, unmasked(0x1, b"Spam"));
    assert!(mover.reactor().connection(id).is_none());
    assert!(mover.reactor().status(id).is_none());
    assert_eq!(mover.export().unwrap_err(), ExportError::Ended);
    mover.now = 1;
    mover.import(exported);
    mover.feed(&masked(0x1, b"Eggs"));
    assert_eq!(mover.seen.messages, [b"Eggs"]);
}
