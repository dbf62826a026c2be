//! Offers and responses: parameters that may be negotiated, and those that must not be (RFC 7692
//! §5, §7.1).

use super::{HELLO, OFFER, answers, compressed, deflated, hello, offering};
use crate::{
    case::{Expect, Row},
    catalogue::{Wire, client, handshake, text},
    run::request,
};

pub(super) fn windows(wire: Wire) -> Row {
    let offers = [
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=15",
        "permessage-deflate; client_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=15",
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
        "permessage-deflate; server_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_max_window_bits=\"10\"",
        "permessage-deflate; server_max_window_bits=7, permessage-deflate",
        "x-unknown, permessage-deflate",
    ];
    let frames = [
        compressed(0x1, HELLO),
        compressed(0x1, deflated(wire, &[b'a'; 5_000])),
    ];
    let both = [hello(), text([b'a'; 5_000])];
    let case = |(index, offer): (usize, &'static str)| {
        let name = format!("offer-{index}");
        offering(offer, wire.case(name, &frames, answers(&both)))
    };
    Row {
        id: "X05",
        title: "offers with all parameters",
        section: "RFC 7692 §7.1",
        required: "accept or decline; what is accepted has to work",
        cases: offers.into_iter().enumerate().map(case).collect(),
    }
}

/// Responses that a client must reject, whatever it has offered.
pub(super) fn bad_answers() -> Row {
    let answers = [
        (
            "client-bits-without-value",
            "permessage-deflate; client_max_window_bits",
        ),
        (
            "client-bits-7",
            "permessage-deflate; client_max_window_bits=7",
        ),
        (
            "client-bits-16",
            "permessage-deflate; client_max_window_bits=16",
        ),
        (
            "client-bits-abc",
            "permessage-deflate; client_max_window_bits=abc",
        ),
        (
            "server-bits-without-value",
            "permessage-deflate; server_max_window_bits",
        ),
        (
            "server-bits-7",
            "permessage-deflate; server_max_window_bits=7",
        ),
        (
            "server-bits-16",
            "permessage-deflate; server_max_window_bits=16",
        ),
        (
            "server-bits-08",
            "permessage-deflate; server_max_window_bits=08",
        ),
        ("unknown", "permessage-deflate; unknown"),
        (
            "takeover-with-value",
            "permessage-deflate; server_no_context_takeover=1",
        ),
        (
            "takeover-twice",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        ),
        ("two-answers", "permessage-deflate, permessage-deflate"),
        ("another-beside", "permessage-deflate, x-unknown"),
    ];
    let case = |(name, answer): (&str, &str)| client::agreeing(name, answer);
    Row {
        id: "X06",
        title: "responses to an offer that are malformed, or accept what was not offered",
        section: "RFC 7692 §5.1, §7, §7.1; RFC 6455 §4.1",
        required: "fail the connection, and send nothing",
        cases: answers.into_iter().map(case).collect(),
    }
}

/// Offers that a server must decline.
pub(super) fn bad_offers() -> Row {
    let offers = [
        ("client-bits-7", "client_max_window_bits=7"),
        ("client-bits-16", "client_max_window_bits=16"),
        ("client-bits-08", "client_max_window_bits=08"),
        ("client-bits-abc", "client_max_window_bits=abc"),
        ("server-bits-7", "server_max_window_bits=7"),
        ("server-bits-16", "server_max_window_bits=16"),
        ("server-bits-without-value", "server_max_window_bits"),
        ("server-bits-010", "server_max_window_bits=010"),
        ("unknown", "unknown"),
        ("takeover-with-value", "server_no_context_takeover=1"),
        (
            "takeover-twice",
            "server_no_context_takeover; server_no_context_takeover",
        ),
        (
            "client-bits-twice",
            "client_max_window_bits; client_max_window_bits=10",
        ),
    ];
    let case = |(name, parameters): (&str, &str)| {
        let line = format!("Sec-WebSocket-Extensions: {OFFER}; {parameters}\r\n");
        handshake::raw(name, request(&line), Expect::Decline)
    };
    Row {
        id: "X06",
        title: "offers that are malformed",
        section: "RFC 7692 §7, §7.1",
        required: "decline the offer",
        cases: offers.into_iter().map(case).collect(),
    }
}
