//! Request targets and headers for one hop only (RFC 9112 §3.2, RFC 9110 §7.6.1): H21 and H22.

use super::*;

#[test]
fn h21_headers_named_in_connection_are_not_passed_on() {
    let head = edited(
        "Connection: Upgrade",
        "Connection: Upgrade, x-internal-auth\r\nX-Internal-Auth: admin\r\nTE: trailers\r\n\
         Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nCookie: id=7\r\nConnection: X-Other\r\n\
         x-other: a",
    );
    // We are the end of the hop: such a request opens a WebSocket, and the response repeats none of
    // these headers.
    accepts(&head);
    let request = request(&head);
    assert_eq!(request.header("x-internal-auth"), Some(&b"admin"[..]));
    let names: Vec<_> = request
        .headers()
        .end_to_end()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(
        names,
        [
            "Host",
            "Cookie",
            "Sec-WebSocket-Key",
            "Sec-WebSocket-Version"
        ]
    );
}

#[test]
fn h22_an_absolute_target_must_name_the_host_that_host_names() {
    for target in [
        "http://example.com/chat",
        "HTTP://EXAMPLE.COM/chat",
        "ws://example.com:80/chat",
        "http://example.com",
        "http://example.com?a=b",
    ] {
        accepts(edited("/chat", target));
    }
    accepts(edited("/chat", "wss://example.com:443/chat"));
    accepts(edited(
        "/chat HTTP/1.1\r\nHost: example.com",
        "http://127.0.0.1:8080/ HTTP/1.1\r\nHost: 127.0.0.1:8080",
    ));
    for target in [
        "http://evil.example/chat",
        "http://example.com:8080/chat",
        "https://example.com:80/chat",
        "http://example.com@evil.example/chat",
        "http://user@example.com/chat",
        "http:///chat",
        "http://",
        "http:/chat",
        "ftp://example.com/chat",
        "file:///etc/passwd",
        "://example.com/",
        "example.com:80",
        "chat",
        "*",
        "?a",
    ] {
        refuses(
            edited("/chat", target),
            "400 Bad Request",
            "the request target is invalid",
        );
    }
    let connect = edited("GET /chat", "CONNECT example.com:80");
    refuses(connect, "400 Bad Request", "the request target is invalid");
}

#[test]
fn h22_an_absolute_target_without_host_is_refused_whatever_the_version() {
    for version in ["HTTP/1.1", "HTTP/1.0"] {
        let head = format!("GET http://example.com/ {version}\r\n\r\n");
        refuses(head, "400 Bad Request", "the Host header is missing");
    }
}

#[test]
fn h22_paths_are_not_normalized() {
    for (target, path, query) in [
        ("/", "/", None),
        ("/chat?", "/chat", Some("")),
        ("/chat?a=b?c", "/chat", Some("a=b?c")),
        ("//evil.example/chat", "//evil.example/chat", None),
        ("/\\evil.example", "/\\evil.example", None),
        ("/http://evil.example/", "/http://evil.example/", None),
        ("/a/../%2e%2e/%00", "/a/../%2e%2e/%00", None),
        ("http://example.com", "/", None),
        ("http://example.com?a", "/", Some("a")),
        ("http://example.com//evil.example", "//evil.example", None),
    ] {
        let request = request(edited("/chat", target));
        assert_eq!((request.path(), request.query()), (path, query), "{target}");
        assert_eq!(request.target(), target);
        assert_eq!(request.host(), Some("example.com"));
    }
}

#[test]
fn h22_fragments_and_non_ascii_bytes_are_not_part_of_a_target() {
    for target in ["/chat#a", "/ch\u{E4}t", "/?q=\u{E4}"] {
        refuses(
            edited("/chat", target),
            "400 Bad Request",
            "the request target is invalid",
        );
    }
}

#[test]
fn h22_only_valid_hosts_are_accepted() {
    for host in [
        "", ":80", "a b", "a/b", "a@b", "a:b", "a:70000", "http://a", "[::1", "[::g]", "a\tb",
        "a\\b", "a?b", "a#b", "a:80:80",
    ] {
        refuses(
            edited("Host: example.com", &format!("Host: {host}")),
            "400 Bad Request",
            "the Host header is invalid",
        );
    }
    for host in [
        "localhost:8080",
        "[::1]:8080",
        "192.0.2.1",
        "a_b.example",
        "example.com:",
    ] {
        accepts(edited("Host: example.com", &format!("Host: {host}")));
    }
}

#[test]
fn an_asterisk_is_a_target_only_for_options() {
    assert_eq!(request("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path(), "*");
}
