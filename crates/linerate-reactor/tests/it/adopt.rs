//! Sockets that another HTTP server has accepted.

use std::{
    collections::BTreeSet,
    net::TcpListener,
    os::unix::net::UnixStream,
    thread::{self, ThreadId},
};

use linerate_reactor::{
    Adoption, Context, Handler, Message, Opened, Options, Remote,
    handshake::{HandshakeLimits, HttpVersion, Request, RequestReader},
};

use crate::support::{ACCEPTED, Echo, REQUEST, Raw, Running, masked, wait_until};

/// Acts as another server: accepts a connection, and reads its request and the bytes after it.
fn take_request(listener: &TcpListener) -> (Raw, Request, Vec<u8>) {
    let (stream, _) = listener.accept().unwrap();
    let mut raw = Raw { stream };
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let mut buffer = [0; 4_096];
    let bytes = std::io::Read::read(&mut raw.stream, &mut buffer).unwrap();
    let (request, head_bytes) = reader.handle_input(&buffer[..bytes]).unwrap().unwrap();
    (raw, request, buffer[head_bytes..bytes].to_vec())
}

/// Sends a request with `behind` directly after it, and has the other server hand the socket over.
fn adopt(
    remote: &Remote,
    request: &str,
    behind: &[u8],
    prepare: impl FnOnce(&mut Raw, &Request, Adoption) -> Adoption,
) -> Raw {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = Raw::connect(listener.local_addr().unwrap());
    client.send(&[request.as_bytes(), behind].concat());
    let (mut raw, request, input) = take_request(&listener);
    let socket = raw.stream.try_clone().unwrap();
    let adoption = Adoption::new(socket, request.clone()).with_input(input);
    let adoption = prepare(&mut raw, &request, adoption);
    drop(raw);
    remote.adopt(adoption).unwrap();
    client
}

#[test]
fn a_request_is_answered_and_what_is_behind_it_is_taken_first() {
    let server = Running::echo();
    let frames = [masked(0x1, b"first"), masked(0x2, b"second")].concat();
    for cut in 0..frames.len() {
        let (now, later) = frames.split_at(cut);
        let mut client = adopt(&server.remote, REQUEST, now, |_, _, adoption| adoption);
        assert_eq!(client.read(ACCEPTED.len()), ACCEPTED.as_bytes());
        client.send(later);
        assert_eq!(client.frame(), (0x81, b"first".to_vec()), "cut at {cut}");
        assert_eq!(client.frame(), (0x82, b"second".to_vec()));
    }
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn a_server_may_answer_itself() {
    let server = Running::echo();
    let elsewhere = REQUEST.replacen("/chat", "/upgrade?x=1", 1);
    let mut client = adopt(
        &server.remote,
        &elsewhere,
        &masked(0x1, b"Spam"),
        |raw, request, adoption| {
            let mut answer = Vec::new();
            request.websocket().unwrap().accept().encode(&mut answer);
            raw.send(&answer);
            adoption.answered().with_path("/chat")
        },
    );
    assert_eq!(client.read(ACCEPTED.len()), ACCEPTED.as_bytes());
    assert_eq!(client.frame(), (0x81, b"Spam".to_vec()));
    client.round_trip();
    drop(client);

    // Without a handler for the path the connection is dropped, because the request is already
    // answered.
    let mut nobody = adopt(&server.remote, &elsewhere, b"", |_, _, it| it.answered());
    assert_eq!(nobody.rest(), b"");
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn what_the_reactor_refuses_is_refused() {
    let server = Running::echo();
    for (from, to, status) in [
        ("/chat", "/other", "404"),
        ("Version: 13", "Version: 12", "426"),
        (
            "\r\n\r\n",
            "\r\nOrigin: https://evil.example\r\n\r\n",
            "403",
        ),
    ] {
        let request = REQUEST.replacen(from, to, 1);
        let mut client = adopt(&server.remote, &request, b"", |_, _, adoption| adoption);
        let answer = String::from_utf8(client.rest()).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    wait_until(|| server.remote.counters().connections() == 0);
}

#[test]
fn beyond_the_limit_the_socket_comes_back() {
    let mut options = Options::default();
    options.connections_max = 1;
    let server = Running::start(Echo, 1, options);
    let _first = Raw::open(server.address);
    let (socket, mut client) = UnixStream::pair().unwrap();
    let parts = [("host", &b"example.com"[..])];
    let limits = HandshakeLimits::default();
    let request = Request::from_parts("GET", "/chat", HttpVersion::Http11, parts, limits);
    let adoption = Adoption::new(socket, request.unwrap()).with_input(b"x".to_vec());
    let error = server.remote.adopt(adoption).unwrap_err();
    assert_eq!(error.to_string(), "connection limit of 1 reached");
    let (socket, request, input) = error.into_adoption().into_parts();
    assert_eq!((request.path(), &input[..]), ("/chat", &b"x"[..]));
    std::io::Write::write_all(&mut UnixStream::from(socket), b"503").unwrap();
    let mut answer = [0; 3];
    std::io::Read::read_exact(&mut client, &mut answer).unwrap();
    assert_eq!(&answer, b"503");
}

/// Reports the thread that it runs on.
#[derive(Clone)]
struct Where;

impl Handler for Where {
    type Data = ();

    fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
        let thread: ThreadId = thread::current().id();
        cx.send_text(&format!("{thread:?}")).unwrap();
    }

    fn message(&mut self, (): &mut (), _cx: &mut Context<'_>, _message: Message<'_>) {}
}

#[test]
fn workers_take_turns() {
    let server = Running::start(Where, 3, Options::default());
    let threads: BTreeSet<_> = (0..3)
        .map(|_| {
            let mut client = adopt(&server.remote, REQUEST, b"", |_, _, adoption| adoption);
            client.read(ACCEPTED.len());
            client.frame().1
        })
        .collect();
    assert_eq!(threads.len(), 3);
}

#[test]
fn sockets_of_the_unix_domain_are_taken_too() {
    let server = Running::echo();
    let (socket, mut client) = UnixStream::pair().unwrap();
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let (request, _) = reader.handle_input(REQUEST.as_bytes()).unwrap().unwrap();
    server
        .remote
        .adopt(Adoption::new(socket, request).with_input(masked(0x1, b"Spam")))
        .unwrap();
    let mut answer = vec![0; ACCEPTED.len() + 6];
    std::io::Read::read_exact(&mut client, &mut answer).unwrap();
    assert_eq!(answer, [ACCEPTED.as_bytes(), b"\x81\x04Spam"].concat());
}
