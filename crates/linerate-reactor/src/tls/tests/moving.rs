//! Encrypted connections that move between two reactors.

use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
};

use linerate_proto::{
    CloseCode, Role,
    engine::Message,
    handshake::{HandshakeLimits, RequestReader},
    portable::{Version, Writer},
};
use linerate_testkit::Frame;

use super::*;
use crate::{Adoption, ConnectionId, ImportOptions, LocalEvent, LocalMessages, LocalReactor};

const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// Two reactors, one of which has a connection whose messages it echoes, and the client.
struct Mover {
    reactors: [LocalReactor; 2],
    now: usize,
    id: ConnectionId,
    stream: UnixStream,
    client: Box<Tls>,
    pool: Pool,
    /// What the client has received, encrypted.
    output: Vec<u8>,
    closed: Option<u16>,
}

impl Mover {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let Pair {
            client,
            server,
            pool,
        } = Pair::new(version);
        let mut reactors = [(); 2].map(|()| LocalReactor::new(Default::default()).unwrap());
        let (socket, stream) = UnixStream::pair().unwrap();
        stream.set_nonblocking(true).unwrap();
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let (request, _) = reader.handle_input(REQUEST).unwrap().unwrap();
        let adoption = Adoption::new(socket, request);
        let id = reactors[0].adopt(adoption, LocalMessages::Collected);
        let exported = reactors[0].export(id.unwrap(), Version::NEWEST).unwrap();
        // The last field of a connection without TLS says that there is none.
        let (flag, plain) = exported.state.split_last().unwrap();
        assert_eq!(*flag, 0);
        let mut tls = Writer::new(Version::NEWEST);
        tls.flag(true);
        server.export(&mut tls).unwrap();
        let state = [plain, &tls.finish()[2..]].concat();
        let options = ImportOptions::new();
        let id = reactors[0].import(exported.socket, &state, &options);
        Self {
            id: id.unwrap(),
            reactors,
            now: 0,
            stream,
            client,
            pool,
            output: Vec::new(),
            closed: None,
        }
    }

    fn reactor(&mut self) -> &mut LocalReactor {
        &mut self.reactors[self.now]
    }

    fn hand_over(&mut self) {
        let id = self.id;
        let exported = self.reactor().export(id, Version::NEWEST).unwrap();
        self.now = 1 - self.now;
        let options = ImportOptions::new();
        let reactor = self.reactor();
        let id = reactor.import(exported.socket, &exported.state, &options);
        self.id = id.unwrap();
    }

    fn turn(&mut self) {
        let Self {
            reactors,
            now,
            closed,
            ..
        } = self;
        let reactor = &mut reactors[*now];
        reactor.turn().unwrap();
        while let Some(event) = reactor.poll_event() {
            match event {
                LocalEvent::Message {
                    connection,
                    payload,
                    ..
                } => {
                    let mut connection = reactor.connection(connection).unwrap();
                    connection.send(Message::Binary(&payload)).unwrap();
                    connection.flush();
                }
                LocalEvent::Closed { closed: how, .. } => *closed = Some(how.code),
                _ => {}
            }
        }
    }

    /// Reads at most `bytes_max` bytes as the client.
    fn read(&mut self, bytes_max: usize) {
        let mut buffer = vec![0; bytes_max];
        match self.stream.read(&mut buffer) {
            Ok(bytes) => self.output.extend_from_slice(&buffer[..bytes]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }

    /// Returns records with frames of the client.
    fn frames(&mut self, frames: &[(u8, &[u8])]) -> Vec<u8> {
        let mut sealed = Sealed::new();
        for (opcode, payload) in frames {
            let frame = Frame::new(*opcode, payload).to_role(Role::Server);
            let frame = frame.to_bytes();
            self.client
                .seal([&frame[..]].into_iter(), &mut sealed)
                .unwrap();
        }
        sealed.concat()
    }

    /// Decrypts what the client has received.
    fn opened(&mut self) -> (Vec<u8>, Outcome) {
        let Self {
            client,
            output,
            pool,
            ..
        } = self;
        take_all(client, output, &mut Sealed::new(), pool)
    }
}

/// Returns frames of the server.
fn unmasked(frames: &[(u8, &[u8])]) -> Vec<u8> {
    let frames = frames.iter();
    let frames = frames.map(|(opcode, payload)| Frame::new(*opcode, payload).to_bytes());
    frames.collect::<Vec<_>>().concat()
}

#[test]
fn an_encrypted_connection_moves_at_every_byte_and_closes() {
    for version in [&TLS12, &TLS13] {
        let mut mover = Mover::new(version);
        let frames: [(u8, &[u8]); 4] = [(2, b"Spam"), (9, b"ping"), (2, &[7; 300]), (2, b"")];
        let close = &1_000_u16.to_be_bytes()[..];
        let mut wire = mover.frames(&frames);
        wire.extend(mover.frames(&[(8, close)]));
        for byte in wire.chunks(1) {
            mover.hand_over();
            mover.stream.write_all(byte).unwrap();
            mover.turn();
            mover.read(1 << 16);
        }
        assert_eq!(mover.closed, Some(1_000));
        mover.read(1 << 16);
        let (output, outcome) = mover.opened();
        let expected = [
            (2, frames[0].1),
            (10, b"ping"),
            frames[2],
            frames[3],
            (8, close),
        ];
        assert!(output == unmasked(&expected));
        // The close_notify arrives, too.
        assert!(matches!(outcome, Outcome::Ended));
    }
}

#[test]
fn records_that_are_not_written_move() {
    for version in [&TLS12, &TLS13] {
        let mut mover = Mover::new(version);
        let payload = [9; 30_000];
        let mut sent = 0;
        let mut expected = Vec::new();
        while sent < 20 {
            let id = mover.id;
            let mut connection = mover.reactor().connection(id).unwrap();
            connection.send(Message::Binary(&payload)).unwrap();
            connection.flush();
            expected.extend(unmasked(&[(2, &payload)]));
            sent += 1;
            mover.hand_over();
        }
        let id = mover.id;
        let code = CloseCode::NORMAL;
        mover
            .reactor()
            .connection(id)
            .unwrap()
            .close(code, "")
            .unwrap();
        expected.extend(unmasked(&[(8, &1_000_u16.to_be_bytes())]));
        let mut rounds = 0;
        while mover.closed.is_none() {
            mover.hand_over();
            mover.read(20_011);
            mover.turn();
            rounds += 1;
            if rounds == 10 {
                let wire = mover.frames(&[(8, &1_000_u16.to_be_bytes())]);
                mover.stream.write_all(&wire).unwrap();
            }
        }
        mover.read(1 << 20);
        let (output, outcome) = mover.opened();
        assert!(output == expected);
        assert!(matches!(outcome, Outcome::Ended));
    }
}
