//! What a handler can learn about a connection, and listeners that were opened elsewhere.

use std::{
    fs, io,
    net::{TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::net::{UnixListener, UnixStream},
    },
};

use linerate_reactor::{Context, Handler, Message, Opened, Options, Server};

use crate::support::{PATIENCE, Raw, Running, driver, masked};

/// Replies to each message with the addresses of the connection.
#[derive(Clone)]
struct Addresses;

impl Handler for Addresses {
    type Data = ();

    fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}

    fn message(&mut self, (): &mut (), cx: &mut Context<'_>, _message: Message<'_>) {
        let text = match (cx.peer_addr(), cx.local_addr()) {
            (Ok(peer), Ok(local)) => format!("{peer} {local}"),
            (Err(error), Err(_)) => error.to_string(),
            mixed => format!("{mixed:?}"),
        };
        cx.send_text(&text).unwrap();
        #[cfg(feature = "rustls")]
        assert!(cx.tls().is_none());
    }
}

fn server(workers: usize) -> Server {
    let mut options = Options::default();
    options.driver = driver();
    let server = Server::new().with_workers(workers).with_options(options);
    server.with_route("/chat", Addresses)
}

#[test]
fn a_handler_learns_both_addresses() {
    let server = Running::start(Addresses, 1, Options::default());
    let mut raw = Raw::open(server.address);
    let local = raw.stream.local_addr().unwrap();
    raw.send(&masked(0x1, b""));
    let expected = format!("{local} {}", server.address);
    assert_eq!(raw.frame(), (0x81, expected.into_bytes()));
}

#[test]
fn workers_share_a_listener_that_was_opened_elsewhere() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // As a service manager does, this keeps a descriptor.
    let kept = listener.try_clone().unwrap();
    let listening = server(3).listen_on(listener).unwrap();
    assert_eq!(listening.local_addr(), address);
    let mut running = Running::run(listening);
    let mut clients: Vec<_> = (0..30).map(|_| Raw::open(address)).collect();
    for client in &mut clients {
        client.send(&masked(0x1, b""));
        let expected = format!("{} {address}", client.stream.local_addr().unwrap());
        assert_eq!(client.frame(), (0x81, expected.into_bytes()));
    }
    drop(clients);
    running.remote.shut_down();
    running.join();
    // The next server can use the same listener.
    let again = Running::run(server(1).listen_on(kept).unwrap());
    Raw::open(again.address).send(&masked(0x1, b""));
}

#[test]
fn a_unix_domain_socket_is_served() {
    let path = std::env::temp_dir().join(format!("linerate-{}-{}", std::process::id(), driver()));
    let listener = UnixListener::bind(&path).unwrap();
    let listening = server(2).listen_on(listener).unwrap();
    assert_eq!(listening.local_addr().port(), 0);
    let running = Running::run(listening);
    for _ in 0..4 {
        let stream = UnixStream::connect(&path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut raw = Raw { stream }.opened();
        raw.send(&masked(0x1, b""));
        let text = b"a Unix domain socket has no IP address".to_vec();
        assert_eq!(raw.frame(), (0x81, text));
    }
    drop(running);
    fs::remove_file(path).unwrap();
}

#[test]
fn a_socket_that_does_not_listen_is_refused() {
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (stream, _other) = UnixStream::pair().unwrap();
    for socket in [OwnedFd::from(datagrams), OwnedFd::from(stream)] {
        let error = server(1).listen_on(socket).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
