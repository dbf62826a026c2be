//! Which pages may open a WebSocket (RFC 6455 §10.2): H17.

use alloc::string::ToString;

use super::*;

/// Asserts the decision of a policy on a request for `host` from each of these origins.
fn judges(policy: &OriginPolicy, scheme: Scheme, host: &str, origins: &[&str], is_allowed: bool) {
    for origin in origins {
        let head = edited(
            "Host: example.com",
            &format!("Host: {host}\r\nOrigin: {origin}"),
        );
        let expected = if is_allowed {
            Ok(())
        } else {
            Err(HandshakeError::OriginDenied)
        };
        assert_eq!(
            policy.check(&request(head), scheme),
            expected,
            "{origin} at {host}"
        );
    }
}

#[test]
fn h17_requests_without_an_origin_pass() {
    accepts(VALID);
    let listed = OriginPolicy::List(Vec::new());
    assert_eq!(listed.check(&request(VALID), Scheme::Https), Ok(()));
}

#[test]
fn h17_pages_of_this_server_pass_and_others_get_403() {
    accepts(with_line("Origin: http://example.com"));
    for origin in [
        "null",
        "http://evil.example",
        "https://example.com",
        "http://example.com:8080",
        "http://example.com.evil.example",
        "http://evil-example.com",
        "http://sub.example.com",
        "http://example.com.",
        "http://example.com@evil.example",
        "http://example.com/",
        "http://example.com http://example.com",
        "http://[::1]",
        "ws://example.com",
        "file://",
        "chrome-extension://abcdefgh",
        "example.com",
        "//example.com",
        "http:example.com",
        "http://",
        "http://:80",
        "*",
        "",
    ] {
        let head = with_line(format!("Origin: {origin}"));
        refuses(head, "403 Forbidden", "the origin is not allowed");
    }
}

#[test]
fn h17_case_and_default_ports_make_no_difference() {
    let policy = OriginPolicy::SameOrigin;
    let origins = [
        "http://example.com",
        "HTTP://EXAMPLE.com:80",
        "http://eXample.com:080",
    ];
    judges(&policy, Scheme::Http, "Example.COM", &origins, true);
    judges(&policy, Scheme::Http, "example.com:80", &origins, true);
    judges(&policy, Scheme::Https, "example.com", &origins, false);
    judges(&policy, Scheme::Http, "example.com:8080", &origins, false);
    let origins = ["https://example.com", "https://example.com:443"];
    judges(&policy, Scheme::Https, "example.com", &origins, true);
    judges(&policy, Scheme::Http, "example.com:443", &origins, false);
    judges(
        &policy,
        Scheme::Http,
        "[::1]:8080",
        &["http://[::1]:8080"],
        true,
    );
    judges(
        &policy,
        Scheme::Http,
        "127.0.0.1:8080",
        &["http://localhost:8080"],
        false,
    );
}

#[test]
fn h17_non_ascii_names_are_compared_as_browsers_send_them() {
    let policy = OriginPolicy::SameOrigin;
    let host = "xn--bcher-kva.example";
    judges(
        &policy,
        Scheme::Http,
        host,
        &["http://xn--bcher-kva.example"],
        true,
    );
    judges(
        &policy,
        Scheme::Http,
        host,
        &["http://b\u{FC}cher.example"],
        false,
    );
}

#[test]
fn h17_two_origins_are_refused() {
    refuses(
        with_line("Origin: http://example.com\r\nOrigin: http://example.com"),
        "400 Bad Request",
        "the Origin header appears twice",
    );
    let twice = request(with_line("Origin: http://a\r\norigin: http://b"));
    for policy in [OriginPolicy::DangerAny, OriginPolicy::List(Vec::new())] {
        let error = HandshakeError::HeaderDuplicate { name: "Origin" };
        assert_eq!(policy.check(&twice, Scheme::Http), Err(error));
    }
}

#[test]
fn h17_two_origins_are_refused_even_without_a_policy() {
    let twice = request(with_line("Origin: http://a\r\nOrigin: http://a"));
    let error = HandshakeError::HeaderDuplicate { name: "Origin" };
    assert_eq!(twice.websocket().unwrap_err(), error);
}

#[test]
fn h17_a_list_allows_its_origins_including_scheme_and_port() {
    let policy = OriginPolicy::List(
        ["https://good.example", "http://localhost:3000"]
            .map(|origin| origin.parse().unwrap())
            .into(),
    );
    let allowed = [
        "https://good.example",
        "HTTPS://Good.example:443",
        "http://localhost:3000",
    ];
    judges(&policy, Scheme::Http, "example.com", &allowed, true);
    let denied = [
        "http://good.example",
        "https://good.example:8443",
        "https://good.example.evil.example",
        "http://localhost",
        "http://example.com",
        "null",
    ];
    judges(&policy, Scheme::Http, "example.com", &denied, false);
}

#[test]
fn h17_allowing_any_origin_requires_a_dangerous_name() {
    judges(
        &OriginPolicy::DangerAny,
        Scheme::Http,
        "a",
        &["null", "http://evil.example"],
        true,
    );
}

#[test]
fn a_request_without_host_has_no_own_origin() {
    for origin in ["http://a", "null", ""] {
        let request = request(format!("GET / HTTP/1.0\r\nOrigin: {origin}\r\n\r\n"));
        let denied = Err(HandshakeError::OriginDenied);
        assert_eq!(
            OriginPolicy::SameOrigin.check(&request, Scheme::Http),
            denied
        );
    }
}

#[test]
fn origins_are_written_as_browsers_write_them() {
    for (text, written) in [
        ("HTTP://Example.com:80", "http://example.com"),
        ("https://example.com:80", "https://example.com:80"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ] {
        assert_eq!(text.parse::<Origin>().unwrap().to_string(), written);
    }
    for text in [
        "null",
        "example.com",
        "ftp://example.com",
        "http://a/b",
        "http://a b",
        "",
    ] {
        assert_eq!(text.parse::<Origin>(), Err(BuildError::OriginInvalid));
    }
}
