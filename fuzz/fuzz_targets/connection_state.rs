//! Any bytes as the state of a reactor's connection, and connections that move while any input
//! arrives.
#![no_main]

use std::{
    cell::RefCell,
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
};

use libfuzzer_sys::fuzz_target;
use linerate_proto::deflate::{Agreement, Context};
use linerate_reactor::{
    Adoption, ConnectionId, Deflate, ImportOptions, LocalEvent, LocalMessages, LocalReactor,
    Message, MessageKind, Options,
    handshake::{HandshakeLimits, RequestReader},
    portable::Version,
};

const MESSAGE_BYTES_MAX: u64 = 70_000;
const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

thread_local! {
    /// A reactor has a megabyte of memory for input, so all runs use the same two.
    static REACTORS: RefCell<[LocalReactor; 2]> = RefCell::new(reactors());
}

// The first byte chooses whether messages are collected and compressed, the second whether the
// bytes that follow are a state, the input of a connection that moves, or such an input and a
// change of the state; the next two choose where it moves, or how long the state is.
fuzz_target!(|data: &[u8]| {
    let [choice, mode, high, low, content @ ..] = data else {
        return;
    };
    REACTORS.with_borrow_mut(|reactors| {
        let at = usize::from(u16::from_be_bytes([*high, *low])).min(content.len());
        match mode % 3 {
            0 => import(&mut reactors[0], &content[..at], &content[at..]),
            1 => {
                let moving = read(reactors, *choice, at, content, true);
                let staying = read(reactors, *choice, at, content, false);
                assert!(moving == staying);
            }
            _ => change(&mut reactors[0], *choice, at, *mode, content),
        }
    });
});

fn reactors() -> [LocalReactor; 2] {
    [(); 2].map(|()| LocalReactor::new(options()).expect("there are files"))
}

fn options() -> Options {
    let mut options = Options::default();
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX;
    options.config.ping_interval = None;
    // Output of any length is accepted at once, or waits without an effect on the input.
    options.backlog_bytes_max = 1 << 30;
    options.deflate = Some(deflate());
    options
}

fn deflate() -> Deflate {
    let mut options = Deflate::default();
    options.exportable = true;
    // Compressors with the same window may find other references.
    options.message_bytes_min = usize::MAX;
    options
}

/// What the two sides have seen.
#[derive(Debug, Default, Eq, PartialEq)]
struct Seen {
    messages: Vec<(MessageKind, Vec<u8>)>,
    messages_received: u64,
    has_closed: bool,
    output: Vec<u8>,
}

/// A connection, and the client.
struct Side {
    id: ConnectionId,
    client: UnixStream,
}

impl Side {
    fn new(reactor: &mut LocalReactor, choice: u8) -> Self {
        let (socket, client) = UnixStream::pair().expect("there are files");
        client.set_nonblocking(true).expect("a socket can do this");
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let request = reader.handle_input(REQUEST).ok().flatten();
        let (request, _) = request.expect("the request is valid");
        let mut adoption = Adoption::new(socket, request);
        if choice & 2 != 0 {
            // Inside a message, a peer can refer back further than agreed. After a move it cannot.
            let context = Context {
                window_bits: 15,
                takeover: choice & 4 != 0,
            };
            let agreement = Agreement {
                sending: context,
                receiving: context,
            };
            adoption = adoption.with_deflate(agreement, &deflate());
        }
        let messages = match choice & 1 {
            0 => LocalMessages::Collected,
            _ => LocalMessages::Discarded,
        };
        let id = reactor.adopt(adoption, messages).expect("there are files");
        Self { id, client }
    }

    /// Turns until nothing more happens. Messages are echoed.
    fn settle(&mut self, reactor: &mut LocalReactor, seen: &mut Seen) {
        loop {
            reactor.turn().expect("the driver works");
            let mut happened = self.read(seen);
            while let Some(event) = reactor.poll_event() {
                happened = true;
                match event {
                    LocalEvent::Message { kind, payload, .. } => {
                        if let Some(mut connection) = reactor.connection(self.id) {
                            // This fails if the connection is closing.
                            _ = connection.send(Message::Binary(&payload));
                        }
                        seen.messages.push((kind, payload));
                    }
                    LocalEvent::Closed { .. } => seen.has_closed = true,
                    _ => {}
                }
            }
            let traffic = reactor.take_traffic();
            seen.messages_received += traffic.messages_received;
            if !happened && traffic == Default::default() {
                return;
            }
        }
    }

    /// Reads as the client; returns whether there was something.
    fn read(&mut self, seen: &mut Seen) -> bool {
        let mut buffer = [0; 1 << 16];
        match self.client.read(&mut buffer) {
            Ok(bytes) => {
                seen.output.extend_from_slice(&buffer[..bytes]);
                bytes > 0
            }
            Err(error) => {
                let is_expected = [ErrorKind::WouldBlock, ErrorKind::ConnectionReset];
                assert!(is_expected.contains(&error.kind()), "{error}");
                false
            }
        }
    }

    /// Ends the connection.
    fn end(self, reactor: &mut LocalReactor) {
        drop(self.client);
        for _ in 0..1_000 {
            if reactor.connections() == 0 {
                break;
            }
            // A connection may come with a paused input, which hides its end.
            if let Some(mut connection) = reactor.connection(self.id) {
                connection.resume();
                connection.flush();
            }
            reactor.turn().expect("the driver works");
            while reactor.poll_event().is_some() {}
        }
        while reactor.poll_event().is_some() {}
        assert_eq!(reactor.connections(), 0);
        assert_eq!(reactor.memory(), Default::default());
        reactor.take_traffic();
    }
}

/// Imports bytes that may be a state, and feeds an input.
fn import(reactor: &mut LocalReactor, state: &[u8], input: &[u8]) {
    let (socket, client) = UnixStream::pair().expect("there are files");
    client.set_nonblocking(true).expect("a socket can do this");
    let Ok(id) = reactor.import(socket, state, &ImportOptions::new()) else {
        assert_eq!(reactor.connections(), 0);
        assert_eq!(reactor.memory(), Default::default());
        return;
    };
    let mut side = Side { id, client };
    // What was imported can be moved again, unless it was over.
    if let Ok(exported) = reactor.export(id, Version::NEWEST) {
        let again = reactor.import(exported.socket, &exported.state, &ImportOptions::new());
        side.id = again.expect("it was just exported");
    }
    if let Some(mut connection) = reactor.connection(side.id) {
        connection.discard_unsent();
        _ = connection.send(Message::Text("some bytes to send"));
        connection.flush();
    }
    // This fails if the connection is over.
    _ = side.client.write_all(input);
    side.settle(reactor, &mut Seen::default());
    side.end(reactor);
}

/// Feeds an input in two pieces, between which and after which the connection moves if `moves`.
fn read(reactors: &mut [LocalReactor; 2], choice: u8, at: usize, wire: &[u8], moves: bool) -> Seen {
    let (mut seen, mut now) = (Seen::default(), 0);
    let mut side = Side::new(&mut reactors[0], choice);
    for piece in [&wire[..at], &wire[at..]] {
        // This fails if the connection is over.
        _ = side.client.write_all(piece);
        side.settle(&mut reactors[now], &mut seen);
        if moves && reactors[now].connection(side.id).is_some() {
            let exported = reactors[now].export(side.id, Version::NEWEST);
            let exported = exported.expect("it is exportable");
            now = 1 - now;
            let imported =
                reactors[now].import(exported.socket, &exported.state, &ImportOptions::new());
            side.id = imported.expect("it was just exported");
            side.settle(&mut reactors[now], &mut seen);
        }
    }
    side.end(&mut reactors[now]);
    seen
}

/// Changes a byte of a state.
fn change(reactor: &mut LocalReactor, choice: u8, at: usize, mode: u8, wire: &[u8]) {
    let mut side = Side::new(reactor, choice);
    _ = side.client.write_all(&wire[..at]);
    side.settle(reactor, &mut Seen::default());
    let state = reactor.export(side.id, Version::NEWEST);
    let state = state.map(|exported| exported.state.to_vec());
    side.end(reactor);
    if let Ok(mut state) = state {
        let changed = usize::from(mode) * state.len() / 256;
        state[changed] ^= wire.last().copied().unwrap_or(1);
        import(reactor, &state, &wire[at..]);
    }
}
