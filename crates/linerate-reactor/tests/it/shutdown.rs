//! Shutting the server down.

use std::{net::TcpStream, time::Duration};

use linerate_reactor::Options;

use crate::support::{Echo, Raw, Running, masked, unmasked};

#[test]
fn open_connections_are_closed_with_1001() {
    let mut server = Running::start(Echo, 2, Options::default());
    let mut clients: Vec<_> = (0..10).map(|_| Raw::open(server.address)).collect();
    let idle = TcpStream::connect(server.address).unwrap();
    server.remote.shut_down();
    for client in &mut clients {
        assert_eq!(
            client.frame(),
            (0x88, b"\x03\xe9server shutting down".to_vec())
        );
        // Messages may arrive until the peer's Close frame, but they are no longer answered.
        client.send(&[masked(0x1, b"late"), masked(0x8, b"\x03\xe9")].concat());
        assert_eq!(client.rest(), b"");
    }
    server.join();
    assert_eq!(server.remote.counters().connections(), 0);
    assert!(TcpStream::connect(server.address).is_err());
    drop(idle);
}

#[test]
fn a_client_that_does_not_answer_delays_the_end_by_a_bounded_time() {
    let mut options = Options::default();
    options.config.close_timeout = Duration::from_millis(100);
    let mut server = Running::start(Echo, 1, options);
    let mut client = Raw::open(server.address);
    server.remote.shut_down();
    server.join();
    assert_eq!(
        client.rest(),
        unmasked(0x8, b"\x03\xe9server shutting down")
    );
}

#[test]
fn a_second_server_on_the_same_port_is_refused() {
    let server = Running::echo();
    let second = linerate_reactor::Server::new()
        .with_fallback(Echo)
        .listen(server.address);
    assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}
