//! Connections whose handshake and request another server has handled.

use std::{
    io::{ErrorKind, IoSlice, Read, Write},
    net::{TcpListener, TcpStream},
    time::Duration,
};

use linerate_reactor::{
    Adoption, CloseCode, LocalEvent, LocalMessages, LocalReactor, Options, Server, TlsAcceptor,
    TlsConnection,
    handshake::{HandshakeLimits, Request, RequestReader},
    rustls::{
        AlertDescription, ClientConfig, ClientConnection, HandshakeKind,
        crypto::ring,
        version::{TLS12, TLS13},
    },
};

use super::{Client, Identity, Obedient, Tls, alert};
use crate::support::{
    ACCEPTED, PATIENCE, REQUEST, Running, close, driver, masked, unmasked, wait_until,
};

/// A server that accepts TLS connections itself, and a reactor to which it hands them over.
struct Front {
    running: Running,
    identity: Identity,
    acceptor: TlsAcceptor,
}

/// Both ends of a connection after the handshake, which took place in memory: nothing has been sent
/// on the sockets.
struct Pair {
    client: Client,
    socket: TcpStream,
    tls: TlsConnection,
}

impl Front {
    fn new() -> Self {
        Self::with_options(Options::default())
    }

    fn with_options(mut options: Options) -> Self {
        options.driver = driver();
        options.config.ping_interval = None;
        let server = Server::new().with_workers(1).with_options(options);
        let identity = Identity::new();
        let config = identity.server(ring::default_provider());
        Self {
            running: Running::serve(server.with_route("/chat", Obedient::default())),
            identity,
            acceptor: TlsAcceptor::new(config),
        }
    }

    fn config(&self) -> ClientConfig {
        let versions = [&TLS13, &TLS12];
        self.identity.client(ring::default_provider(), &versions)
    }

    fn pair(&self) -> Pair {
        Pair::new(self.acceptor.accept().unwrap(), self.config())
    }

    /// Continues a connection whose request was answered.
    fn adopt(&self, pair: Pair, request: Request, input: Vec<u8>) -> Client {
        let adoption = Adoption::new(pair.socket, request).with_input(input);
        let adoption = adoption.with_tls(pair.tls).answered();
        self.running.remote.adopt(adoption).unwrap();
        pair.client
    }

    /// Opens a WebSocket.
    fn open(&self) -> Client {
        self.open_as(self.config())
    }

    fn open_as(&self, config: ClientConfig) -> Client {
        let mut pair = Pair::new(self.acceptor.accept().unwrap(), config);
        let wire = pair.client.stream.encrypt(REQUEST.as_bytes());
        let (request, input) = pair.receive_request(wire, 4_096);
        let mut client = self.adopt(pair, request, input);
        assert_eq!(client.read(ACCEPTED.len()), ACCEPTED.as_bytes());
        client
    }
}

impl Pair {
    fn new(mut tls: TlsConnection, config: ClientConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = Tls::new(listener.local_addr().unwrap(), config);
        let (socket, _) = listener.accept().unwrap();
        while !tls.is_open().unwrap() {
            let mut flight = client.encrypt(b"");
            tls.handle_input(&mut flight);
            if !tls.is_open().unwrap() {
                receive(&mut client.tls, &mut tls);
            }
        }
        if client.tls.is_handshaking() {
            // The last message of TLS 1.2 is that of the server.
            receive(&mut client.tls, &mut tls);
        }
        Self {
            client: Client::new(client),
            socket,
            tls,
        }
    }

    /// Passes `wire` to the server's end, which answers the request in it. Returns the request and
    /// what was read after it, in reads of `bytes_max` bytes.
    fn receive_request(&mut self, mut wire: Vec<u8>, bytes_max: usize) -> (Request, Vec<u8>) {
        self.tls.handle_input(&mut wire);
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let mut buffer = vec![0; bytes_max];
        loop {
            let bytes = self.tls.read(&mut buffer).unwrap();
            if let Some((request, at)) = reader.handle_input(&buffer[..bytes]).unwrap() {
                let (first, second) = ACCEPTED.as_bytes().split_at(7);
                let slices = [first, b"", second].map(IoSlice::new);
                assert_eq!(self.tls.write(&slices).unwrap(), ACCEPTED.len());
                return (request, buffer[at..bytes].to_vec());
            }
        }
    }
}

/// Passes what the server's end has to send to the client.
fn receive(client: &mut ClientConnection, tls: &mut TlsConnection) {
    let mut unsent = tls.unsent();
    while !unsent.is_empty() {
        client.read_tls(&mut unsent).unwrap();
    }
    client.process_new_packets().unwrap();
    tls.handle_sent(tls.unsent().len());
}

#[test]
fn a_connection_continues_wherever_its_input_is_cut() {
    let front = Front::new();
    // One message in the record of the request, one that is alone, and one in two records.
    let over = masked(0x2, b"over");
    let parts = [
        [REQUEST.as_bytes(), &masked(0x1, b"Spam")].concat(),
        masked(0x1, b"alone"),
        over[..7].to_vec(),
        [&over[7..], &masked(0x8, b"\x03\xe8")].concat(),
    ];
    let expected = [
        ACCEPTED.as_bytes(),
        &unmasked(0x1, b"Spam"),
        &unmasked(0x1, b"alone"),
        &unmasked(0x2, b"over"),
        &close(1000),
    ];
    let mut after_request = 0;
    loop {
        let mut pair = front.pair();
        let records = parts
            .each_ref()
            .map(|part| pair.client.stream.encrypt(part));
        let wire = records.concat();
        let at = records[0].len() + after_request;
        if at > wire.len() {
            break;
        }
        // A small buffer leaves plaintext in the connection.
        let bytes_max = if after_request % 2 == 0 { 4_096 } else { 16 };
        let (request, input) = pair.receive_request(wire[..at].to_vec(), bytes_max);
        let mut client = front.adopt(pair, request, input);
        client.stream.tcp.stream.write_all(&wire[at..]).unwrap();
        assert_eq!(client.rest(), expected.concat(), "cut at {at}");
        after_request += 1;
    }
}

#[test]
fn messages_come_back_with_every_cipher_suite() {
    let front = Front::new();
    for (suite, config) in front.identity.clients() {
        let mut client = front.open_as(config);
        for bytes in [0, 1, 125, 70_000] {
            let payload = vec![b'x'; bytes];
            client.send(&masked(0x1, &payload));
            assert!(client.frame() == (0x81, payload), "{suite:?} {bytes}");
        }
        client.send(&masked(0x8, b"\x03\xe8"));
        assert_eq!(client.rest(), close(1000), "{suite:?}");
    }
}

#[test]
fn tickets_that_were_not_sent_are_sent() {
    let front = Front::new();
    for version in [&TLS12, &TLS13] {
        let provider = ring::default_provider();
        // Both connections share the session store of the configuration.
        let config = front.identity.client(provider, &[version]);
        let mut first = front.open_as(config.clone());
        first.round_trip();
        let mut second = front.open_as(config);
        second.round_trip();
        let kind = second.stream.tls.handshake_kind();
        assert_eq!(kind, Some(HandshakeKind::Resumed), "{version:?}");
    }
}

#[test]
fn key_updates_are_followed_before_and_after_the_adoption() {
    let front = Front::new();
    let mut pair = front.pair();
    let mut wire = Vec::new();
    for part in [REQUEST.as_bytes(), &masked(0x1, b"Spam")] {
        wire.extend(pair.client.stream.encrypt(part));
        pair.client.stream.tls.refresh_traffic_keys().unwrap();
        wire.extend(pair.client.stream.encrypt(b""));
    }
    // The last KeyUpdate is cut.
    let rest = wire.split_off(wire.len() - 5);
    let (request, input) = pair.receive_request(wire, 4_096);
    let mut client = front.adopt(pair, request, input);
    client.stream.tcp.stream.write_all(&rest).unwrap();
    assert_eq!(client.read(ACCEPTED.len()), ACCEPTED.as_bytes());
    assert_eq!(client.frame(), (0x81, b"Spam".to_vec()));
    for _ in 0..50 {
        client.stream.tls.refresh_traffic_keys().unwrap();
        client.round_trip();
    }
}

#[test]
fn an_end_without_a_close_frame_comes_after_the_messages() {
    let front = Front::new();
    for is_read_before in [true, false] {
        let mut pair = front.pair();
        let request = [REQUEST.as_bytes(), &masked(0x1, b"Spam")].concat();
        let mut wire = pair.client.stream.encrypt(&request);
        let at = wire.len();
        pair.client.stream.tls.send_close_notify();
        wire.extend(pair.client.stream.encrypt(b""));
        let after = match is_read_before {
            true => Vec::new(),
            false => wire.split_off(at),
        };
        let (request, input) = pair.receive_request(wire, 4_096);
        let mut client = front.adopt(pair, request, input);
        client.stream.tcp.stream.write_all(&after).unwrap();
        // The end of the stream is announced: rustls would report an error otherwise.
        let expected = [ACCEPTED.as_bytes(), &unmasked(0x1, b"Spam")].concat();
        assert_eq!(client.rest(), expected);
    }
    wait_until(|| front.running.remote.counters().connections() == 0);
}

#[test]
fn garbage_ends_one_connection_with_an_alert_after_the_messages() {
    let front = Front::new();
    let mut other = front.open();
    let no_record = b"GET / HTTP/1.1\r\n".to_vec();
    let too_long = b"\x17\x03\x03\xff\xff".to_vec();
    let forged = [&b"\x17\x03\x03\x00\x20"[..], &[7; 32]].concat();
    for (garbage, expected) in [
        (no_record, AlertDescription::ProtocolVersion),
        (too_long, AlertDescription::RecordOverflow),
        (forged, AlertDescription::BadRecordMac),
    ] {
        // All of it is read before the adoption, or only a part.
        for read_bytes in 0..=garbage.len() {
            let mut pair = front.pair();
            let request = [REQUEST.as_bytes(), &masked(0x1, b"Spam")].concat();
            let mut wire = pair.client.stream.encrypt(&request);
            let (before, after) = garbage.split_at(read_bytes);
            wire.extend_from_slice(before);
            let (request, input) = pair.receive_request(wire, 4_096);
            let mut client = front.adopt(pair, request, input);
            // The connection may have ended already.
            _ = client.stream.tcp.stream.write_all(after);
            let answers = [ACCEPTED.as_bytes(), &unmasked(0x1, b"Spam")].concat();
            // One record at a time: rustls reports an alert before the plaintext that precedes it.
            assert_eq!(client.stream.read_records(answers.len()).0, answers);
            assert_eq!(alert(&mut client), expected, "{read_bytes} bytes read");
        }
    }
    other.round_trip();
}

#[test]
fn the_reactor_answers_a_request_that_was_not_answered() {
    let front = Front::new();
    for (origin, status) in [("https", "101"), ("http", "403")] {
        let mut pair = front.pair();
        let origin = format!("\r\nOrigin: {origin}://example.com\r\n\r\n");
        let request = REQUEST.replace("\r\n\r\n", &origin);
        let mut wire = pair.client.stream.encrypt(request.as_bytes());
        pair.tls.handle_input(&mut wire);
        let mut head = vec![0; request.len()];
        assert_eq!(pair.tls.read(&mut head).unwrap(), head.len());
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let (request, _) = reader.handle_input(&head).unwrap().unwrap();
        let adoption = Adoption::new(pair.socket, request).with_tls(pair.tls);
        front.running.remote.adopt(adoption).unwrap();
        let answer = pair.client.read(12);
        assert_eq!(answer, format!("HTTP/1.1 {status}").as_bytes());
    }
}

#[test]
fn a_connection_that_is_not_adopted_can_be_answered() {
    let mut options = Options::default();
    options.connections_max = 1;
    let front = Front::with_options(options);
    let mut first = front.open();
    let mut pair = front.pair();
    let wire = pair.client.stream.encrypt(REQUEST.as_bytes());
    let (request, _) = pair.receive_request(wire, 4_096);
    let adoption = Adoption::new(pair.socket, request).with_tls(pair.tls);
    let error = front.running.remote.adopt(adoption).unwrap_err();
    let mut adoption = error.into_adoption();
    let mut tls = adoption.take_tls().unwrap();
    tls.close();
    receive(&mut pair.client.stream.tls, &mut tls);
    assert_eq!(pair.client.rest(), ACCEPTED.as_bytes());
    first.round_trip();
}

#[test]
fn a_violation_is_reported_after_the_plaintext_before_it() {
    let front = Front::new();
    let mut pair = front.pair();
    let mut wire = pair.client.stream.encrypt(b"Spam");
    wire.extend_from_slice(b"GET / HTTP/1.1\r\n");
    receive(&mut pair.client.stream.tls, &mut pair.tls);
    pair.tls.handle_input(&mut wire);
    let mut buffer = [0; 8];
    assert_eq!(pair.tls.read(&mut buffer).unwrap(), 4);
    assert!(pair.tls.unsent().is_empty());
    let error = pair.tls.read(&mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    // The alert is sent, and nothing after it.
    assert!(!pair.tls.unsent().is_empty());
    let error = pair.tls.write(&[IoSlice::new(b"x")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert!(pair.tls.read(&mut buffer).is_err());
}

#[test]
fn an_end_that_was_not_announced_is_an_error() {
    let front = Front::new();
    let mut pair = front.pair();
    let mut buffer = [0; 8];
    let error = pair.tls.read(&mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    pair.tls.handle_eof();
    let error = pair.tls.read(&mut buffer).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnexpectedEof);

    let mut pair = front.pair();
    pair.client.stream.tls.send_close_notify();
    let mut wire = pair.client.stream.encrypt(b"");
    pair.tls.handle_input(&mut wire);
    pair.tls.handle_eof();
    assert_eq!(pair.tls.read(&mut buffer).unwrap(), 0);

    let mut tls = front.acceptor.accept().unwrap();
    assert!(!tls.is_open().unwrap());
    let error = tls.write(&[IoSlice::new(b"x")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    tls.handle_eof();
    assert_eq!(tls.is_open().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_not_a_hello_is_answered_with_an_alert() {
    let front = Front::new();
    let mut tls = front.acceptor.accept().unwrap();
    tls.handle_input(&mut REQUEST.as_bytes().to_vec());
    assert_eq!(tls.is_open().unwrap_err().kind(), ErrorKind::InvalidData);
    let alert = tls.unsent();
    assert_eq!(
        (alert[0], alert.len(), alert[5]),
        (0x15, 7, 2),
        "{alert:x?}"
    );
}

/// No record can be left out, so that what waits is discarded together with the connection.
#[test]
fn output_that_waits_is_discarded_together_with_its_connection() {
    let front = Front::new();
    let mut reactor = LocalReactor::new(Options::default()).unwrap();
    for waits in [true, false] {
        let mut pair = front.pair();
        let wire = pair.client.stream.encrypt(REQUEST.as_bytes());
        let (request, input) = pair.receive_request(wire, 4_096);
        let adoption = Adoption::new(pair.socket, request).with_input(input);
        let adoption = adoption.with_tls(pair.tls).answered();
        let id = reactor.adopt(adoption, LocalMessages::Collected).unwrap();
        let frames = unmasked(0x2, &[7; 50_000]);
        let shared = frames.clone().into();
        while waits && reactor.status(id).unwrap().backlog_bytes < 100_000 {
            let mut connection = reactor.connection(id).unwrap();
            connection.send_frames(&shared).unwrap();
            connection.flush();
        }
        assert_eq!(reactor.memory().backlog_bytes >= 100_000, waits);
        let mut connection = reactor.connection(id).unwrap();
        connection.discard_unsent();
        let code = CloseCode::TRY_AGAIN_LATER;
        connection.close(code, "busy").unwrap();
        connection.flush();
        assert_eq!(reactor.memory().backlog_bytes, 0);
        let mut client = pair.client;
        if waits {
            let closed = reactor.poll_event();
            assert!(matches!(closed, Some(LocalEvent::Closed { .. })));
            assert!(client.stream.read_to_end(&mut Vec::new()).is_err());
        } else {
            assert_eq!(client.read(ACCEPTED.len()), ACCEPTED.as_bytes());
            assert_eq!(client.frame(), (0x88, b"\x03\xf5busy".to_vec()));
        }
    }
}

/// Input is decrypted, because it may contain the end of the stream, and then ignored.
#[test]
fn a_stream_is_encrypted_and_ends_with_a_close_alert() {
    let front = Front::new();
    let mut reactor = LocalReactor::new(Options::default()).unwrap();
    let mut pair = front.pair();
    let mut wire = pair.client.stream.encrypt(REQUEST.as_bytes());
    pair.tls.handle_input(&mut wire);
    pair.tls.write(&[IoSlice::new(b"before ")]).unwrap();
    let id = reactor.adopt_tls_stream(pair.socket, pair.tls).unwrap();
    let mut client = pair.client;
    client
        .stream
        .write_all(b"GET /next HTTP/1.1\r\n\r\n")
        .unwrap();
    let long = vec![b'x'; 20_000];
    let mut stream = reactor.stream(id).unwrap();
    stream.send(b"short ");
    stream.send_shared(&long.clone().into());
    stream.end();
    stream.flush();
    reactor.turn().unwrap();
    let mut received = Vec::new();
    // Without an alert that ends the stream, this would be an error.
    client.stream.read_to_end(&mut received).unwrap();
    assert_eq!(received, [b"before short ", &long[..]].concat());
    drop(client);
    while reactor.connections() > 0 {
        reactor.turn().unwrap();
    }
    assert!(matches!(
        reactor.poll_event(),
        Some(LocalEvent::Closed { .. })
    ));
}

/// A client that never reads cannot make the server encrypt without limit: the backlog counts
/// records, and the connection ends after the write timeout.
#[test]
fn a_client_that_does_not_read_ends_after_the_write_timeout() {
    let mut options = Options::default();
    options.write_timeout = Duration::from_secs(1);
    options.backlog_bytes_max = 64 << 10;
    options.config.limits.message_bytes_max = 1 << 20;
    let front = Front::with_options(options);
    let mut other = front.open();
    let mut slow = front.open();
    let payload = vec![b'x'; 1 << 20];
    let stream = slow.stream.tcp.stream.try_clone().unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // The echoes fill the socket's buffers, then the backlog; then nothing more is read from it.
    let frame = masked(0x1, &payload);
    let ended = (0..1_000).any(|_| {
        let wire = slow.stream.encrypt_all(&frame);
        (&stream).write_all(&wire).is_err()
    });
    assert!(ended, "the server reads without limit");
    wait_until(|| front.running.remote.counters().connections() == 1);
    other.round_trip();
}

/// Records of one byte, cut anywhere, interleaved with key updates, while the connection moves.
#[test]
fn a_stutter_of_tiny_records_and_key_updates_is_followed() {
    let front = Front::new();
    let frames = [masked(0x1, b"Spam"), masked(0x8, b"\x03\xe8")].concat();
    for cut in [0, 1, 27, 150, 333] {
        let mut pair = front.pair();
        let mut wire = pair.client.stream.encrypt(REQUEST.as_bytes());
        let at = wire.len() + cut;
        // Nothing follows the Close frame, after which the server closes.
        let (last, others) = frames.split_last().unwrap();
        for byte in others {
            wire.extend(pair.client.stream.encrypt(&[*byte]));
            pair.client.stream.tls.refresh_traffic_keys().unwrap();
            wire.extend(pair.client.stream.encrypt(b""));
        }
        wire.extend(pair.client.stream.encrypt(&[*last]));
        let rest = wire.split_off(at);
        let (request, input) = pair.receive_request(wire, 4_096);
        let mut client = front.adopt(pair, request, input);
        for byte in &rest {
            client.stream.tcp.stream.write_all(&[*byte]).unwrap();
        }
        let expected = [ACCEPTED.as_bytes(), &unmasked(0x1, b"Spam"), &close(1000)].concat();
        assert_eq!(client.rest(), expected, "cut at {cut}");
    }
}
