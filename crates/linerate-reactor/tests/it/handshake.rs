//! The opening handshake: requests that open a WebSocket, and requests that are refused.

use linerate_reactor::{
    Context, Handler, Message, Opened, Options, Server,
    handshake::{Acceptance, Refusal, Upgrade},
};

use crate::support::{ACCEPTED, Echo, REQUEST, Raw, Running, driver, masked};

fn answer(request: &str) -> String {
    let server = Running::echo();
    let mut raw = Raw::connect(server.address);
    raw.send(request.as_bytes());
    String::from_utf8(raw.rest()).unwrap()
}

#[test]
fn requests_that_open_nothing_are_refused() {
    let edited = |from, to| REQUEST.replacen(from, to, 1);
    for (request, status) in [
        (edited("/chat", "/other"), "404"),
        (edited("GET", "POST"), "405"),
        (edited("Version: 13", "Version: 12"), "426"),
        (edited("Upgrade: websocket", "Upgrade: h2c"), "400"),
        (edited("dGhl", "!"), "400"),
        (
            edited("\r\n\r\n", "\r\nOrigin: https://evil.example\r\n\r\n"),
            "403",
        ),
        ("nonsense\r\n\r\n".to_owned(), "400"),
    ] {
        let answer = answer(&request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}

#[test]
fn the_answer_to_head_has_no_body() {
    let answer = answer(&REQUEST.replacen("GET", "HEAD", 1));
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_request_in_pieces_is_answered_once_it_is_whole() {
    let server = Running::echo();
    let mut raw = Raw::connect(server.address);
    REQUEST.bytes().for_each(|byte| raw.send(&[byte]));
    assert_eq!(raw.read(ACCEPTED.len()), ACCEPTED.as_bytes());
    raw.round_trip();
}

/// Chooses the first subprotocol offered, or refuses the request if there is none.
#[derive(Clone)]
struct Choosy(&'static str);

impl Handler for Choosy {
    type Data = String;

    fn accept<'u>(&mut self, upgrade: &'u Upgrade<'_>) -> Result<Acceptance<'u>, Refusal> {
        let refused = || Refusal::new(403, "no subprotocol").expect("a valid refusal");
        let first = upgrade.subprotocols().first().ok_or_else(refused)?;
        upgrade
            .accept()
            .with_subprotocol(first)
            .map_err(|_| refused())
    }

    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> String {
        cx.send_text(self.0).unwrap();
        opened
            .request()
            .and_then(|request| request.query())
            .unwrap_or_default()
            .to_owned()
    }

    fn message(&mut self, query: &mut String, cx: &mut Context<'_>, _message: Message<'_>) {
        cx.send_text(query).unwrap();
    }
}

#[test]
fn routes_have_handlers_and_data_of_their_own() {
    let mut options = Options::default();
    options.driver = driver();
    let server = Server::new()
        .with_workers(1)
        .with_options(options)
        .with_route("/a", Choosy("this is a"))
        .with_route("/b", Choosy("this is b"))
        .with_fallback(Echo)
        .listen(([127, 0, 0, 1], 0).into())
        .unwrap();
    let (address, remote) = (server.local_addr(), server.remote());
    let thread = std::thread::spawn(move || server.run());
    for (path, greeting) in [("/a", "this is a"), ("/b", "this is b")] {
        let target = format!("GET {path}?x={path}");
        let request = REQUEST.replacen("GET /chat", &target, 1);
        let mut raw = Raw::connect(address);
        raw.send(request.as_bytes());
        assert!(raw.rest().starts_with(b"HTTP/1.1 403 "));

        let mut raw = Raw::connect(address);
        let offer = "\r\nSec-WebSocket-Protocol: one, two\r\n\r\n";
        raw.send(request.replacen("\r\n\r\n", offer, 1).as_bytes());
        let head = ACCEPTED.replacen("\r\n\r\n", "\r\nSec-WebSocket-Protocol: one\r\n\r\n", 1);
        assert_eq!(raw.read(head.len()), head.as_bytes());
        assert_eq!(raw.frame(), (0x81, greeting.into()));
        raw.send(&masked(0x1, b"?"));
        assert_eq!(raw.frame(), (0x81, format!("x={path}").into()));
    }
    Raw::open(address).round_trip();
    remote.shut_down();
    thread.join().unwrap().unwrap();
}
