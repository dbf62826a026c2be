//! Outbound connections, to servers that work on raw bytes and to the reactor itself.

use std::{
    net::{SocketAddr, TcpStream},
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

use linerate_proto::Role;
use linerate_reactor::{
    Closed, ConnectError, Connector, Context, Destination, Handler, Message, Opened, Options,
    Remote, WorkerContext, handshake::HandshakeError,
};
use linerate_testkit::Frame;
use rustix::net::{AddressFamily, SocketType};

use crate::{
    support::{Echo, PATIENCE, Running, close, driver, unmasked, wait_until},
    upstream::{accept, listen, masked_frame, take_request},
};

/// The events that a handler has seen.
#[derive(Debug)]
enum Seen {
    Open(u64, Option<String>),
    Message(u64, String),
    Failed(u64, ConnectError),
    Closed(Closed),
}

/// Reports its events, sends `hello` at the start, and retries failed attempts `tries` times.
#[derive(Clone)]
struct Watch {
    seen: Sender<Seen>,
    tries: u32,
}

impl Handler for Watch {
    type Data = u64;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> u64 {
        let Opened::Connected {
            destination,
            response,
        } = opened
        else {
            panic!("unexpected inbound connection");
        };
        cx.send_text("hello").unwrap();
        let subprotocol = response.subprotocol().map(str::to_owned);
        _ = self.seen.send(Seen::Open(destination.tag(), subprotocol));
        destination.tag()
    }

    fn message(&mut self, tag: &mut u64, _cx: &mut Context<'_>, message: Message<'_>) {
        let text = String::from_utf8_lossy(message.as_bytes()).into_owned();
        _ = self.seen.send(Seen::Message(*tag, text));
    }

    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        _ = self.seen.send(Seen::Failed(destination.tag(), error));
        if self.tries > 0 {
            self.tries -= 1;
            worker.connect(destination).unwrap();
        }
    }

    fn close(&mut self, _tag: u64, _cx: &mut Context<'_>, closed: Closed) {
        _ = self.seen.send(Seen::Closed(closed));
    }
}

/// A connector on its own threads, which is shut down on drop.
struct Connecting {
    remote: Remote,
    seen: Receiver<Seen>,
    thread: Option<JoinHandle<()>>,
}

impl Connecting {
    fn start(workers: usize, tries: u32, mut options: Options) -> Self {
        options.driver = driver();
        let (sender, seen) = channel();
        let watch = Watch {
            seen: sender,
            tries,
        };
        let connector = Connector::new().with_workers(workers).with_options(options);
        let connector = connector.prepare(watch).unwrap();
        let remote = connector.remote();
        Self {
            remote,
            seen,
            thread: Some(thread::spawn(move || connector.run().unwrap())),
        }
    }

    fn one() -> Self {
        Self::start(1, 0, Options::default())
    }

    fn next(&self) -> Seen {
        self.seen.recv_timeout(PATIENCE).unwrap()
    }

    fn failure(&self) -> ConnectError {
        match self.next() {
            Seen::Failed(_, error) => error,
            other => panic!("{other:?}"),
        }
    }

    fn join(&mut self) {
        self.remote.shut_down();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.remote.shut_down();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking());
        }
    }
}

#[test]
fn the_request_is_what_the_destination_says_and_frames_are_masked() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    let destination = destination
        .with_subprotocol("a")
        .and_then(|it| it.with_subprotocol("b"))
        .and_then(|it| it.with_header("X-Token", "secret"))
        .unwrap()
        .with_tag(7);
    connector.remote.connect(destination.clone()).unwrap();
    // The first frame arrives in the same write as the response.
    let (mut raw, head) = accept(&listener, &unmasked(0x1, b"eager"));
    assert!(head.starts_with("GET /feed?x=1 HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("\r\nX-Token: secret\r\n"), "{head}");
    assert!(
        head.contains("\r\nSec-WebSocket-Protocol: a, b\r\n"),
        "{head}"
    );
    assert!(matches!(connector.next(), Seen::Open(7, Some(chosen)) if chosen == "a"));
    assert!(matches!(connector.next(), Seen::Message(7, text) if text == "eager"));
    let (first, key, payload) = masked_frame(&mut raw);
    assert_eq!((first, &payload[..]), (0x81, &b"hello"[..]));

    connector.remote.connect(destination).unwrap();
    let (mut other, other_head) = accept(&listener, b"");
    assert_ne!(head, other_head, "each request has a new key");
    assert_ne!(masked_frame(&mut other).1, key);
}

#[test]
fn connections_echo_and_close_in_order() {
    let server = Running::echo();
    let mut connector = Connecting::start(2, 0, Options::default());
    let url = format!("ws://{}/chat", server.address);
    let destination = Destination::parse(&url).unwrap();
    for tag in 0..300 {
        connector
            .remote
            .connect(destination.clone().with_tag(tag))
            .unwrap();
    }
    let (mut open, mut echoed) = (0, 0);
    while (open, echoed) != (300, 300) {
        match connector.next() {
            Seen::Open(..) => open += 1,
            Seen::Message(_, text) if text == "hello" => echoed += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(connector.remote.counters().connections(), 300);
    connector.join();
    for _ in 0..300 {
        let clean = Closed {
            code: 1001,
            clean: true,
        };
        assert!(matches!(connector.next(), Seen::Closed(closed) if closed == clean));
    }
    assert_eq!(connector.remote.counters().connections(), 0);
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_refusal_of_the_network_is_told_and_may_be_tried_again() {
    let connector = Connecting::start(1, 2, Options::default());
    let (listener, destination) = listen();
    drop(listener);
    connector.remote.connect(destination.with_tag(3)).unwrap();
    for _ in 0..3 {
        match connector.next() {
            Seen::Failed(3, ConnectError::Network(error)) => {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionRefused);
            }
            other => panic!("{other:?}"),
        }
    }
    wait_until(|| connector.remote.counters().connections() == 0);
}

#[test]
fn the_next_address_is_tried() {
    let connector = Connecting::one();
    let (dead, _) = listen();
    let dead_address = dead.local_addr().unwrap();
    drop(dead);
    let (listener, destination) = listen();
    let addresses = [dead_address, listener.local_addr().unwrap()];
    let name = Destination::parse("ws://nobody.invalid/").unwrap();
    drop(destination);
    connector
        .remote
        .connect(name.with_addresses(&addresses))
        .unwrap();
    let (_raw, head) = accept(&listener, b"");
    assert!(head.contains("\r\nHost: nobody.invalid\r\n"), "{head}");
    assert!(matches!(connector.next(), Seen::Open(0, None)));
}

#[test]
fn an_address_that_does_not_answer_leaves_time_for_the_next() {
    let connector = Connecting::one();
    let silent = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&silent, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&silent, 0).unwrap();
    let address = rustix::net::getsockname(&silent).unwrap();
    let address: SocketAddr = address.try_into().unwrap();
    // Nothing accepts this connection, so that the accept queue has no room for another.
    let _first = TcpStream::connect(address).unwrap();
    let (listener, destination) = listen();
    let addresses = [address, listener.local_addr().unwrap()];
    let destination = destination.with_addresses(&addresses);
    connector
        .remote
        .connect(destination.with_timeout(Duration::from_secs(2)))
        .unwrap();
    let (_raw, _) = accept(&listener, b"");
    assert!(matches!(connector.next(), Seen::Open(0, None)));

    // The last address gets all of the remaining time.
    let silent = Destination::parse(&format!("ws://{address}")).unwrap();
    let budget = Duration::from_millis(200);
    connector
        .remote
        .connect(silent.with_timeout(budget))
        .unwrap();
    let failure = connector.failure();
    assert!(
        matches!(failure, ConnectError::TimedOut { time_max } if time_max == budget),
        "{failure:?}"
    );
}

#[test]
fn answers_that_open_nothing_are_told_with_their_status() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    let answer = |answer: &str| {
        connector.remote.connect(destination.clone()).unwrap();
        let (mut raw, _) = take_request(&listener);
        raw.send(answer.as_bytes());
        drop(raw);
        match connector.failure() {
            ConnectError::Handshake(error) => error,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        answer("HTTP/1.1 403 Forbidden\r\n\r\n"),
        HandshakeError::StatusUnexpected { status: 403 }
    );
    let wrong = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    assert_eq!(answer(wrong), HandshakeError::AcceptMismatch);
    assert_eq!(
        answer("HTTP/1.1 10"),
        HandshakeError::HeadTruncated { head_bytes: 11 }
    );
    wait_until(|| connector.remote.counters().connections() == 0);
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    let budget = Duration::from_millis(300);
    connector
        .remote
        .connect(destination.with_timeout(budget))
        .unwrap();
    let (mut raw, _) = take_request(&listener);
    match connector.failure() {
        ConnectError::TimedOut { time_max } => assert_eq!(time_max, budget),
        other => panic!("{other:?}"),
    }
    assert_eq!(raw.rest(), b"");
}

#[test]
fn an_attempt_may_be_delayed() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    let delayed = destination.clone().with_delay(Duration::from_millis(600));
    connector.remote.connect(delayed.with_tag(1)).unwrap();
    connector.remote.connect(destination.with_tag(2)).unwrap();
    let (_second, _) = accept(&listener, b"");
    assert!(matches!(connector.next(), Seen::Open(2, _)));
    let (_first, _) = accept(&listener, b"");
    assert!(matches!(connector.next(), Seen::Open(1, _)));
}

#[test]
fn names_are_looked_up() {
    let connector = Connecting::one();
    let (listener, _) = listen();
    let port = listener.local_addr().unwrap().port();
    let url = format!("ws://localhost:{port}/");
    connector
        .remote
        .connect(Destination::parse(&url).unwrap())
        .unwrap();
    let (_raw, head) = accept(&listener, b"");
    assert!(
        head.contains(&format!("\r\nHost: localhost:{port}\r\n")),
        "{head}"
    );
    assert!(matches!(connector.next(), Seen::Open(..)));
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let mut options = Options::default();
    options.connections_max = 2;
    let connector = Connecting::start(1, 0, options);
    let (listener, destination) = listen();
    for _ in 0..2 {
        connector.remote.connect(destination.clone()).unwrap();
    }
    let refused = connector.remote.connect(destination.clone());
    assert!(matches!(
        refused,
        Err(ConnectError::TooMany { connections_max: 2 })
    ));
    // An attempt that fails makes room for another.
    drop(take_request(&listener));
    connector.failure();
    connector.remote.connect(destination).unwrap();
}

#[test]
fn attempts_wait_for_their_turn() {
    let mut options = Options::default();
    options.attempts_max = 1;
    let connector = Connecting::start(1, 0, options);
    let (listener, destination) = listen();
    for tag in 0..3 {
        connector
            .remote
            .connect(destination.clone().with_tag(tag))
            .unwrap();
    }
    for tag in 0..3 {
        let (raw, _) = take_request(&listener);
        listener.set_nonblocking(true).unwrap();
        thread::sleep(Duration::from_millis(20));
        assert!(listener.accept().is_err(), "only one attempt at a time");
        listener.set_nonblocking(false).unwrap();
        drop(raw);
        assert!(matches!(connector.next(), Seen::Failed(seen, _) if seen == tag));
    }
}

#[test]
fn a_masked_frame_of_the_server_is_refused_with_1002() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    connector.remote.connect(destination).unwrap();
    let masked = Frame::new(0x1, b"x").to_role(Role::Server).to_bytes();
    let (mut raw, _) = accept(&listener, &masked);
    assert_eq!(masked_frame(&mut raw).2, b"hello");
    let (first, _, payload) = masked_frame(&mut raw);
    assert_eq!((first, &payload[..]), (0x88, &1002_u16.to_be_bytes()[..]));
    assert_eq!(raw.rest(), b"");
}

#[test]
fn a_client_leaves_it_to_the_server_to_end_the_stream() {
    let mut options = Options::default();
    options.config.close_timeout = Duration::from_millis(300);
    let connector = Connecting::start(1, 0, options);
    let (listener, destination) = listen();
    connector.remote.connect(destination).unwrap();
    let (mut raw, _) = accept(&listener, &close(1000));
    assert!(matches!(connector.next(), Seen::Open(..)));
    assert_eq!(masked_frame(&mut raw).2, b"hello");
    assert_eq!(masked_frame(&mut raw).0, 0x88);
    // The server does not end the stream, so that the timeout of the closing handshake ends it.
    let clean = Closed {
        code: 1000,
        clean: true,
    };
    assert!(matches!(connector.next(), Seen::Closed(closed) if closed == clean));
    assert_eq!(raw.rest(), b"");
}

#[test]
fn shutting_down_ends_attempts_of_all_kinds() {
    let mut options = Options::default();
    options.attempts_max = 1;
    let mut connector = Connecting::start(1, 0, options);
    let (listener, destination) = listen();
    let delayed = destination.clone().with_delay(PATIENCE);
    connector.remote.connect(destination.clone()).unwrap();
    connector.remote.connect(destination.clone()).unwrap();
    connector.remote.connect(delayed).unwrap();
    let (_raw, _) = take_request(&listener);
    connector.join();
    for _ in 0..3 {
        assert!(matches!(connector.failure(), ConnectError::ShutDown));
    }
    assert_eq!(connector.remote.counters().connections(), 0);
}

#[test]
fn local_addresses_take_turns() {
    let connector = Connecting::one();
    let (listener, destination) = listen();
    let sources = ["127.0.0.2", "127.0.0.3"].map(|it| it.parse().unwrap());
    let destination = destination.with_sources(&sources);
    let mut seen: Vec<_> = (0..4)
        .map(|_| {
            connector.remote.connect(destination.clone()).unwrap();
            let (stream, peer) = listener.accept().unwrap();
            drop::<TcpStream>(stream);
            peer.ip()
        })
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [sources[0], sources[0], sources[1], sources[1]]);
}

/// Sends long messages in every available way.
#[derive(Clone)]
struct Lavish;

impl Handler for Lavish {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) {
        let kind = linerate_reactor::MessageKind::Binary;
        let long: Vec<u8> = (0..300_001_u32).map(|byte| byte as u8).collect();
        cx.send_binary(&long).unwrap();
        cx.send_parts(kind, &[&long[..5], &long[5..200_002], &long[200_002..]])
            .unwrap();
        cx.send_with(kind, long.len(), |out| out.copy_from_slice(&long))
            .unwrap();
        cx.send_frames(2 * long.len(), |frames| {
            assert!(frames.push(kind.opcode(), &long, None));
        })
        .unwrap();
        cx.subscribe("all").unwrap();
        cx.publish("all", Message::Binary(&long));
        // Publishing to two topics in one delivery uses another code path.
        if opened.destination().map(Destination::tag) == Some(1) {
            cx.subscribe("some").unwrap();
            cx.publish("some", Message::Binary(&long));
        }
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        cx.send(message).unwrap();
    }
}

#[test]
fn whatever_a_client_sends_is_masked() {
    let mut options = Options::default();
    options.driver = driver();
    let connector = Connector::new().with_workers(1).with_options(options);
    let connector = connector.prepare(Lavish).unwrap();
    let remote = connector.remote();
    let thread = thread::spawn(move || connector.run().unwrap());
    let long: Vec<u8> = (0..300_001_u32).map(|byte| byte as u8).collect();
    for (tag, frames) in [(0, 6), (1, 7)] {
        let (listener, destination) = listen();
        remote.connect(destination.with_tag(tag)).unwrap();
        let (mut raw, _) = accept(&listener, &unmasked(0x2, &long));
        for number in 0..frames {
            let (first, _, payload) = masked_frame(&mut raw);
            assert_eq!(first, 0x82);
            assert!(payload == long, "{number} of {tag}");
        }
        raw.send(&close(1000));
        assert_eq!(masked_frame(&mut raw).0, 0x88);
    }
    remote.shut_down();
    thread.join().unwrap();
}

#[test]
fn a_server_connects_by_a_handler_of_its_own() {
    let mut options = Options::default();
    options.driver = driver();
    let (sender, seen) = channel();
    let watch = Watch {
        seen: sender,
        tries: 0,
    };
    let server = linerate_reactor::Server::new()
        .with_workers(2)
        .with_options(options);
    let server = Running::serve(server.with_route("/chat", Echo).with_outbound(watch));
    let url = format!("ws://{}/chat", server.address);
    let destination = Destination::parse(&url).unwrap();
    server.remote.connect(destination.clone()).unwrap();
    let next = || seen.recv_timeout(PATIENCE).unwrap();
    assert!(matches!(next(), Seen::Open(0, None)));
    assert!(matches!(next(), Seen::Message(0, text) if text == "hello"));
    // Both ends of the connection count.
    assert_eq!(server.remote.counters().connections(), 2);

    let other = Running::echo();
    let refused = other.remote.connect(destination);
    assert!(matches!(refused, Err(ConnectError::NoHandler)));
}
