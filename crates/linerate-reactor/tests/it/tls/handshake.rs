//! TLS handshakes: with every cipher suite, in pieces, and those that fail.

use std::{
    io::{Read, Write},
    time::Duration,
};

use linerate_reactor::{
    Options,
    rustls::{
        AlertDescription, HandshakeKind,
        crypto::ring,
        version::{TLS12, TLS13},
    },
};

use super::{Encrypted, alert};
use crate::support::{REQUEST, Raw, close, masked, wait_until};

#[test]
fn messages_come_back_with_every_cipher_suite() {
    let server = Encrypted::echo();
    for (suite, config) in server.identity.clients() {
        let mut client = server.connect(config).opened();
        for bytes in [0, 1, 125, 5_000, 70_000] {
            let payload = vec![b'x'; bytes];
            client.send(&masked(0x1, &payload));
            assert_eq!(client.frame(), (0x81, payload), "{suite:?} {bytes}");
        }
        client.send(&masked(0x8, b"\x03\xe8"));
        assert_eq!(client.rest(), close(1000), "{suite:?}");
    }
}

#[test]
fn t01_a_hello_may_come_in_pieces() {
    let server = Encrypted::echo();
    for version in [&TLS12, &TLS13] {
        let mut config = server.identity.client(ring::default_provider(), &[version]);
        // Splits each handshake message into many records.
        config.max_fragment_size = Some(32);
        let mut client = server.connect(config);
        client.stream.tcp.write_bytes_max = 1;
        client.opened().round_trip();
    }
}

#[test]
fn t01_a_hello_that_does_not_come_is_not_waited_for() {
    let mut options = Options::default();
    options.handshake.time_max = Duration::from_millis(300);
    let server = Encrypted::start(options, |_| {});
    for part in [&b""[..], b"\x16", b"\x16\x03\x01\x01\x00\x01"] {
        let mut raw = Raw::connect(server.address());
        raw.send(part);
        assert_eq!(raw.rest(), b"");
    }
    // A missing request is not waited for either. After the TLS handshake, it is answered with 408.
    let mut client = server.connect(server.config());
    client.send(b"GET /chat HTTP/1.1\r\n");
    assert!(client.rest().starts_with(b"HTTP/1.1 408 "));
    wait_until(|| server.running.remote.counters().connections() == 0);
}

#[test]
fn t02_close_notify_in_place_of_a_hello_ends_it() {
    let server = Encrypted::echo();
    let mut raw = Raw::connect(server.address());
    raw.send(b"\x15\x03\x03\x00\x02\x01\x00");
    // A client that has closed the connection itself gets no alert.
    assert_eq!(raw.rest(), b"");
    let mut raw = Raw::connect(server.address());
    raw.send(&b"\x15\x03\x03\x00\x02\x01\x00".repeat(100));
    raw.rest();
    wait_until(|| server.running.remote.counters().connections() == 0);
    server.open().round_trip();
}

#[test]
fn t10_old_versions_are_told_so_however_the_hello_is_cut() {
    let server = Encrypted::echo();
    let body = [&[3, 1][..], &[7; 32], b"\0\0\x02\0\x2f\x01\0"].concat();
    let hello = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    for bytes in [hello.len(), 9] {
        let mut raw = Raw::connect(server.address());
        for part in hello.chunks(bytes) {
            raw.send(&[&[22, 3, 1, 0, part.len() as u8][..], part].concat());
        }
        assert_eq!(raw.rest(), b"\x15\x03\x03\x00\x02\x02\x46");
    }
}

#[test]
fn t05_only_http1_is_agreed_on() {
    let both = [b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = Encrypted::start(Options::default(), |config| {
        config.alpn_protocols = both.to_vec();
    });
    for (offered, agreed) in [(&both[..], Some(&both[1][..])), (&[], None)] {
        let mut config = server.config();
        config.alpn_protocols = offered.to_vec();
        let mut client = server.connect(config).opened();
        client.round_trip();
        assert_eq!(client.stream.tls.alpn_protocol(), agreed);
    }
    let mut config = server.config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let mut client = server.connect(config);
    assert_eq!(alert(&mut client), AlertDescription::NoApplicationProtocol);
}

#[test]
fn t08_early_data_is_refused() {
    let server = Encrypted::start(Options::default(), |config| {
        config.max_early_data_size = 1 << 14;
    });
    let mut config = server.config();
    config.enable_early_data = true;
    // Both connections share the session store of the configuration.
    let mut first = server.connect(config.clone()).opened();
    first.round_trip();
    let mut second = server.connect(config);
    assert!(second.stream.tls.early_data().is_none());
    second = second.opened();
    second.round_trip();
    assert_eq!(
        second.stream.tls.handshake_kind(),
        Some(HandshakeKind::Resumed)
    );
}

#[test]
fn a_client_that_does_not_speak_tls_is_told_so() {
    let server = Encrypted::echo();
    let garbage = [0xFF; 100];
    let empty = b"\x16\x03\x01\x00\x00";
    let long = b"\x16\x03\x01\xFF\xFF";
    for bytes in [
        REQUEST.as_bytes(),
        &garbage,
        empty,
        long,
        &masked(0x1, b"Spam"),
    ] {
        let mut raw = Raw::connect(server.address());
        raw.send(bytes);
        let told = raw.rest();
        assert_eq!((told[0], told.len(), told[5]), (0x15, 7, 2), "{told:x?}");
    }
    server.open().round_trip();
}

#[test]
fn a_handshake_of_endless_messages_is_given_up() {
    let server = Encrypted::echo();
    let mut raw = Raw::connect(server.address());
    // The header of a 16 MiB ClientHello, followed by its content in one-byte records.
    raw.send(b"\x16\x03\x01\x00\x04\x01\xFF\xFF\xFF");
    let piece = b"\x16\x03\x01\x00\x01\x00".repeat(1_000);
    let ended = (0..1_000).any(|_| raw.stream.write_all(&piece).is_err());
    assert!(ended || raw.stream.read(&mut [0; 64]).is_ok());
    wait_until(|| server.running.remote.counters().connections() == 0);
}

#[test]
fn a_refusal_is_encrypted() {
    let server = Encrypted::echo();
    let mut client = server.connect(server.config());
    client.send(b"GET /nowhere HTTP/1.1\r\nHost: example.com\r\n\r\n");
    assert!(client.rest().starts_with(b"HTTP/1.1 404 "));
}

#[test]
fn a_page_is_encrypted() {
    let server = Encrypted::echo();
    for (method, body) in [("GET", "ok"), ("HEAD", "")] {
        let mut client = server.connect(server.config());
        client.send(format!("{method} /live HTTP/1.1\r\nHost: example.com\r\n\r\n").as_bytes());
        // The end of the stream is announced: rustls would report an error otherwise.
        let answer = String::from_utf8(client.rest()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        let end = format!("\r\nContent-Length: 2\r\n\r\n{body}");
        assert!(answer.ends_with(&end), "{answer}");
    }
    wait_until(|| server.running.remote.counters().connections() == 0);
}

#[test]
fn an_origin_is_that_of_an_encrypted_page() {
    let server = Encrypted::echo();
    for (origin, status) in [("https", "101"), ("http", "403")] {
        let origin = format!("\r\nOrigin: {origin}://example.com\r\n\r\n");
        let mut client = server.connect(server.config());
        client.send(REQUEST.replace("\r\n\r\n", &origin).as_bytes());
        let answer = client.read(12);
        assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes());
    }
}

#[test]
fn without_room_a_connection_is_dropped() {
    let mut options = Options::default();
    options.connections_max = 1;
    let server = Encrypted::start(options, |_| {});
    let mut client = server.open();
    let mut raw = Raw::connect(server.address());
    assert_eq!(raw.rest(), b"");
    client.round_trip();
}
