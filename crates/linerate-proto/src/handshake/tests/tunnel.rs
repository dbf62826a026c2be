//! Tunnels through HTTP proxies.

use alloc::{format, string::ToString, vec::Vec};

use crate::handshake::{BuildError, HandshakeError, HandshakeLimits, TunnelHandshake};

const OPENED: &[u8] = b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n";

fn tunnel() -> TunnelHandshake {
    TunnelHandshake::new("example.com:443").unwrap()
}

fn outcome(input: &[u8]) -> Result<Option<usize>, HandshakeError> {
    tunnel().handle_input(input)
}

#[test]
fn the_request_names_the_destination_twice_and_carries_headers() {
    let tunnel = TunnelHandshake::new("[2001:db8::1]:80").unwrap();
    let tunnel = tunnel.with_header("Proxy-Authorization", "Basic dTpw");
    let mut output = Vec::new();
    tunnel.unwrap().encode(&mut output);
    assert_eq!(
        output.escape_ascii().to_string(),
        "CONNECT [2001:db8::1]:80 HTTP/1.1\\r\\nHost: [2001:db8::1]:80\\r\\n\
         Proxy-Authorization: Basic dTpw\\r\\n\\r\\n"
    );
}

#[test]
fn a_destination_is_only_a_host_and_a_port() {
    for wrong in [
        "example.com",
        "example.com:",
        "example.com:80\r\nX: y",
        "a b:80",
        ":80",
        "",
    ] {
        let error = TunnelHandshake::new(wrong).unwrap_err();
        assert_eq!(error, BuildError::HostInvalid, "{wrong:?}");
    }
    assert!(tunnel().with_header("Host", "other").is_err());
    assert!(tunnel().with_header("X", "a\r\nY: b").is_err());
}

#[test]
fn any_2xx_opens_the_tunnel_regardless_of_its_body_headers() {
    for status in ["200 OK", "204 ", "299 Fine"] {
        for version in ["1.0", "1.1"] {
            let input = format!("HTTP/{version} {status}\r\nContent-Length: 7\r\n\r\n");
            assert_eq!(outcome(input.as_bytes()), Ok(Some(input.len())));
        }
    }
}

#[test]
fn an_answer_may_be_split_anywhere_and_later_bytes_are_left() {
    let input = [OPENED, b"early"].concat();
    for cut in 0..OPENED.len() {
        let mut tunnel = tunnel();
        assert_eq!(tunnel.handle_input(&input[..cut]), Ok(None));
        assert_eq!(
            tunnel.handle_input(&input[cut..]),
            Ok(Some(OPENED.len() - cut))
        );
    }
    let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n";
    let input = [&interim[..], OPENED].concat();
    assert_eq!(outcome(&input), Ok(Some(input.len())));
}

#[test]
fn other_statuses_than_2xx_fail_permanently() {
    for status in [101, 301, 403, 407, 502] {
        let input = format!("HTTP/1.1 {status} No\r\n\r\n");
        let mut tunnel = tunnel();
        let error = HandshakeError::StatusUnexpected { status };
        assert_eq!(tunnel.handle_input(input.as_bytes()), Err(error));
        assert_eq!(tunnel.handle_input(OPENED), Err(error));
        assert_eq!(tunnel.handle_eof(), error);
    }
}

#[test]
fn c02_an_endless_answer_of_a_proxy_is_refused() {
    let limits = HandshakeLimits {
        head_bytes_max: OPENED.len(),
        ..HandshakeLimits::default()
    };
    let mut bounded = tunnel().with_limits(limits);
    assert_eq!(bounded.handle_input(OPENED), Ok(Some(OPENED.len())));
    let limits = HandshakeLimits {
        head_bytes_max: OPENED.len() - 1,
        ..limits
    };
    let mut bounded = tunnel().with_limits(limits);
    assert_eq!(
        bounded.handle_input(OPENED),
        Err(HandshakeError::HeadTooLarge {
            head_bytes: OPENED.len(),
            head_bytes_max: OPENED.len() - 1
        })
    );
    let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(5);
    let error = outcome(&interim).unwrap_err();
    assert!(
        matches!(
            error,
            HandshakeError::InterimResponsesTooMany { responses: 5, .. }
        ),
        "{error}"
    );
}

#[test]
fn an_end_within_the_answer_is_an_error() {
    let mut tunnel = tunnel();
    assert_eq!(tunnel.handle_input(b"HTTP/1.1 200"), Ok(None));
    assert_eq!(
        tunnel.handle_eof(),
        HandshakeError::HeadTruncated { head_bytes: 12 }
    );
}
