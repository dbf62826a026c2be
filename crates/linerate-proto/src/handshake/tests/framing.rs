//! Bodies of requests and the bytes after them (RFC 9112 §6, RFC 9110 §7.8): H06 to H09.

use super::*;

#[test]
fn h06_an_upgrade_with_a_body_is_refused_and_the_body_not_parsed() {
    const SMUGGLED: &str = "GET /admin HTTP/1.1\r\nHost: example.com\r\n\r\n";
    for framing in [
        "Content-Length: 42",
        "Transfer-Encoding: chunked",
        "transfer-encoding: CHUNKED",
    ] {
        let mut input = with_line(framing);
        input.extend_from_slice(SMUGGLED.as_bytes());
        refuses(
            input,
            "400 Bad Request",
            "an upgrade request must not have a body",
        );
    }
    accepts(with_line("Content-Length: 0"));
}

#[test]
fn h06_other_requests_report_how_their_body_is_framed() {
    for (framing, body) in [
        ("", RequestBody::None),
        ("Content-Length: 0\r\n", RequestBody::Length(0)),
        ("Content-Length: 0018\r\n", RequestBody::Length(18)),
        (
            "Content-Length: 18446744073709551615\r\n",
            RequestBody::Length(u64::MAX),
        ),
        ("Transfer-Encoding: chunked\r\n", RequestBody::Chunked),
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n");
        assert_eq!(request(head).body(), body);
    }
}

#[test]
fn h07_bytes_after_the_request_are_never_parsed_as_http() {
    for pipelined in [
        "GET /admin HTTP/1.1\r\nHost: example.com\r\n\r\n",
        VALID,
        "\r\n\r\n",
        "\0\r",
    ] {
        let input = [VALID, pipelined].concat();
        let expected = Outcome::Accepted {
            wire: ACCEPTED.into(),
            rest: pipelined.into(),
        };
        assert_eq!(outcome(input.as_bytes()), expected);
    }
}

#[test]
fn h07_a_refused_request_is_answered_once_whatever_follows() {
    let input = [&edited("Version: 13", "Version: 8"), VALID, VALID].concat();
    refuses(
        input,
        "426 Upgrade Required",
        "the Sec-WebSocket-Version header must be 13",
    );
}

#[test]
fn h08_frames_in_the_segment_of_the_request_are_kept() {
    let frames = b"\x81\x84\x00\x00\x00\x00Spam\x89\x80\x01\x02\x03\x04";
    let input = [VALID.as_bytes(), frames].concat();
    let expected = Outcome::Accepted {
        wire: ACCEPTED.into(),
        rest: frames.to_vec(),
    };
    assert_eq!(outcome(&input), expected);
}

#[test]
fn h09_lengths_that_two_parsers_could_read_differently_are_refused() {
    for value in [
        "",
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5;",
        "5,5",
        "5, 5",
        "5.0",
        "18446744073709551616",
        "\u{FF15}",
    ] {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {value}\r\n\r\n");
        refuses(
            head,
            "400 Bad Request",
            "the Content-Length header is invalid",
        );
        let head = with_line(format!("Content-Length: {value}"));
        refuses(
            head,
            "400 Bad Request",
            "the Content-Length header is invalid",
        );
    }
}

#[test]
fn h09_transfer_codings_other_than_one_chunked_are_refused() {
    for framing in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 0",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: chunked;a=\"b\"",
        "Transfer-Encoding:",
        "Transfer-Encoding: \u{B}chunked",
    ] {
        let message = match framing.contains('\u{B}') {
            true => "invalid byte in the head at 171",
            false => "the Transfer-Encoding header is invalid",
        };
        refuses(with_line(framing), "400 Bad Request", message);
    }
    refuses(
        with_line("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        "400 Bad Request",
        "the Transfer-Encoding header appears twice",
    );
    refuses(
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "400 Bad Request",
        "the Transfer-Encoding header is invalid",
    );
}
