//! Nothing is allocated for a message once a connection has warmed up.
//!
//! A test binary of its own, because it counts what the global allocator does. The server's only
//! worker runs on the thread that is counted.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong is to panic")]

#[allow(dead_code, reason = "made for all tests of the crate")]
#[path = "it/support.rs"]
mod support;

use std::{net::SocketAddr, thread};

use allocation_counter::measure;
use linerate_reactor::{DriverKind, Handler, Message, Opened, Options, Server, Tx};
use support::{Echo, Raw, fragment, masked};

/// What [`support::driver`] goes by.
const DRIVER: DriverKind = DriverKind::Epoll;

/// Messages that a client sends; far more than there may be allocations.
const MESSAGES: usize = 5_000;

/// What starting, the handshakes and warming up may allocate: buffers for several classes of sizes,
/// and the tables that grow with connections.
const ALLOCATIONS_MAX: u64 = 600;

/// Asserts that a server allocates little from its start to its end, while `client` talks to it, on
/// each driver.
fn assert_few_allocations<H: Handler>(handler: H, client: impl Fn(SocketAddr) + Sync) {
    for driver in [DriverKind::Epoll, DriverKind::IoUring] {
        if let Err(missing) = driver.resolve() {
            println!("skipped: {missing}");
            continue;
        }
        let allocated = allocations(driver, handler.clone(), &client);
        assert!(
            allocated < ALLOCATIONS_MAX,
            "{driver}: {allocated} allocations"
        );
    }
}

fn allocations<H: Handler>(
    driver: DriverKind,
    handler: H,
    client: &(impl Fn(SocketAddr) + Sync),
) -> u64 {
    let mut options = Options::default();
    options.driver = driver;
    let server = Server::builder()
        .options(options)
        .workers(1)
        .route("/chat", handler)
        .listen(([127, 0, 0, 1], 0).into())
        .unwrap();
    let (address, remote) = (server.local_addr(), server.remote());
    thread::scope(|scope| {
        scope.spawn(move || {
            client(address);
            remote.shut_down();
        });
        measure(|| server.run().unwrap()).count_total
    })
}

/// Sends `wire` many times and waits each time for `bytes` that come back.
fn exchange(raw: &mut Raw, wire: &[u8], bytes: usize, times: usize) {
    for _ in 0..times {
        raw.send(wire);
        raw.read(bytes);
    }
}

#[test]
fn an_echo_allocates_nothing() {
    assert_few_allocations(Echo, |address| {
        let mut raw = Raw::open(address);
        for bytes in [0, 20, 1_000, 5_000, 100_000] {
            let payload = vec![b'x'; bytes];
            let header = [2, 4, 10][usize::from(bytes > 125) + usize::from(bytes > 65_535)];
            exchange(
                &mut raw,
                &masked(0x1, &payload),
                header + bytes,
                MESSAGES / 5,
            );
        }
    });
}

#[test]
fn messages_in_pieces_allocate_nothing() {
    assert_few_allocations(Echo, |address| {
        let mut raw = Raw::open(address);
        for opcode in [0x1, 0x2] {
            let mut wire = fragment(opcode, &[b'x'; 300], false);
            for _ in 0..5 {
                wire.extend(fragment(0x0, &[b'x'; 10_000], false));
            }
            wire.extend(fragment(0x0, b"", true));
            exchange(&mut raw, &wire, 4 + 50_300, MESSAGES / 2);
        }
    });
}

#[test]
fn pings_allocate_nothing() {
    assert_few_allocations(Echo, |address| {
        let mut raw = Raw::open(address);
        exchange(&mut raw, &masked(0x9, b"are you there?"), 16, MESSAGES);
    });
}

/// Publishes to two topics, of which each connection subscribes to both.
#[derive(Clone)]
struct Publish;

impl Handler for Publish {
    type Data = ();

    fn open(&mut self, tx: &mut Tx<'_>, _opened: Opened<'_>) {
        tx.subscribe("one").unwrap();
        tx.subscribe("two").unwrap();
    }

    fn message(&mut self, (): &mut (), tx: &mut Tx<'_>, message: Message<'_>) {
        tx.publish("one", message);
        if message.as_bytes().len() > 10 {
            tx.publish("two", message);
        }
    }
}

#[test]
fn a_publication_allocates_nothing() {
    assert_few_allocations(Publish, |address| {
        let mut clients: Vec<_> = (0..5).map(|_| Raw::open(address)).collect();
        for _ in 0..MESSAGES / 2 {
            for (wire, bytes) in [
                (masked(0x1, b"short"), 7),
                (masked(0x1, b"a longer one"), 2 * 14),
            ] {
                clients[0].send(&wire);
                for client in &mut clients {
                    client.read(bytes);
                }
            }
        }
    });
}
