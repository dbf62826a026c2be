//! Tests of `/echo` and `/counters`.

use linerate::{Client, CloseCode, Message, WebSocket};
use serde_json::Value;

use crate::support::Server;

#[tokio::test]
async fn echo_sends_back_what_came() {
    let server = Server::start();
    let mut ws = server.connect("/echo").await;
    for message in [
        Message::from("größer €"),
        Message::from(vec![0, 255, 7]),
        Message::from(""),
    ] {
        ws.send(message.clone()).await.unwrap();
        assert_eq!(ws.recv().await.unwrap(), Some(message));
    }
    let closed = ws.close(CloseCode::NORMAL, "bye").await.unwrap();
    assert_eq!((closed.code, closed.clean), (1000, true));
}

#[tokio::test]
async fn a_page_from_elsewhere_may_not_connect() {
    let server = Server::start();
    for path in ["/echo", "/counters", "/logs/upload"] {
        let client = Client::new()
            .with_subprotocol("linerate.logs.v1")
            .with_origin("https://elsewhere.example".parse().unwrap());
        let error = client.connect(&server.url(path)).await.unwrap_err();
        assert!(error.to_string().contains("403"), "{path}: {error}");
    }
    let own = format!("http://{}", server.address).parse().unwrap();
    let client = Client::new().with_origin(own);
    client.connect(&server.url("/echo")).await.unwrap();
}

#[tokio::test]
async fn a_plain_request_is_told_what_is_missing() {
    let server = Server::start();
    for path in ["/echo", "/counters", "/logs/upload"] {
        let response = server.get(path).await;
        assert_eq!(response.status, 400, "{path}");
        assert!(response.text().contains("Upgrade"), "{path}");
    }
}

async fn counters(ws: &mut WebSocket) -> Value {
    let push = ws.recv().await.unwrap().expect("a push");
    serde_json::from_str(push.as_text().expect("text")).unwrap()
}

#[tokio::test]
async fn counters_count_what_passes() {
    let server = Server::start();
    let mut watching = server.connect("/counters").await;
    let first = counters(&mut watching).await;
    assert_eq!(
        (&first["connections"], &first["uploads"]),
        (&1.into(), &0.into())
    );
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        (&first["broker"], &first["is_deaf"]),
        (&"memory".into(), &false.into())
    );

    let mut ws = server.connect("/echo").await;
    for _ in 0..10 {
        ws.send("Spam").await.unwrap();
        ws.recv().await.unwrap();
    }
    let second = counters(&mut watching).await;
    assert_eq!(
        (&second["connections"], &second["connections_total"]),
        (&2.into(), &2.into())
    );
    assert_eq!(second["messages_received"], 10);
    assert_eq!(
        second["bytes_received"], 100,
        "ten masked frames of 6 + 4 bytes"
    );
    assert_eq!(
        second["messages_sent"].as_u64().unwrap(),
        11,
        "10 echoes and a push"
    );
    assert!(second["uptime_seconds"].as_u64().unwrap() >= 1);

    ws.close(CloseCode::NORMAL, "").await.unwrap();
    let third = counters(&mut watching).await;
    assert_eq!(
        (&third["connections"], &third["connections_total"]),
        (&1.into(), &2.into())
    );
    let closed = watching.close(CloseCode::NORMAL, "").await.unwrap();
    assert!(closed.clean);
}

#[tokio::test]
async fn a_message_that_is_too_big_is_refused() {
    let server = Server::start();
    let mut ws = server.connect("/echo").await;
    // The client keeps writing while the server refuses the message, so only the close code shows
    // the result.
    _ = ws.send(vec![0; (1 << 20) + 1]).await;
    assert_eq!(ws.recv().await.unwrap(), None);
    let closed = ws.close(CloseCode::NORMAL, "").await.unwrap();
    assert_eq!(closed.code, 1009);
}
