//! Subprotocols and extensions (RFC 6455 §4.2.2, §9.1): H18 and H19.

use super::*;

/// Asserts that a request with this header line is accepted with this subprotocol.
fn agrees_on(line: &str, subprotocol: Option<&str>) {
    let wire = match subprotocol {
        None => ACCEPTED.into(),
        Some(chosen) => {
            let end = format!("=\r\nSec-WebSocket-Protocol: {chosen}\r\n\r\n");
            ACCEPTED.replacen("=\r\n\r\n", &end, 1)
        }
    };
    assert_eq!(
        outcome(&with_line(line)),
        Outcome::Accepted {
            wire,
            rest: Vec::new()
        },
        "{line}"
    );
}

/// Limits wide enough for a head of `bytes` bytes, so that anything slower than linear time would
/// not finish.
fn limits_for(bytes: usize) -> HandshakeLimits {
    let head_bytes_max = bytes + VALID.len() + 100;
    HandshakeLimits {
        head_bytes_max,
        ..HandshakeLimits::default()
    }
}

#[test]
fn h18_the_first_common_subprotocol_is_chosen_or_none() {
    for (line, subprotocol) in [
        ("Sec-WebSocket-Protocol: chat", Some("chat")),
        ("Sec-WebSocket-Protocol: soap , chat", Some("chat")),
        ("Sec-WebSocket-Protocol:\t,soap,,\tchat\t,", Some("chat")),
        (
            "Sec-WebSocket-Protocol: soap\r\nsec-websocket-protocol: chat",
            Some("chat"),
        ),
        ("Sec-WebSocket-Protocol: soap, wamp", None),
        ("Sec-WebSocket-Protocol: Chat, chat2, cha", None),
    ] {
        agrees_on(line, subprotocol);
    }
}

#[test]
fn h18_the_server_chooses_only_what_the_client_offered() {
    let request = request(with_line("Sec-WebSocket-Protocol: a, b, c"));
    let upgrade = request.websocket().unwrap();
    assert_eq!(upgrade.subprotocols(), ["a", "b", "c"]);
    assert_eq!(upgrade.choose_subprotocol(&["x", "c", "a"]), Some("c"));
    assert_eq!(upgrade.choose_subprotocol(&["x"]), None);
    assert_eq!(upgrade.choose_subprotocol(&[]), None);
    assert_eq!(
        upgrade.accept().with_subprotocol("x").unwrap_err(),
        BuildError::SubprotocolNotOffered
    );
    let acceptance = upgrade.accept().with_subprotocol("a").unwrap();
    assert_eq!(
        acceptance.with_subprotocol("b").unwrap().subprotocol(),
        Some("b")
    );
}

#[test]
fn h18_offers_that_are_not_tokens_or_repeated_are_refused() {
    for (value, message) in [
        (
            "",
            "the Sec-WebSocket-Protocol header is malformed at element 0",
        ),
        (
            " , ,",
            "the Sec-WebSocket-Protocol header is malformed at element 0",
        ),
        (
            "a b",
            "the Sec-WebSocket-Protocol header is malformed at element 0",
        ),
        (
            "a, \"chat\"",
            "the Sec-WebSocket-Protocol header is malformed at element 1",
        ),
        (
            "chat;q=1",
            "the Sec-WebSocket-Protocol header is malformed at element 0",
        ),
        (
            "a, b, a",
            "subprotocol 2 in the list repeats an earlier one",
        ),
        (
            "chat,chat",
            "subprotocol 1 in the list repeats an earlier one",
        ),
    ] {
        let head = with_line(format!("Sec-WebSocket-Protocol: {value}"));
        refuses(head, "400 Bad Request", message);
    }
}

#[test]
fn h18_subprotocols_are_accepted_up_to_their_limit() {
    let offers = |count: usize| {
        let names: Vec<_> = (0..count).map(|index| format!("p{index}")).collect();
        format!("Sec-WebSocket-Protocol: {}", names.join(", "))
    };
    agrees_on(&offers(32), None);
    refuses(
        with_line(offers(33)),
        "431 Request Header Fields Too Large",
        "33 subprotocols offered, at most 32 allowed",
    );
}

#[test]
fn h18_a_list_of_100_kb_is_refused_or_scanned_once() {
    let list = format!("Sec-WebSocket-Protocol: {}", "a,".repeat(50_000));
    refuses(
        with_line(&list),
        "431 Request Header Fields Too Large",
        "a head of 16385 bytes or more, at most 16384 allowed",
    );
    let separators = format!("Sec-WebSocket-Protocol: {}a", ", ".repeat(50_000));
    let head = with_line(&separators);
    let request = serve([&head[..]], limits_for(separators.len()));
    assert_eq!(
        request,
        Outcome::Accepted {
            wire: ACCEPTED.into(),
            rest: Vec::new()
        }
    );
}

#[test]
fn h19_offers_are_parsed_and_declined() {
    for value in [
        "permessage-deflate",
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=08",
        "permessage-deflate; client_max_window_bits=16",
        "permessage-deflate; client_max_window_bits=abc",
        "permessage-deflate; client_max_window_bits=\"10\"",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate,permessage-deflate;a;b=c , x-unknown ;d = e",
        ",, a,,",
        "a; b=\"c\\d\"",
        "a\r\nSec-WebSocket-Extensions: b; c=d",
    ] {
        accepts(with_line(format!("Sec-WebSocket-Extensions: {value}")));
    }
}

#[test]
fn h19_offers_are_split_with_quotes_and_escapes_removed() {
    let request = request(with_line(
        "Sec-WebSocket-Extensions: a; b ; c=d; e=\"f\"; c=\"\\g\\h\", i\r\n\
         Sec-WebSocket-Extensions: j;k=\"l\\m\"",
    ));
    let upgrade = request.websocket().unwrap();
    let offers: Vec<(&str, Vec<_>)> = upgrade
        .extensions()
        .iter()
        .map(|offer| (offer.name(), offer.parameters().collect()))
        .collect();
    assert_eq!(offers[0].0, "a");
    assert_eq!(
        offers[0].1,
        [
            ("b", None),
            ("c", Some("d")),
            ("e", Some("f")),
            ("c", Some("gh"))
        ]
    );
    assert_eq!(
        offers[1..],
        [("i", Vec::new()), ("j", [("k", Some("lm"))].to_vec())]
    );
}

#[test]
fn h19_a_violation_of_the_grammar_fails_the_handshake() {
    for (value, offset) in [
        ("", 0),
        (" ,", 1),
        (";", 0),
        ("a;", 2),
        ("a;;b", 2),
        ("a b", 2),
        ("a; b=", 5),
        ("a; b==c", 5),
        ("a; b=c d", 7),
        ("a; =b", 3),
        ("a=b", 1),
        ("a; b=\"\"", 6),
        ("a; b=\"c", 7),
        ("a; b=\"c\\", 8),
        ("a; b=\"c\\\"", 9),
        ("a; b=\"c d\"", 7),
        ("a; b=\"c,d\"", 7),
        ("a; b=\"c\\ d\"", 10),
        ("a; b=\"\\\"\"", 8),
        ("a; b=\"c\"d", 8),
        ("\"a\"", 0),
        ("a/b", 1),
        ("permessage-deflate; client_max_window_bits=\"\"", 44),
    ] {
        refuses(
            with_line(format!("Sec-WebSocket-Extensions: {value}")),
            "400 Bad Request",
            &format!("the Sec-WebSocket-Extensions header is malformed at byte {offset}"),
        );
    }
}

#[test]
fn h19_offers_and_parameters_are_taken_up_to_their_limits() {
    let line = |value: &str| with_line(format!("Sec-WebSocket-Extensions: {value}"));
    accepts(line(&["x"; 32].join(",")));
    refuses(
        line(&["x"; 33].join(",")),
        "431 Request Header Fields Too Large",
        "33 extensions offered, at most 32 allowed",
    );
    accepts(line(&["x; a; b; c; d"; 32].join(", ")));
    refuses(
        line(&format!("{}; e", ["x; a; b; c; d"; 32].join(", "))),
        "431 Request Header Fields Too Large",
        "129 extension parameters, at most 128 allowed",
    );
    let ten_thousand = ["x"; 10_000].join(",");
    let limits = limits_for(ten_thousand.len());
    refuses_within(
        line(&ten_thousand),
        limits,
        "431 Request Header Fields Too Large",
        "33 extensions offered, at most 32 allowed",
    );
}

#[test]
fn h19_a_value_of_a_megabyte_is_scanned_once() {
    // The parser's position only moves forward, so each of these takes a moment. If it moved back,
    // none of them would finish.
    const COUNT: usize = 500_000;
    for (value, is_accepted) in [
        (format!("a{}", ", ".repeat(COUNT)), true),
        (format!("a; b={}", "c".repeat(COUNT)), true),
        (format!("a; b=\"{}\"", "\\c".repeat(COUNT)), true),
        (format!("a; b=\"{}", "\\c".repeat(COUNT)), false),
        (format!("a; b=\"{}", "c".repeat(COUNT)), false),
        (format!("a{};", " \t".repeat(COUNT)), false),
    ] {
        let head = with_line(format!("Sec-WebSocket-Extensions: {value}"));
        let outcome = serve([&head[..]], limits_for(value.len()));
        match outcome {
            Outcome::Accepted { wire, .. } => assert!(is_accepted && wire == ACCEPTED),
            Outcome::Refused { wire } => {
                assert!(
                    !is_accepted && wire.contains(" Sec-WebSocket-Extensions header is malformed ")
                );
            }
            Outcome::Waiting => panic!("the head is whole"),
        }
    }
}
