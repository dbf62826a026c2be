//! Floods and inactive peers: what they may use, and that other clients are still served.

use std::{
    io::{ErrorKind, Write},
    net::TcpStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use linerate_reactor::{Closed, Context, Handler, Message, Opened, Options};

use crate::support::{Echo, PATIENCE, Raw, Running, fragment, masked, unmasked, wait_until};

/// The number of frames in a flood. They fit into the socket buffers, so that all arrive at once.
const FLOOD: usize = 10_000;

/// The number of frames of a flood that the server may handle before other connections have their
/// turn: the flooding connection's share of one turn and of the next.
const FRAMES_MAX: usize = 2 * 512;

/// Blocks the worker in the first message of a flood until the other client's message has arrived.
/// Counts the binary messages, and records how many binary messages and connections there were when
/// the other client's message was handled.
#[derive(Clone)]
struct Gate {
    reached: Sender<()>,
    opened: Arc<Mutex<Receiver<()>>>,
    messages: Arc<AtomicUsize>,
    before: Arc<[AtomicUsize; 2]>,
}

impl Gate {
    /// Returns the gate, a receiver that reports when the gate is reached, and a sender that opens
    /// it.
    fn new() -> (Self, Receiver<()>, Sender<()>) {
        let (reached, is_reached) = channel();
        let (open, opened) = channel();
        let gate = Self {
            reached,
            opened: Arc::new(Mutex::new(opened)),
            messages: Arc::default(),
            before: Arc::default(),
        };
        (gate, is_reached, open)
    }

    fn messages_before(&self) -> usize {
        self.before[0].load(Ordering::SeqCst)
    }

    fn connections_before(&self) -> usize {
        self.before[1].load(Ordering::SeqCst)
    }
}

impl Handler for Gate {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        match message {
            Message::Text("gate") => {
                self.reached.send(()).unwrap();
                self.opened.lock().unwrap().recv_timeout(PATIENCE).unwrap();
            }
            Message::Text(text) => {
                let connections = cx.remote().counters().connections();
                self.before[0].store(self.messages.load(Ordering::SeqCst), Ordering::SeqCst);
                self.before[1].store(connections, Ordering::SeqCst);
                cx.send_text(text).unwrap();
            }
            Message::Binary(_) => _ = self.messages.fetch_add(1, Ordering::SeqCst),
        }
    }
}

/// Has one client send `flood` at once and another client a single message. Returns how many
/// messages of the flood were handled before that message, and checks that the flood consists of
/// `messages` messages in the end.
fn messages_before_another(flood: &[u8], messages: usize) -> usize {
    let (gate, is_reached, open) = Gate::new();
    let server = Running::start(gate.clone(), 1, Options::default());
    let mut flooding = Raw::open(server.address);
    let mut other = Raw::open(server.address);
    flooding.send(&[&masked(0x1, b"gate"), flood].concat());
    is_reached.recv_timeout(PATIENCE).unwrap();
    other.send(&masked(0x1, b"me too"));
    open.send(()).unwrap();
    assert_eq!(other.frame(), (0x81, b"me too".to_vec()));
    wait_until(|| gate.messages.load(Ordering::SeqCst) == messages);
    gate.messages_before()
}

#[test]
fn a_flood_of_messages_lets_others_have_their_turn() {
    let flood = masked(0x2, b"").repeat(FLOOD);
    let before = messages_before_another(&flood, FLOOD);
    assert!(before <= FRAMES_MAX, "{before} messages before");
}

#[test]
fn floods_of_tiny_fragments_and_of_empty_ones_let_others_have_their_turn() {
    for payload in [&b"x"[..], b""] {
        let mut flood = fragment(0x2, payload, false);
        flood.extend(fragment(0x0, payload, false).repeat(FLOOD));
        flood.extend(fragment(0x0, payload, true));
        // The message is complete only after all of its fragments.
        assert_eq!(messages_before_another(&flood, 1), 0);
    }
}

#[test]
fn a_flood_of_pings_lets_others_have_their_turn() {
    let mut flood = masked(0x9, b"").repeat(FLOOD);
    flood.extend(masked(0x2, b"the end"));
    assert_eq!(messages_before_another(&flood, 1), 0);
}

#[test]
fn a_flood_of_connections_lets_others_have_their_turn() {
    let (gate, is_reached, open) = Gate::new();
    let server = Running::start(gate.clone(), 1, Options::default());
    let mut first = Raw::open(server.address);
    let mut other = Raw::open(server.address);
    first.send(&masked(0x1, b"gate"));
    is_reached.recv_timeout(PATIENCE).unwrap();
    let flood: Vec<_> = (0..200).map(|_| Raw::connect(server.address)).collect();
    other.send(&masked(0x1, b"me too"));
    open.send(()).unwrap();
    assert_eq!(other.frame(), (0x81, b"me too".to_vec()));
    assert!(gate.connections_before() <= 2 + 2 * 8);
    wait_until(|| server.remote.counters().connections() == 2 + flood.len());
}

#[test]
fn input_that_waits_for_its_turn_is_served_after_the_end_of_the_stream() {
    let (gate, is_reached, open) = Gate::new();
    let server = Running::start(gate.clone(), 1, Options::default());
    let mut flooding = Raw::open(server.address);
    let flood = masked(0x2, b"").repeat(FLOOD);
    flooding.send(&[&masked(0x1, b"gate"), &flood[..]].concat());
    is_reached.recv_timeout(PATIENCE).unwrap();
    flooding.stream.shutdown(std::net::Shutdown::Write).unwrap();
    open.send(()).unwrap();
    assert_eq!(flooding.rest(), b"");
    assert_eq!(gate.messages.load(Ordering::SeqCst), FLOOD);
}

#[test]
fn clients_that_come_and_go_leave_nothing_behind() {
    let server = Running::echo();
    let mut other = Raw::open(server.address);
    for round in 0..1_000 {
        let mut raw = Raw::connect(server.address);
        if round % 2 == 0 {
            raw.send(b"GET /chat HTTP/1.1\r\n");
        }
        drop(raw);
        if round % 100 == 0 {
            other.round_trip();
        }
    }
    wait_until(|| server.remote.counters().connections() == 1);
    other.round_trip();
}

#[test]
fn clients_that_send_no_request_are_limited_in_number_and_time() {
    let mut options = Options::default();
    options.connections_max = 50;
    options.handshake.time_max = Duration::from_millis(300);
    let server = Running::start(Echo, 1, options);
    let mut other = Raw::open(server.address);
    let silent: Vec<_> = (0..80).map(|_| Raw::connect(server.address)).collect();
    other.round_trip();
    for mut raw in silent {
        let answer = raw.rest();
        let refused = [&b"HTTP/1.1 408 "[..], b"HTTP/1.1 503 "];
        assert!(refused.iter().any(|status| answer.starts_with(status)));
        other.round_trip();
        assert!(server.remote.counters().connections() <= 50);
    }
    wait_until(|| server.remote.counters().connections() == 1);
}

#[test]
fn all_of_many_connections_are_pinged_that_are_due_together() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(200));
    options.config.ping_timeout = PATIENCE;
    let server = Running::start(Echo, 1, options);
    let mut clients: Vec<_> = (0..150).map(|_| Raw::open(server.address)).collect();
    for client in &mut clients {
        let (first, payload) = client.frame();
        assert_eq!((first, payload.len()), (0x89, 8));
    }
}

/// Echoes each message, and records the longest backlog that a connection had at its end.
#[derive(Clone, Default)]
struct Noting(Arc<AtomicUsize>);

impl Handler for Noting {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        _ = cx.send(message);
    }

    fn close(&mut self, (): (), cx: &mut Context<'_>, _closed: Closed) {
        self.0.fetch_max(cx.backlog_bytes(), Ordering::SeqCst);
    }
}

#[test]
fn peers_that_neither_read_nor_answer_are_dropped_and_cost_what_the_limits_say() {
    const MESSAGE_BYTES: usize = 16 << 10;
    /// The size of one read, which may be answered before the server notices that the peer does not
    /// read.
    const READ_BYTES: usize = 256 << 10;
    let mut options = Options::default();
    options.write_timeout = Duration::from_millis(300);
    let backlog_bytes_max = options.backlog_bytes_max;
    let handler = Noting::default();
    let server = Running::start(handler.clone(), 1, options);
    let mut other = Raw::open(server.address);
    let message = masked(0x2, &[7; MESSAGE_BYTES]);
    let mut slow: Vec<_> = (0..20).map(|_| Raw::open(server.address)).collect();
    for raw in &mut slow {
        send_what_is_taken(&mut raw.stream, &message);
        other.send(&masked(0x1, b"me too"));
        assert_eq!(other.read(8), unmasked(0x1, b"me too"));
    }
    wait_until(|| server.remote.counters().connections() == 1);
    let longest = handler.0.load(Ordering::SeqCst);
    let bytes_max = backlog_bytes_max + READ_BYTES + MESSAGE_BYTES;
    assert!((1..bytes_max).contains(&longest), "{longest} bytes");
}

/// Sends the message repeatedly until the socket accepts no more or the server drops the
/// connection.
fn send_what_is_taken(stream: &mut TcpStream, message: &[u8]) {
    stream
        .set_write_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    loop {
        match stream.write_all(message) {
            Ok(()) => {}
            Err(error) => {
                let expected = [
                    ErrorKind::WouldBlock,
                    ErrorKind::ConnectionReset,
                    ErrorKind::BrokenPipe,
                ];
                assert!(expected.contains(&error.kind()), "{error}");
                return;
            }
        }
    }
}
