//! Properties for any input: no panic, and a response that neither depends on how the bytes were
//! split nor contains bytes that the peer sent.

use alloc::vec;

use proptest::prelude::*;

use super::*;

/// Generates parts of heads, so that random input gets further than its first byte.
fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::sample::select(vec![
        "GET ",
        "/",
        " HTTP/1.1",
        "\r\n",
        "\r",
        "\n",
        ": ",
        ":",
        ",",
        ";",
        "=",
        "\"",
        "\\",
        " ",
        "\t",
        "Host",
        "a.b:80",
        "Upgrade",
        "websocket",
        "Connection",
        "Sec-WebSocket-Key",
        "13",
        "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version",
        "Sec-WebSocket-Protocol",
        "Sec-WebSocket-Extensions",
        "Origin",
        "http://",
        "Content-Length",
        "0",
        "\u{E4}",
        "\0",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat().into_bytes())
}

/// Generates changes to a valid message: some bytes replaced with others.
fn mutations() -> impl Strategy<Value = Vec<(prop::sample::Index, usize, Vec<u8>)>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..4);
    prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, bytes), 1..4)
}

fn mutated(message: &str, mutations: &[(prop::sample::Index, usize, Vec<u8>)]) -> Vec<u8> {
    let mut message = message.as_bytes().to_vec();
    for (index, removed, added) in mutations {
        let start = index.index(message.len());
        let end = message.len().min(start + removed);
        message.splice(start..end, added.iter().copied());
    }
    message
}

/// Feeds a server the input whole, byte by byte and split in two, which must all have the same
/// outcome.
fn outcome_cut(input: &[u8], cut: prop::sample::Index) -> Outcome {
    let limits = HandshakeLimits::default();
    let whole = serve([input], limits);
    let (head, tail) = input.split_at(cut.index(input.len() + 1));
    assert_eq!(
        serve([head, tail], limits),
        whole,
        "{}",
        input.escape_ascii()
    );
    assert_eq!(
        serve(input.chunks(1), limits),
        whole,
        "{}",
        input.escape_ascii()
    );
    whole
}

/// Feeds a client the input split in two, and describes the outcome.
fn open(input: &[u8], at: usize) -> String {
    let mut client = ClientHandshake::new("example.com", "/", *b"the sample nonce").unwrap();
    let (head, tail) = input.split_at(at);
    match client
        .handle_input(head)
        .transpose()
        .or_else(|| client.handle_input(tail).transpose())
    {
        None => "waiting".into(),
        Some(Ok((negotiated, _))) => format!("{:?}", negotiated.headers()),
        Some(Err(error)) => format!("{error:?} {error}"),
    }
}

proptest! {
    #[test]
    fn random_bytes_are_answered_the_same_however_they_are_split(
        input in prop::collection::vec(any::<u8>(), 0..200),
        cut in any::<prop::sample::Index>(),
    ) {
        outcome_cut(&input, cut);
    }

    #[test]
    fn random_heads_are_answered_the_same_however_they_are_split(
        input in head_bytes(),
        cut in any::<prop::sample::Index>(),
    ) {
        outcome_cut(&input, cut);
    }

    #[test]
    fn random_changes_to_a_request_are_answered_the_same_however_they_are_cut(
        mutations in mutations(),
        cut in any::<prop::sample::Index>(),
    ) {
        outcome_cut(&mutated(VALID, &mutations), cut);
    }

    #[test]
    fn random_valid_headers_are_answered_the_same_however_they_are_split(
        name in prop::sample::select(vec![
            "Host", "Origin", "Connection", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions",
            "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Content-Length", "Transfer-Encoding",
        ]),
        value in prop::collection::vec(prop::sample::select(b"ab1;=\",\\ \t:/[].\xFF".to_vec()), 0..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let line = [name.as_bytes(), b": ", &value].concat();
        outcome_cut(&with_line(line), cut);
    }

    #[test]
    fn random_changes_to_a_response_are_judged_the_same_however_they_are_split(
        mutations in mutations(),
        cut in any::<prop::sample::Index>(),
    ) {
        let input = mutated(ACCEPTED, &mutations);
        prop_assert_eq!(open(&input, 0), open(&input, cut.index(input.len() + 1)));
    }

    #[test]
    fn refusals_never_repeat_what_the_peer_sent(value in "[xyzXYZ]{12,40}") {
        for line in ["Host: ", "Origin: ", "Sec-WebSocket-Key: ", "Content-Length: ", ""] {
            let head = with_line(format!("{line}{value}"));
            match serve([&head[..]], HandshakeLimits::default()) {
                Outcome::Refused { wire } => prop_assert!(!wire.contains(&value)),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn clients_and_servers_agree_on_every_key(key in any::<[u8; 16]>()) {
        let mut client = ClientHandshake::new("example.com", "/", key).unwrap();
        let mut wire = Vec::new();
        client.encode(&mut wire);
        let answer = serve([&wire[..]], HandshakeLimits::default());
        let Outcome::Accepted { wire, .. } = answer else { panic!("{answer:?}") };
        prop_assert!(client.handle_input(wire.as_bytes()).unwrap().is_some());
    }
}
