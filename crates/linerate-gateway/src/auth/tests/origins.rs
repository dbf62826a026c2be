//! Tests of which pages may connect (H17).

use http::{HeaderMap, HeaderValue, header};
use linerate::handshake::Scheme;

use crate::auth::Origins;

fn judge(configured: &[&str], scheme: Scheme, origins: &[&[u8]]) -> bool {
    let configured: Vec<String> = configured.iter().map(|origin| (*origin).into()).collect();
    let mut headers = HeaderMap::new();
    headers.insert(header::HOST, HeaderValue::from_static("example.com"));
    for origin in origins {
        headers.append(header::ORIGIN, HeaderValue::from_bytes(origin).unwrap());
    }
    Origins::new(&configured)
        .unwrap()
        .check(&headers, scheme)
        .is_ok()
}

#[test]
fn h17_programs_that_are_no_browsers_pass() {
    assert!(judge(&[], Scheme::Http, &[]));
    assert!(judge(&["https://a.example"], Scheme::Http, &[]));
}

#[test]
fn h17_without_a_list_only_pages_of_this_server_pass() {
    assert!(judge(&[], Scheme::Http, &[b"http://example.com"]));
    assert!(judge(&[], Scheme::Http, &[b"HTTP://EXAMPLE.com:80"]));
    assert!(judge(&[], Scheme::Https, &[b"https://example.com"]));
    for origin in [
        &b"null"[..],
        b"https://example.com",
        b"http://example.com:8080",
        b"http://example.com.evil.example",
        b"http://evil-example.com",
        b"http://sub.example.com",
        b"http://example.com@evil.example",
        b"http://example.com/",
        b"http://ex\xc3\xa4mple.com",
        b"http://\xff\xfe",
        b"*",
        b"",
    ] {
        assert!(!judge(&[], Scheme::Http, &[origin]), "{origin:?}");
    }
}

#[test]
fn h17_two_origins_are_refused_whatever_is_allowed() {
    let twice: &[&[u8]] = &[b"http://example.com", b"http://example.com"];
    assert!(!judge(&[], Scheme::Http, twice));
    assert!(!judge(&["*"], Scheme::Http, twice));
    assert!(!judge(
        &[],
        Scheme::Http,
        &[b"http://example.com http://example.com"]
    ));
}

#[test]
fn h17_a_list_allows_what_it_names() {
    let list = ["https://a.example", "https://*.b.example:8443"];
    for origin in [
        &b"https://a.example"[..],
        b"https://A.example:443",
        b"https://x.b.example:8443",
        b"https://x.y.b.example:8443",
    ] {
        assert!(judge(&list, Scheme::Http, &[origin]), "{origin:?}");
    }
    for origin in [
        &b"http://example.com"[..],
        b"http://a.example",
        b"https://a.example.evil.example",
        b"https://b.example:8443",
        b"https://.b.example:8443",
        b"https://xb.example:8443",
        b"https://x.b.example",
        b"https://x.b.example:8443.evil.example",
        b"http://x.b.example:8443",
        b"null",
    ] {
        assert!(!judge(&list, Scheme::Http, &[origin]), "{origin:?}");
    }
    assert!(judge(&["*"], Scheme::Http, &[b"null"]));
}

#[test]
fn h17_what_is_no_origin_can_not_be_configured() {
    for origin in [
        "example.com",
        "https://",
        "https://*",
        "*.example.com",
        "https://a.example/",
        "",
    ] {
        let error = Origins::new(&[origin.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(&format!("{origin:?}")), "{error}");
    }
}
