//! Tests the extractor on a real axum server.

use std::net::SocketAddr;

use axum::{Router, response::Response, routing::any};
use linerate::{
    Client, CloseCode, Message,
    axum::WebSocketUpgrade,
    handshake::{OriginPolicy, Scheme},
};
use linerate_testkit::Frame;
use tokio::net::TcpListener;

use crate::raw::{ACCEPTED, REQUEST, Raw, edited, in_time, with_line};

async fn upgraded(upgrade: WebSocketUpgrade) -> Response {
    let upgrade = upgrade.with_subprotocols(&["wamp"]);
    assert_eq!(upgrade.request().path(), "/chat");
    upgrade.on_upgrade(|mut ws| async move {
        while let Some(message) = ws.recv().await? {
            match message.as_text() {
                Some("end") => return Ok(()),
                Some("panic") => panic!("on purpose"),
                _ => ws.send(message).await?,
            }
        }
        Ok(())
    })
}

async fn start() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/chat", any(upgraded));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn messages_come_back_as_they_were() {
    let url = format!("ws://{}/chat", start().await);
    let mut ws = linerate::connect(&url).await.unwrap();
    for message in [
        Message::from("größer €"),
        Message::from(b""),
        Message::from(vec![7; 300_000]),
    ] {
        ws.send(message.clone()).await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some(message));
    }
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert_eq!((closed.code, closed.clean), (1000, true));
}

#[tokio::test]
async fn the_subprotocol_is_one_that_both_know() {
    let url = format!("ws://{}/chat", start().await);
    let client = Client::new()
        .with_subprotocol("soap")
        .with_subprotocol("wamp");
    let ws = client.connect(&url).await.unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("wamp"));
    let client = Client::new().with_subprotocol("soap");
    let ws = client.connect(&url).await.unwrap();
    assert_eq!(ws.subprotocol(), None);
}

#[tokio::test]
async fn h08_frames_in_the_segment_of_the_request_are_kept() {
    let mut raw = Raw::connect(start().await).await;
    raw.send([REQUEST.as_bytes(), b"\x81\x83\0\0\0\0one"].concat())
        .await;
    let head = raw.head().await;
    assert!(
        head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"),
        "{head}"
    );
    assert_eq!(raw.frame().await, Some((0x81, b"one".to_vec())));
}

#[tokio::test]
async fn the_end_of_a_handler_closes() {
    let address = start().await;
    for (message, code) in [("end", 1000_u16), ("panic", 1011)] {
        let mut raw = Raw::connect(address).await;
        raw.send(REQUEST).await;
        let accept = ACCEPTED
            .lines()
            .find(|line| line.contains("Accept"))
            .unwrap();
        let head = raw.head().await.to_ascii_lowercase();
        assert!(head.contains(&accept.to_ascii_lowercase()), "{head}");
        raw.send_frame(Frame::new(0x1, message.as_bytes())).await;
        assert_eq!(raw.frame().await, Some((0x88, code.to_be_bytes().to_vec())));
    }
}

#[tokio::test]
async fn requests_that_break_the_rules_are_refused() {
    let address = start().await;
    let without = |line: &str| edited(line, "");
    for (request, status) in [
        (
            without("Upgrade: websocket\r\n").into_bytes(),
            "400 Bad Request",
        ),
        (
            without("Connection: Upgrade\r\n").into_bytes(),
            "400 Bad Request",
        ),
        (
            edited("dGhlIHNhbXBsZSBub25jZQ==", "short").into(),
            "400 Bad Request",
        ),
        (
            edited("Version: 13", "Version: 8").into(),
            "426 Upgrade Required",
        ),
        (edited("GET", "POST").into(), "405 Method Not Allowed"),
        (with_line("Origin: https://evil.example"), "403 Forbidden"),
    ] {
        let mut raw = Raw::connect(address).await;
        raw.send(&request).await;
        let head = raw.head().await;
        let request = request.escape_ascii();
        assert!(
            head.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{request}: {head}"
        );
        if status.starts_with("426") {
            let head = head.to_ascii_lowercase();
            assert!(head.contains("\r\nsec-websocket-version: 13\r\n"), "{head}");
            assert!(head.contains("\r\nupgrade: websocket\r\n"), "{head}");
        }
    }
}

#[tokio::test]
async fn a_page_of_the_same_origin_is_welcome() {
    let mut raw = Raw::connect(start().await).await;
    raw.send(with_line("Origin: http://example.com")).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101 "));
}

/// Starts a server with the policy, and returns the status of the response to a request from
/// `origin`.
async fn status(policy: OriginPolicy, scheme: Scheme, origin: &str) -> String {
    let upgraded = async move |upgrade: WebSocketUpgrade| {
        let upgrade = upgrade.with_origin_policy(policy).with_scheme(scheme);
        upgrade.on_upgrade(|_| async { Ok(()) })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/chat", any(upgraded));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let mut raw = Raw::connect(address).await;
    raw.send(with_line(format!("Origin: {origin}"))).await;
    raw.head().await.split(' ').nth(1).unwrap().into()
}

#[tokio::test]
async fn h17_pages_of_other_origins_are_welcome_if_listed() {
    let list = OriginPolicy::List(vec!["https://good.com".parse().unwrap()]);
    for (origin, expected) in [
        ("https://good.com", "101"),
        ("https://GOOD.com:443", "101"),
        ("http://good.com", "403"),
        ("https://good.com:444", "403"),
        ("https://good.com.evil.com", "403"),
        ("https://evil.com/https://good.com", "403"),
        ("http://example.com", "403"),
        ("null", "403"),
        ("", "403"),
    ] {
        let status = status(list.clone(), Scheme::Http, origin).await;
        assert_eq!(status, expected, "{origin}");
    }
    let any = status(OriginPolicy::DangerAny, Scheme::Http, "https://evil.com");
    assert_eq!(any.await, "101");
}

#[tokio::test]
async fn h17_the_own_origin_has_the_scheme_of_the_request() {
    for (scheme, origin, expected) in [
        (Scheme::Http, "http://example.com", "101"),
        (Scheme::Http, "https://example.com", "403"),
        (Scheme::Https, "https://example.com", "101"),
        (Scheme::Https, "http://example.com", "403"),
    ] {
        let status = status(OriginPolicy::SameOrigin, scheme, origin).await;
        assert_eq!(status, expected, "{scheme:?} {origin}");
    }
}
