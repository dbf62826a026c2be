//! Tests the extractor on a real axum server.

use std::{future::poll_fn, net::SocketAddr, time::Duration};

use axum::{Extension, Router, response::Response, routing::any};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use linerate::{
    Client, CloseCode, Message,
    axum::{Connections, Detachable, StreamUpgrade, WebSocketService, WebSocketUpgrade},
    handshake::{OriginPolicy, Scheme},
};
use linerate_testkit::Frame;
use tokio::{
    io::DuplexStream,
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use crate::{
    polls::poll_times,
    raw::{ACCEPTED, REQUEST, Raw, edited, in_time, with_line},
    support::echo,
};

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

/// Returns an application that hands its upgraded streams over, and where they arrive.
fn handing_over() -> (Router, mpsc::UnboundedReceiver<StreamUpgrade>) {
    let (taken, streams) = mpsc::unbounded_channel();
    let hand_over = move |upgrade: WebSocketUpgrade| async move {
        upgrade.on_stream_upgrade(move |upgrade| _ = taken.send(upgrade))
    };
    (Router::new().route("/chat", any(hand_over)), streams)
}

#[tokio::test]
async fn an_upgraded_stream_is_handed_over_with_what_was_read_from_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (app, mut streams) = handing_over();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let mut raw = Raw::connect(address).await;
    let frame = b"\x81\x83\0\0\0\0one";
    raw.send([REQUEST.as_bytes(), frame].concat()).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101 "));
    let upgrade = in_time(streams.recv()).await.unwrap();
    assert_eq!(upgrade.request.path(), "/chat");
    // A stream of another type is returned unchanged.
    let stream = upgrade.stream.downcast::<DuplexStream>().unwrap_err();
    let (socket, input) = stream.downcast::<TcpStream>().unwrap();
    assert_eq!(input, frame);
    assert_eq!(socket.local_addr().unwrap(), address);
    drop(socket);
    assert_eq!(raw.frame().await, None);
}

#[tokio::test]
async fn a_stream_that_could_be_taken_away_is_handed_over_as_itself() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (app, mut streams) = handing_over();
    let mut raw = Raw::connect(address).await;
    let stream = Detachable::new(listener.accept().await.unwrap().0);
    let detacher = stream.detacher();
    let service = TowerToHyperService::new(app);
    let server = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::spawn(server.with_upgrades());
    raw.send(REQUEST).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 101 "));
    let upgrade = in_time(streams.recv()).await.unwrap();
    let (socket, _) = upgrade.stream.downcast::<TcpStream>().unwrap();
    assert_eq!(socket.local_addr().unwrap(), address);
    assert!(poll_fn(|cx| detacher.poll_detach(cx)).await.is_none());
    drop(socket);
    assert_eq!(raw.frame().await, None);
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

/// Starts a server that stops gracefully and then closes its WebSockets; its task returns how many
/// were left.
async fn start_with(
    connections: Connections,
    timeout: Duration,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = WebSocketService::new(echo).with_connections(&connections);
    let app = Router::new()
        .route("/chat", any(upgraded))
        .layer(Extension(connections.clone()))
        .route_service("/service", service);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move {
        let serving = axum::serve(listener, app);
        let stopped = async { _ = stopped.await };
        serving.with_graceful_shutdown(stopped).await.unwrap();
        connections.close_all(timeout).await
    });
    (address, stop, running)
}

#[tokio::test]
async fn a_graceful_shutdown_closes_with_1001() {
    let connections = Connections::new();
    let (address, stop, running) = start_with(connections.clone(), Duration::from_secs(60)).await;
    let mut clients = Vec::new();
    for path in ["chat", "service", "chat"] {
        let url = format!("ws://{address}/{path}");
        let mut ws = linerate::connect(&url).await.unwrap();
        ws.send("one").await.unwrap();
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some("one".into()));
        clients.push(ws);
    }
    assert_eq!(connections.len(), 3);
    drop(stop);
    for mut ws in clients {
        assert_eq!(in_time(ws.recv()).await.unwrap(), None);
        let closed = in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
        assert_eq!((closed.code, closed.clean), (1001, true));
    }
    assert_eq!(in_time(running).await.unwrap(), 0);
    assert!(connections.is_empty());
}

#[tokio::test]
async fn a_shutdown_does_not_wait_longer_than_it_may() {
    let connections = Connections::new();
    let timeout = Duration::from_millis(50);
    let (address, stop, running) = start_with(connections.clone(), timeout).await;
    let mut silent = Raw::connect(address).await;
    silent.send(REQUEST).await;
    silent.head().await;
    drop(stop);
    assert_eq!(in_time(running).await.unwrap(), 1);
    let (first, payload) = silent.frame().await.unwrap();
    assert_eq!((first, &payload[..2]), (0x88, &b"\x03\xe9"[..]));
}

#[tokio::test]
async fn a_dropped_shutdown_still_closes_and_new_requests_are_refused() {
    let connections = Connections::new();
    let (address, _stop, _running) = start_with(connections.clone(), Duration::ZERO).await;
    let url = format!("ws://{address}/chat");
    let mut ws = linerate::connect(&url).await.unwrap();
    let closing = connections.close_all(Duration::from_secs(60));
    assert_eq!(poll_times(closing, 1).await, None);
    assert_eq!(in_time(ws.recv()).await.unwrap(), None);
    let error = linerate::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
}

#[tokio::test]
async fn no_more_connections_are_open_than_allowed() {
    let connections = Connections::new().with_connections_max(2);
    let (address, _stop, _running) = start_with(connections.clone(), Duration::ZERO).await;
    let url = format!("ws://{address}/chat");
    let first = linerate::connect(&url).await.unwrap();
    let _second = linerate::connect(&url).await.unwrap();
    let error = linerate::connect(&url).await.unwrap_err();
    assert!(error.to_string().contains("503"), "{error}");
    // Requests that do not become a WebSocket do not count.
    let mut raw = Raw::connect(address).await;
    raw.send(with_line("Origin: https://evil.example")).await;
    assert!(raw.head().await.starts_with("HTTP/1.1 403 "));
    drop(first);
    while connections.len() > 1 {
        tokio::task::yield_now().await;
    }
    linerate::connect(&url).await.unwrap();
}

#[tokio::test]
async fn a_handler_sees_which_subprotocols_are_offered() {
    let offered = async |upgrade: WebSocketUpgrade| {
        let offered = upgrade.subprotocols().join(" ");
        let newest = upgrade.subprotocols().into_iter().max().map(String::from);
        let chosen: Vec<_> = newest.iter().map(String::as_str).collect();
        let upgrade = upgrade.with_subprotocols(&chosen);
        upgrade.on_upgrade(|mut ws| async move { ws.send(offered).await })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/", listener.local_addr().unwrap());
    let app = Router::new().route("/", any(offered));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = Client::new().with_subprotocol("v1").with_subprotocol("v3");
    let mut ws = client.with_subprotocol("v2").connect(&url).await.unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("v3"));
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("v1 v3 v2".into()));
    let mut ws = linerate::connect(&url).await.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("".into()));
}
