//! Negotiation of compression in the opening handshake (RFC 7692 §7.1).

use linerate_proto::{
    deflate::{Agreement, Budget, Context, Deflate},
    handshake::{ClientHandshake, HandshakeError, HandshakeLimits, Negotiated, RequestReader},
};
use proptest::prelude::*;

fn request(extensions: &[&str]) -> String {
    let mut request = "GET / HTTP/1.1\r\nHost: example.com\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        .to_owned();
    for line in extensions {
        request += &format!("Sec-WebSocket-Extensions: {line}\r\n");
    }
    request + "\r\n"
}

/// Returns a server's response to these offers, and its agreement.
fn answer(offers: &[&str], options: &Deflate) -> Option<(Agreement, String)> {
    answer_to(&request(offers), options)
}

fn answer_to(request: &str, options: &Deflate) -> Option<(Agreement, String)> {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let (request, _) = reader
        .handle_input(request.as_bytes())
        .expect("the request is well-formed")
        .expect("the head is whole");
    let upgrade = request.websocket().expect("it is a handshake");
    let acceptance = upgrade.accept().with_deflate(options);
    let mut headers = acceptance.headers();
    let header = headers.find(|(name, _)| *name == "Sec-WebSocket-Extensions");
    let header = header.map(|(_, value)| value.to_owned());
    assert_eq!(acceptance.deflate().is_some(), header.is_some());
    Some((acceptance.deflate()?, header?))
}

fn handshake(options: Deflate) -> ClientHandshake {
    let key = *b"the sample nonce";
    let handshake =
        ClientHandshake::new("example.com", "/", key).expect("host and target are valid");
    handshake.with_deflate(options)
}

/// Returns the agreement that a client derives from a server's response.
fn judged(answer: &str, options: Deflate) -> Result<Negotiated, HandshakeError> {
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n{answer}\r\n"
    );
    let judged = handshake(options).handle_input(response.as_bytes())?;
    Ok(judged.expect("the head is whole").0)
}

fn extension(answer: &str) -> String {
    format!("Sec-WebSocket-Extensions: permessage-deflate{answer}\r\n")
}

fn context(window_bits: u8, takeover: bool) -> Context {
    Context {
        window_bits,
        takeover,
    }
}

#[test]
fn a_server_answers_each_parameter_as_the_rfc_requires() {
    let options = Deflate::default();
    let (small, none) = (context(12, true), context(12, false));
    for (offer, answered, sending, receiving) in [
        (
            "",
            "; client_no_context_takeover",
            small,
            context(15, false),
        ),
        (
            "; client_max_window_bits",
            "; client_max_window_bits=12",
            small,
            small,
        ),
        (
            "; client_max_window_bits=10",
            "; client_max_window_bits=10",
            small,
            context(10, true),
        ),
        (
            "; client_max_window_bits=15",
            "; client_max_window_bits=12",
            small,
            small,
        ),
        (
            "; server_no_context_takeover; client_max_window_bits",
            "; server_no_context_takeover; client_max_window_bits=12",
            none,
            small,
        ),
        (
            "; client_max_window_bits; client_no_context_takeover",
            "; client_no_context_takeover; client_max_window_bits=12",
            small,
            none,
        ),
        (
            "; server_max_window_bits=10; client_max_window_bits",
            "; server_max_window_bits=10; client_max_window_bits=12",
            context(10, true),
            small,
        ),
        (
            "; server_max_window_bits=\"15\"; client_max_window_bits",
            "; server_max_window_bits=12; client_max_window_bits=12",
            small,
            small,
        ),
    ] {
        let (agreement, header) =
            answer(&[&format!("permessage-deflate{offer}")], &options).unwrap();
        assert_eq!(header, format!("permessage-deflate{answered}"), "{offer}");
        assert_eq!(agreement, Agreement { sending, receiving }, "{offer}");
    }
}

#[test]
fn x05_a_window_of_8_bits_is_answered_with_8_bits() {
    let offer = "permessage-deflate; server_max_window_bits=8; client_max_window_bits=8";
    let (agreement, header) = answer(&[offer], &Deflate::default()).unwrap();
    assert_eq!(header, offer);
    assert_eq!(agreement.sending, context(8, true));
    let agreed = judged(&extension("; client_max_window_bits=8"), Deflate::default());
    assert_eq!(agreed.unwrap().deflate().unwrap().sending, context(8, true));
}

#[test]
fn invalid_offers_are_ignored() {
    let options = Deflate::default();
    for nonsense in [
        "server_max_window_bits",
        "server_max_window_bits=7",
        "server_max_window_bits=16",
        "server_max_window_bits=08",
        "server_max_window_bits=+8",
        "server_max_window_bits=abc",
        "client_max_window_bits=7",
        "client_max_window_bits=16",
        "client_max_window_bits=1000000000000000000000",
        "client_max_window_bits; client_max_window_bits",
        "server_max_window_bits=9; server_max_window_bits=9",
        "server_no_context_takeover=1",
        "client_no_context_takeover=true",
        "server_no_context_takeover; server_no_context_takeover",
        "mystery",
        "mystery=1",
    ] {
        let nonsense = format!("permessage-deflate; {nonsense}");
        assert_eq!(answer(&[&nonsense], &options), None, "{nonsense}");
        // A valid offer after it, in the same line or in a separate one, is accepted.
        let good = "permessage-deflate; client_max_window_bits";
        let expected = answer(&[good], &options);
        assert!(expected.is_some());
        let line = format!("x-unknown, {nonsense}, {good}");
        assert_eq!(answer(&[&line], &options), expected);
        assert_eq!(answer(&[&nonsense, good], &options), expected);
    }
    assert_eq!(answer(&[], &options), None);
    assert_eq!(
        answer(&["permessage-bzip2", "x-webkit-deflate-frame"], &options),
        None
    );
}

#[test]
fn a_client_offers_its_preference_and_then_a_minimal_fallback() {
    let line = |options| {
        let mut request = Vec::new();
        handshake(options).encode(&mut request);
        let request = String::from_utf8(request).unwrap();
        let mut lines = request.lines();
        let found = lines.find_map(|line| line.strip_prefix("Sec-WebSocket-Extensions: "));
        found.unwrap().to_owned()
    };
    let offered = "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12, \
        permessage-deflate; client_max_window_bits=12";
    assert_eq!(line(Deflate::default()), offered);
    let mut simple = Deflate::default();
    simple.window_bits = 15;
    simple.peer_window_bits = 15;
    simple.takeover = false;
    simple.peer_takeover = false;
    let offered = "permessage-deflate; server_no_context_takeover; client_no_context_takeover; \
        client_max_window_bits";
    assert_eq!(line(simple), offered);
}

#[test]
fn a_client_accepts_every_valid_answer() {
    for (answer, sending, receiving) in [
        ("", context(12, true), context(15, true)),
        (
            "; server_no_context_takeover",
            context(12, true),
            context(15, false),
        ),
        (
            "; client_no_context_takeover",
            context(12, false),
            context(15, true),
        ),
        (
            "; server_max_window_bits=9",
            context(12, true),
            context(9, true),
        ),
        (
            "; client_max_window_bits=9",
            context(9, true),
            context(15, true),
        ),
        (
            "; client_max_window_bits=15",
            context(12, true),
            context(15, true),
        ),
    ] {
        let agreed = judged(&extension(answer), Deflate::default()).unwrap();
        assert_eq!(
            agreed.deflate(),
            Some(Agreement { sending, receiving }),
            "{answer}"
        );
    }
    assert_eq!(judged("", Deflate::default()).unwrap().deflate(), None);
}

#[test]
fn x06_a_client_fails_on_an_invalid_answer() {
    let invalid = |name| HandshakeError::ExtensionParameterInvalid { name };
    for (answer, error) in [
        (
            "; server_max_window_bits=7",
            invalid("server_max_window_bits"),
        ),
        (
            "; server_max_window_bits=16",
            invalid("server_max_window_bits"),
        ),
        (
            "; server_max_window_bits=99999999999999999999",
            invalid("server_max_window_bits"),
        ),
        (
            "; server_max_window_bits",
            invalid("server_max_window_bits"),
        ),
        (
            "; client_max_window_bits",
            invalid("client_max_window_bits"),
        ),
        (
            "; client_max_window_bits=0",
            invalid("client_max_window_bits"),
        ),
        (
            "; client_max_window_bits=16",
            invalid("client_max_window_bits"),
        ),
        (
            "; server_no_context_takeover=0",
            invalid("server_no_context_takeover"),
        ),
        ("; mystery", invalid("unknown")),
        (", permessage-deflate", HandshakeError::ExtensionUnoffered),
        (", other", HandshakeError::ExtensionUnoffered),
    ] {
        let judged = judged(&extension(answer), Deflate::default());
        assert_eq!(judged.err(), Some(error), "{answer}");
    }
    let other = judged("Sec-WebSocket-Extensions: other\r\n", Deflate::default());
    assert_eq!(other.err(), Some(HandshakeError::ExtensionUnoffered));
    let mut frugal = Deflate::default();
    frugal.peer_takeover = false;
    let judged = judged(&extension(""), frugal);
    assert_eq!(judged.err(), Some(invalid("server_no_context_takeover")));
}

#[test]
fn x12_without_memory_in_the_budget_the_peer_keeps_no_context_either() {
    static BUDGET: Budget = Budget::new(4_095);
    let mut options = Deflate::default();
    options.budget = &BUDGET;
    let (agreement, header) =
        answer(&["permessage-deflate; client_max_window_bits"], &options).unwrap();
    assert_eq!(agreement.receiving, context(12, false));
    assert_eq!(
        header,
        "permessage-deflate; client_no_context_takeover; client_max_window_bits=12"
    );
}

fn options() -> impl Strategy<Value = Deflate> {
    (8_u8..=15, 8_u8..=15, any::<bool>(), any::<bool>()).prop_map(
        |(window_bits, peer_window_bits, takeover, peer_takeover)| {
            let mut deflate = Deflate::default();
            deflate.window_bits = window_bits;
            deflate.peer_window_bits = peer_window_bits;
            deflate.takeover = takeover;
            deflate.peer_takeover = peer_takeover;
            deflate
        },
    )
}

proptest! {
    #[test]
    fn both_ends_interpret_the_agreement_identically(client in options(), server in options()) {
        let mut request = Vec::new();
        handshake(client).encode(&mut request);
        let (serves, header) = answer_to(core::str::from_utf8(&request).unwrap(), &server).unwrap();
        let negotiated = judged(&format!("Sec-WebSocket-Extensions: {header}\r\n"), client).unwrap();
        let asks = negotiated.deflate().unwrap();
        // Each side may send with a smaller window than the other accepts, never with a larger one.
        for (sending, receiving) in [(serves.sending, asks.receiving), (asks.sending, serves.receiving)] {
            prop_assert!(sending.window_bits <= receiving.window_bits);
            prop_assert!(receiving.takeover || !sending.takeover);
        }
        prop_assert!(serves.sending.window_bits <= server.window_bits);
        prop_assert!(asks.sending.window_bits <= client.window_bits);
    }
}
