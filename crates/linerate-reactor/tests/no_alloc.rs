//! Checks that handling a message allocates nothing once a connection has warmed up.
//!
//! This is a separate test binary because it counts the calls of the global allocator. The server's
//! first worker runs on the thread whose allocations are counted.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

#[allow(dead_code, reason = "shared by all tests of the crate")]
#[path = "it/support.rs"]
mod support;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    thread,
};

use allocation_counter::measure;
use linerate_reactor::{
    ConnectionId, Context, Destination, DriverKind, Handler, Message, Opened, Options, Overflow,
    Server, TopicOptions,
};
use support::{Echo, Raw, fragment, masked};

/// The driver that [`support::driver`] uses.
const DRIVER: DriverKind = DriverKind::Epoll;

/// The number of messages that a client sends in the shorter and in the longer of two runs.
const MESSAGES: [usize; 2] = [2_000, 6_000];

/// The maximum difference between the two runs. What the server allocates while it starts and warms
/// up, such as buffers and tables, depends on how much it finds to do at a time.
const DIFFERENCE_MAX: u64 = 30;

/// The maximum difference with several workers. It also depends on how many connections the counted
/// worker gets.
const SPREAD_MAX: u64 = 150;

/// How often both runs are measured before the test fails. On a busy machine a server warms up
/// differently each time; code that allocates for each message never passes.
const MEASUREMENTS_MAX: usize = 5;

/// Asserts, for each driver, that a server allocates as much for many messages as for few, from its
/// start to its end. `client` connects and sends the given number of messages.
fn assert_no_allocations<H: Handler>(
    workers: usize,
    handler: H,
    client: impl Fn(SocketAddr, usize) + Sync,
) {
    let serve = |server: Server| server.with_route("/chat", handler.clone());
    assert_allocations(0, workers, serve, client);
}

/// Like [`assert_no_allocations`], but allows `per_message` allocations for each message.
fn assert_allocations(
    per_message: u64,
    workers: usize,
    serve: impl Fn(Server) -> Server,
    client: impl Fn(SocketAddr, usize) + Sync,
) {
    for driver in DriverKind::ALL {
        if let Err(missing) = driver.check() {
            linerate_testkit::skip(missing);
            continue;
        }
        let measure_both = || {
            MESSAGES.map(|messages| {
                let mut options = Options::default();
                options.driver = driver;
                options.config.ping_interval = None;
                let server = Server::new().with_options(options).with_workers(workers);
                allocations(serve(server).with_fallback(Echo), |address| {
                    client(address, messages);
                })
            })
        };
        let difference_max = if workers == 1 {
            DIFFERENCE_MAX
        } else {
            SPREAD_MAX
        };
        let of_messages = per_message * (MESSAGES[1] - MESSAGES[0]) as u64;
        let is_within = |[few, many]: &[u64; 2]| *many <= few + of_messages + difference_max;
        let mut measured = Vec::new();
        while !measured.iter().any(is_within) {
            assert!(
                measured.len() < MEASUREMENTS_MAX,
                "{driver}: allocations for few and for many messages: {measured:?}"
            );
            measured.push(measure_both());
        }
    }
}

fn allocations(server: Server, client: impl Fn(SocketAddr) + Sync) -> u64 {
    let oldest = TopicOptions::default().with_overflow(Overflow::DropOldest);
    let server = server.with_topic("newest state", oldest);
    let server = server.listen(([127, 0, 0, 1], 0).into()).unwrap();
    let (address, remote) = (server.local_addr(), server.remote());
    thread::scope(|scope| {
        let client = &client;
        scope.spawn(move || {
            client(address);
            remote.shut_down();
        });
        measure(|| server.run().unwrap()).count_total
    })
}

/// Sends `wire` repeatedly, and each time waits for `bytes` bytes of replies.
fn exchange(raw: &mut Raw, wire: &[u8], bytes: usize, times: usize) {
    for _ in 0..times {
        raw.send(wire);
        raw.read(bytes);
    }
}

#[test]
fn an_echo_allocates_nothing() {
    assert_no_allocations(1, Echo, |address, messages| {
        let mut raw = Raw::open(address);
        for bytes in [0, 20, 1_000, 5_000, 100_000] {
            let payload = vec![b'x'; bytes];
            let header = [2, 4, 10][usize::from(bytes > 125) + usize::from(bytes > 65_535)];
            exchange(
                &mut raw,
                &masked(0x1, &payload),
                header + bytes,
                messages / 5,
            );
        }
    });
}

#[test]
fn messages_in_pieces_allocate_nothing() {
    assert_no_allocations(1, Echo, |address, messages| {
        let mut raw = Raw::open(address);
        for opcode in [0x1, 0x2] {
            let mut wire = fragment(opcode, &[b'x'; 300], false);
            for _ in 0..5 {
                wire.extend(fragment(0x0, &[b'x'; 10_000], false));
            }
            wire.extend(fragment(0x0, b"", true));
            exchange(&mut raw, &wire, 4 + 50_300, messages / 2);
        }
    });
}

#[test]
fn pings_allocate_nothing() {
    assert_no_allocations(1, Echo, |address, messages| {
        let mut raw = Raw::open(address);
        exchange(&mut raw, &masked(0x9, b"are you there?"), 16, messages);
    });
}

/// Publishes to two topics; each connection subscribes to both.
#[derive(Clone)]
struct Publish;

impl Handler for Publish {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("one").unwrap();
        cx.subscribe("two").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        cx.publish("one", message);
        if message.as_bytes().len() > 10 {
            cx.publish("two", message);
        }
    }
}

/// Publishes on each connection in turn, and reads the publications on all of them.
fn publish(address: SocketAddr, connections: usize, messages: usize) {
    let mut clients: Vec<_> = (0..connections).map(|_| Raw::open(address)).collect();
    for number in 0..messages {
        let (payload, bytes): (&[u8], _) = match number % 2 {
            0 => (b"short", 7),
            _ => (b"a longer one", 2 * 14),
        };
        clients[number % connections].send(&masked(0x1, payload));
        for client in &mut clients {
            client.read(bytes);
        }
    }
}

#[test]
fn a_publication_allocates_nothing() {
    assert_no_allocations(1, Publish, |address, messages| {
        publish(address, 5, messages)
    });
}

#[test]
fn a_publication_to_many_subscribers_allocates_nothing() {
    assert_no_allocations(1, Publish, |address, messages| {
        publish(address, 50, messages / 10);
    });
}

#[test]
fn a_publication_to_another_worker_allocates_nothing() {
    // With 16 connections, the probability that one of the workers has none is 1 in 2¹⁵.
    assert_no_allocations(2, Publish, |address, messages| {
        publish(address, 16, messages)
    });
}

/// Publishes to a topic that keeps only the newest state.
#[derive(Clone)]
struct NewestState;

impl Handler for NewestState {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        cx.subscribe("newest state").unwrap();
    }

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
        cx.publish("newest state", message);
    }
}

#[test]
fn a_subscriber_that_does_not_keep_up_allocates_nothing() {
    /// Enough messages to fill the kernel's buffers and the backlog.
    const LAG: usize = 200;
    let payloads: Vec<_> = (0..LAG).map(|number| vec![number as u8; 60_000]).collect();
    let wires: Vec<_> = payloads
        .iter()
        .map(|payload| masked(0x2, payload))
        .collect();
    assert_no_allocations(1, NewestState, |address, messages| {
        let (mut slow, mut publisher) = (Raw::open(address), Raw::open(address));
        for _ in 0..messages / 10 / LAG {
            for (wire, payload) in wires.iter().zip(&payloads) {
                publisher.send(wire);
                assert!(publisher.frame().1 == *payload);
            }
            let mut frames = 1;
            while slow.frame().1 != payloads[LAG - 1] {
                frames += 1;
            }
            assert!(frames < LAG, "no publication was dropped");
        }
    });
}

/// Passes the messages of its only client to an echo route on the same worker, and the replies
/// back.
#[derive(Clone, Default)]
struct Detour {
    server: Arc<Mutex<Option<SocketAddr>>>,
    inbound: Option<ConnectionId>,
    outbound: Option<ConnectionId>,
}

impl Handler for Detour {
    /// True if the client opened the connection.
    type Data = bool;

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> bool {
        if let Some(inbound) = self.inbound
            && opened.destination().is_some()
        {
            self.outbound = Some(cx.id());
            cx.to(inbound).unwrap().resume();
            return false;
        }
        self.inbound = Some(cx.id());
        let server = self.server.lock().unwrap().unwrap();
        let echo = Destination::parse(&format!("ws://{server}/echo")).unwrap();
        cx.connect(&echo).unwrap();
        cx.pause();
        true
    }

    fn message(&mut self, is_inbound: &mut bool, cx: &mut Context<'_>, message: Message<'_>) {
        let other = if *is_inbound {
            self.outbound
        } else {
            self.inbound
        };
        cx.to(other.unwrap()).unwrap().send(message);
    }
}

#[test]
fn what_connections_send_to_each_other_allocates_nothing() {
    let detour = Detour::default();
    let server = detour.server.clone();
    assert_no_allocations(1, detour, |address, messages| {
        *server.lock().unwrap() = Some(address);
        let mut raw = Raw::open(address);
        for bytes in [20, 1_000, 20_000] {
            let header = if bytes > 125 { 4 } else { 2 };
            let wire = masked(0x1, &vec![b'x'; bytes]);
            exchange(&mut raw, &wire, header + bytes, messages / 3);
        }
    });
}

/// TLS: receiving a record allocates nothing, and sending one allocates only its memory.
#[cfg(feature = "rustls")]
mod over_tls {
    use std::{io::Write, net::TcpStream, sync::Arc};

    use linerate_reactor::rustls::{
        ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned,
        crypto::ring,
        pki_types::{PrivateKeyDer, ServerName},
    };

    use super::*;

    type Client = Raw<StreamOwned<ClientConnection, TcpStream>>;

    /// Replies only to the message that asks for it.
    #[derive(Clone)]
    struct Sink;

    impl Handler for Sink {
        type Data = ();

        fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

        fn message(&mut self, (): &mut (), cx: &mut Context<'_>, message: Message<'_>) {
            if message.as_bytes() == b"answer" {
                cx.send(message).unwrap();
            }
        }
    }

    fn configs() -> (Arc<ServerConfig>, Arc<ClientConfig>) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(ring::default_provider());
        let server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (Arc::new(server), Arc::new(client))
    }

    /// Asserts that a server over TLS makes `per_message` allocations for each message that `talk`
    /// sends.
    fn assert_per_message<H: Handler>(
        per_message: u64,
        handler: H,
        talk: impl Fn(&mut Client, usize) + Sync,
    ) {
        let (server, client) = configs();
        let serve = |reactor: Server| {
            let reactor = reactor.with_tls(server.clone());
            reactor.with_route("/chat", handler.clone())
        };
        assert_allocations(per_message, 1, serve, |address, messages| {
            let name = ServerName::try_from("localhost").unwrap();
            let tls = ClientConnection::new(client.clone(), name).unwrap();
            let stream = StreamOwned::new(tls, Raw::connect(address).stream);
            talk(&mut Raw { stream }.opened(), messages);
        });
    }

    #[test]
    fn records_that_are_received_allocate_nothing() {
        let (message, last) = (masked(0x1, &[b'x'; 500]), masked(0x1, b"answer"));
        assert_per_message(0, Sink, |client, messages| {
            for _ in 0..messages / 1_000 {
                for _ in 0..1_000 {
                    client.send(&message);
                    client.stream.flush().unwrap();
                }
                client.send(&last);
                client.read(8);
            }
        });
    }

    #[test]
    fn a_record_that_is_sent_allocates_its_memory() {
        let message = masked(0x1, &[b'x'; 100]);
        assert_per_message(1, Echo, |client, messages| {
            for _ in 0..messages {
                client.send(&message);
                client.read(102);
            }
        });
    }
}
