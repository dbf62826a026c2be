//! Tests of the server's shutdown.

use std::time::{Duration, Instant};

use linerate::Client;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{PATIENCE, Server, close_code, server_close};

#[tokio::test]
async fn sigterm_closes_websockets_with_1001_and_ends_without_an_error() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start();
        let mut echo = server.connect("/echo").await;
        let mut counters = server.connect("/counters").await;
        let mut upload = server.connect_upload().await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        // The echo shows that the server handles the connection, not just that the kernel has
        // accepted it.
        echo.send("Spam").await.unwrap();
        echo.recv().await.unwrap();
        upload
            .send(r#"{"type":"start","files":[{"name":"a.log","size":9}]}"#)
            .await
            .unwrap();
        upload.recv().await.unwrap();

        server.signal(signal);
        for ws in [&mut echo, &mut counters, &mut upload] {
            while timeout(PATIENCE, ws.recv())
                .await
                .unwrap()
                .unwrap()
                .is_some()
            {}
            assert_eq!(close_code(ws).await, 1001);
            assert_eq!(ws.closed().unwrap().reason(), "server shutting down");
        }
        timeout(PATIENCE, idle.read_to_end(&mut Vec::new()))
            .await
            .unwrap()
            .ok();
        let status = tokio::task::spawn_blocking(move || server.child.wait().unwrap());
        assert!(timeout(PATIENCE, status).await.unwrap().unwrap().success());
    }
}

#[tokio::test]
async fn a_client_that_does_not_answer_delays_the_end_by_seconds_only() {
    let mut server = Server::start();
    let mut ws = server.connect("/echo").await;
    ws.send("Spam").await.unwrap();
    ws.recv().await.unwrap();
    // From here on the client does not read, because the runtime of this connection is blocked.
    let started = Instant::now();
    server.signal("-TERM");
    let status = server.child.wait().unwrap();
    assert!(status.success());
    assert!(started.elapsed() < Duration::from_secs(15));
    drop(ws);
}

#[tokio::test]
async fn g07_who_connects_while_others_are_sent_away_is_sent_on_at_once() {
    let server = Server::start();
    let mut ws = server.connect("/connection/websocket").await;
    server.signal("-TERM");
    let leaves = async { while TcpStream::connect(server.address).await.is_ok() {} };
    timeout(PATIENCE, leaves).await.unwrap();
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    let gone = async { while ws.recv().await.unwrap().is_some() {} };
    timeout(PATIENCE, gone).await.unwrap();
    assert_eq!(close_code(&mut ws).await, 3001);
}

#[test]
fn a_log_that_goes_into_a_file_has_no_colours() {
    let log = Server::start_logging(&[]).stop_and_read_log();
    assert!(log.contains("serving address=127.0.0.1:"), "{log}");
    assert!(!log.contains('\x1b'), "{log:?}");
}

#[tokio::test]
async fn sigterm_closes_raw_and_followed_logs_with_1001_and_clients_with_commands_with_3001() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(&log, "").unwrap();
    let server = Server::start_with(&["--tail", log.to_str().unwrap()]);
    let http2 = Client::new().with_http2_prior_knowledge();
    let mut raw = server.connect("/raw?channel=demo:x").await;
    let mut raw_http2 = http2
        .connect(&server.url("/raw?channel=demo:x"))
        .await
        .unwrap();
    for ws in [&mut raw, &mut raw_http2] {
        server
            .api("publish", json!({"channel": "demo:x", "data": 1}))
            .await;
        assert!(
            timeout(PATIENCE, ws.recv())
                .await
                .unwrap()
                .unwrap()
                .is_some()
        );
    }
    let mut tail = server.connect_upload().await;
    tail.recv().await.unwrap();
    tail.send(r#"{"type":"follow","name":"access.log"}"#)
        .await
        .unwrap();
    tail.recv().await.unwrap();
    let native = Client::new().with_subprotocol("linerate.v1");
    let mut native = native
        .connect(&server.url("/connection/websocket"))
        .await
        .unwrap();
    let mut centrifuge = server.connect("/connection/websocket").await;
    for ws in [&mut native, &mut centrifuge] {
        ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
        assert!(ws.recv().await.unwrap().is_some());
    }
    server.signal("-TERM");
    for ws in [&mut raw, &mut raw_http2, &mut tail] {
        assert_eq!(
            server_close(ws).await,
            (1001, "server shutting down".to_owned())
        );
    }
    for ws in [&mut native, &mut centrifuge] {
        assert_eq!(server_close(ws).await, (3001, "shutdown".to_owned()));
    }
}

#[tokio::test]
async fn sigterm_ends_answers_that_go_on_with_a_last_event() {
    let mut server = Server::start();
    let mut streams = Vec::new();
    for target in [
        "/sse?channel=demo:x",
        "/connection/sse?cf_connect=%7B%22id%22:1,%22connect%22:%7B%7D%7D",
        "/admin/api/tail?channel=demo:x",
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        assert_eq!(&head, b"HTTP/1.1 200", "{target}");
        streams.push(stream);
    }
    let started = Instant::now();
    server.signal("-TERM");
    let mut ends = Vec::new();
    for stream in &mut streams {
        let mut rest = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut rest))
            .await
            .unwrap()
            .unwrap();
        ends.push(rest);
    }
    let event = ends[0]
        .split("event: disconnect")
        .nth(1)
        .expect("a last event");
    let data: Value = serde_json::from_str(
        event
            .split("data: ")
            .nth(1)
            .unwrap()
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    assert_eq!(data, json!({"code": 3001, "reason": "shutdown"}));
    assert!(ends[0].contains("retry: "), "{}", ends[0]);
    assert!(ends[1].contains("\"code\":3001"), "{}", ends[1]);
    assert!(server.child.wait().unwrap().success());
    // No connection had to be closed by the drain timeout, which would be six seconds later.
    assert!(started.elapsed() < Duration::from_secs(5));
}
