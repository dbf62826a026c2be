//! The syntax of a head (RFC 9112 §2 to §5), and peers that use another protocol: H13 to H15, H20.

use super::*;

#[test]
fn h13_lines_end_with_crlf_and_nothing_else() {
    // Each byte is refused as soon as it arrives, so the error contains its own index.
    for (head, offset) in [
        ("GET / HTTP/1.1\nHost: a\r\n\r\n", 14),
        ("GET / HTTP/1.1\r\nHost: a\n\r\n", 23),
        ("GET / HTTP/1.1\r\nHost: a\r\n\n", 25),
        ("GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", 24),
        ("GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", 24),
        ("GET / HTTP/1.1\r\nHost: a\r\n\rb", 26),
        ("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 23),
        ("GET / HTTP/1.1\r\nHost: a\u{1B}\r\n\r\n", 23),
        ("GET / HTTP/1.1\r\nHost: a\u{7F}\r\n\r\n", 23),
        ("GET / HTTP/1.1\r\n\0: a\r\n\r\n", 16),
        ("GET /\0 HTTP/1.1\r\n\r\n", 5),
    ] {
        refuses(
            head,
            "400 Bad Request",
            &format!("invalid byte in the head at {offset}"),
        );
    }
}

#[test]
fn h13_folded_lines_are_refused() {
    for fold in [" folded", "\tfolded", " ", " a: b"] {
        refuses(
            with_line(format!("X: a\r\n{fold}")),
            "400 Bad Request",
            &format!("invalid byte in the head at {}", VALID.len() + 4),
        );
    }
    refuses(
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "400 Bad Request",
        "invalid byte in the head at 16",
    );
}

#[test]
fn h13_header_names_are_tokens_up_to_their_colon() {
    for line in [
        "X : a",
        "X\t: a",
        "X",
        ": a",
        "X Y: a",
        "X(: a",
        "X\"Y: a",
        "\u{E9}: a",
        "X\u{E9}: a",
    ] {
        refuses(
            with_line(line),
            "400 Bad Request",
            "a header has an invalid name",
        );
    }
}

#[test]
fn h13_values_may_be_empty_or_contain_tabs_and_non_ascii_bytes() {
    for line in [
        &b"X:"[..],
        b"X: ",
        b"X: a\tb",
        b"X: \xFF\xE9",
        b"!#$%&'*+-.^_`|~: \"();,\"",
    ] {
        accepts(with_line(line));
    }
}

#[test]
fn h13_one_empty_line_may_precede_a_request() {
    accepts(["\r\n", VALID].concat());
    refuses(
        ["\r\n\r\n", VALID].concat(),
        "400 Bad Request",
        "invalid byte in the head at 2",
    );
    refuses(
        ["\n", VALID].concat(),
        "400 Bad Request",
        "invalid byte in the head at 0",
    );
    refuses(
        ["\r", VALID].concat(),
        "400 Bad Request",
        "invalid byte in the head at 1",
    );
    refuses(
        [" ", VALID].concat(),
        "400 Bad Request",
        "invalid byte in the head at 0",
    );
}

#[test]
fn h13_a_request_line_is_three_words_with_one_space_between() {
    for line in [
        "GET",
        "GET ",
        "GET /",
        "GET / ",
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET\t/\tHTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET / HTTP/1.1 HTTP/1.1",
        "GET / HTTP/1.10",
        "GET / HTTP/11",
        "GET / http/1.1",
        "GET / XTTP/1.1",
        "G(T / HTTP/1.1",
    ] {
        let head = edited("GET /chat HTTP/1.1", line);
        refuses(head, "400 Bad Request", "the first line is malformed");
    }
}

#[test]
fn h14_non_ascii_bytes_are_refused_or_ignored() {
    let refusals: [(&[u8], &str); 7] = [
        (
            b"Sec-WebSocket-Protocol: ch\xE9t",
            "the Sec-WebSocket-Protocol header is malformed at element 0",
        ),
        (
            b"Sec-WebSocket-Protocol: chat, \xFF",
            "the Sec-WebSocket-Protocol header is malformed at element 1",
        ),
        (
            b"Sec-WebSocket-Extensions: \xC3\xA9",
            "the Sec-WebSocket-Extensions header is malformed at byte 0",
        ),
        (
            b"Sec-WebSocket-Extensions: a; b=\"\xFF\"",
            "the Sec-WebSocket-Extensions header is malformed at byte 6",
        ),
        (
            b"Content-Length: \xD9\xA5",
            "the Content-Length header is invalid",
        ),
        (
            b"Transfer-Encoding: \xFF",
            "the Transfer-Encoding header is invalid",
        ),
        (b"X\xFF: a", "a header has an invalid name"),
    ];
    for (line, message) in refusals {
        refuses(with_line(line), "400 Bad Request", message);
    }
    let origin = with_line(b"Origin: http://ex\xE4mple.com");
    refuses(origin, "403 Forbidden", "the origin is not allowed");
    for line in [
        &b"Connection: \xFF"[..],
        b"Upgrade: \xC3\x28",
        b"Cookie: a=\xF0\x9F",
    ] {
        accepts(with_line(line));
    }
    let host = edited("Host: example.com", "Host: ex\u{E4}mple.com");
    refuses(host, "400 Bad Request", "the Host header is invalid");
}

#[test]
fn h15_only_http_1_1_can_switch_protocols() {
    for version in [
        "HTTP/1.0", "HTTP/0.9", "HTTP/9.9", "HTTP/2.0", "HTTP/1.2", "HTTP/3.0",
    ] {
        refuses(
            edited("HTTP/1.1", version),
            "505 HTTP Version Not Supported",
            "the WebSocket handshake requires HTTP/1.1",
        );
    }
    // HTTP/0.9 itself has neither a version nor headers.
    refuses(
        "GET /\r\n\r\n",
        "400 Bad Request",
        "the first line is malformed",
    );
}

#[test]
fn h15_a_page_may_be_requested_with_http_1_0() {
    let request = request("GET /page HTTP/1.0\r\n\r\n");
    assert_eq!(
        (request.version(), request.host()),
        (HttpVersion::Http10, None)
    );
}

#[test]
fn h20_http_2_is_refused_at_the_end_of_its_preface() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x12\x04\x00\x00\x00\x00\x00";
    refuses(
        preface,
        "400 Bad Request",
        "this port does not accept HTTP/2",
    );
    // The first half of the preface is enough.
    refuses(
        &preface[..18],
        "400 Bad Request",
        "this port does not accept HTTP/2",
    );
}

#[test]
fn h20_a_client_hello_is_refused_at_its_first_byte() {
    refuses(
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03",
        "400 Bad Request",
        "this port does not accept TLS",
    );
    refuses(b"\x16", "400 Bad Request", "this port does not accept TLS");
}

#[test]
fn h20_proxy_headers_are_refused() {
    refuses(
        ["PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", VALID].concat(),
        "400 Bad Request",
        "the first line is malformed",
    );
    refuses(
        b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0C",
        "400 Bad Request",
        "invalid byte in the head at 2",
    );
    for noise in [
        &b"\x00"[..],
        b"\xFF\xFF",
        b"{\"a\":1}",
        b"<policy-file-request/>\0",
    ] {
        refuses(noise, "400 Bad Request", "invalid byte in the head at 0");
    }
}
