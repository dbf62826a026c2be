//! A WebSocket that continues the session of a client that polls.

use std::{sync::Arc, time::Duration};

use linerate::{Client, CloseCode, WebSocket};
use serde_json::json;
use tokio::{sync::Semaphore, time::sleep};

use super::{
    ON,
    polling_client::{Polling, deliver},
};
use crate::{
    backend::support::{Answer, Backend, until},
    http::request,
    support::{Gateway, in_time, token},
};

async fn text(ws: &mut WebSocket) -> String {
    let message = in_time(ws.recv()).await.unwrap();
    message.expect("a message").as_text().unwrap().to_owned()
}

/// Returns the WebSocket that continues a session of which a poll is waiting.
async fn upgraded(client: &Polling<'_>) -> WebSocket {
    let probe = async {
        sleep(Duration::from_millis(100)).await;
        let mut ws = client.websocket().await.unwrap();
        ws.send("2probe").await.unwrap();
        assert_eq!(text(&mut ws).await, "3probe");
        ws
    };
    let poll = async { while client.poll().await != "6" {} };
    let ((), mut ws) = tokio::join!(poll, probe);
    ws.send("5").await.unwrap();
    ws
}

/// Asserts that the only client is counted as one on a WebSocket.
async fn is_on_websocket(gateway: &Gateway) {
    let metrics = request(gateway.address, "GET /metrics", "", b"").await;
    let text = metrics.text().await;
    let clients =
        |transport| format!(r#"linerate_clients{{protocol="socketio",transport="{transport}"}}"#);
    assert!(
        text.contains(&format!("{} 1", clients("websocket"))),
        "{text}"
    );
    assert!(
        !text.contains(&format!("{} 1", clients("polling"))),
        "{text}"
    );
}

#[tokio::test]
async fn a_websocket_continues_the_session() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let mut ws = upgraded(&client).await;
    gateway.publish("all", "1").await;
    assert_eq!(text(&mut ws).await, "42[\"message\",1]");
    gateway.publish_bytes("all", b"\xff\0").await;
    assert!(text(&mut ws).await.starts_with("451-[\"message\""));
    let attachment = in_time(ws.recv()).await.unwrap().unwrap();
    assert_eq!(attachment.as_bytes(), b"\xff\0");
    ws.send("42[\"a\"]").await.unwrap();
    assert!(text(&mut ws).await.contains(r#""event":"a""#));
    assert_eq!(gateway.info().clients, 1);
    is_on_websocket(&gateway).await;
    in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn the_websocket_may_be_compressed_or_on_an_http2_stream() {
    let gateway = Gateway::open(ON).await;
    let mut options = linerate::Options::default();
    options.deflate = Some(linerate::Deflate::default());
    let compressed = Client::new().with_options(options);
    for client in [compressed, Client::new().with_http2_prior_knowledge()] {
        let (session, _) = Polling::connect(&gateway).await;
        let mut ws = session.websocket_of(&client).await.unwrap();
        ws.send("2probe").await.unwrap();
        assert_eq!(text(&mut ws).await, "3probe");
        let payload = format!("\"{}\"", "x".repeat(10_000));
        gateway.publish("all", &payload).await;
        ws.send("5").await.unwrap();
        let event = format!("42[\"message\",{payload}]");
        assert_eq!(text(&mut ws).await, event);
        gateway.publish("all", &payload).await;
        assert_eq!(text(&mut ws).await, event);
        drop(ws);
        until(async || gateway.info().clients == 0).await;
    }
}

#[tokio::test]
async fn what_no_poll_has_fetched_arrives_on_the_websocket() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let mut ws = client.websocket().await.unwrap();
    ws.send("2probe").await.unwrap();
    assert_eq!(text(&mut ws).await, "3probe");
    deliver(&gateway, 3).await;
    ws.send("5").await.unwrap();
    for number in 1..=3 {
        let expected = format!("42[\"message\",{number}]");
        assert_eq!(text(&mut ws).await, expected);
    }
}

#[tokio::test]
async fn a_session_can_be_upgraded_before_it_is_connected() {
    let gateway = Gateway::open(ON).await;
    let client = Polling::open(&gateway).await;
    let mut ws = upgraded(&client).await;
    ws.send("40").await.unwrap();
    assert!(text(&mut ws).await.starts_with("40{"));
}

#[tokio::test]
async fn a_session_can_be_upgraded_while_a_backend_is_asked_about_its_client() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[client]\nconnect_backend = \"connect\"\n{}",
        backend.backends(&["connect"], "")
    );
    let gateway = Gateway::open(&toml).await;
    let held = Arc::new(Semaphore::new(0));
    backend.answers("connect", Answer::Held(held.clone()));
    let client = Polling::open(&gateway).await;
    client.send("40").await;
    assert_eq!(
        backend.until_asked("connect").await[0].body["transport"],
        "polling"
    );
    let mut ws = upgraded(&client).await;
    held.add_permits(1);
    assert!(text(&mut ws).await.starts_with("40{"));
    is_on_websocket(&gateway).await;
}

#[tokio::test]
async fn requests_of_a_session_that_was_upgraded_are_refused_and_change_nothing() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let mut ws = upgraded(&client).await;
    gateway.publish("all", "1").await;
    assert_eq!(text(&mut ws).await, "42[\"message\",1]");
    let expected = r#"{"code":3,"message":"Bad request"}"#;
    assert_eq!(client.ask().await.text().await, expected);
    assert_eq!(client.post(b"3").await.text().await, expected);
    assert!(client.websocket().await.is_err());
    gateway.publish("all", "2").await;
    assert_eq!(text(&mut ws).await, "42[\"message\",2]");
}

#[tokio::test]
async fn a_client_goes_on_polling_if_its_websocket_fails() {
    let toml = format!("{ON}[client]\nconnect_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    for packets in [&["40"][..], &["2probe", "3"], &["2probe"], &[]] {
        let mut ws = client.websocket().await.unwrap();
        for packet in packets {
            ws.send(*packet).await.unwrap();
        }
        in_time(async { while let Ok(Some(_)) = ws.recv().await {} }).await;
        gateway.publish("all", "1").await;
        client.expect(&["42[\"message\",1]"]).await;
    }
    let ws = client.websocket().await.unwrap();
    drop(ws);
    until(async || client.websocket().await.is_ok()).await;
}

#[tokio::test]
async fn polls_during_a_probe_end_after_a_pause() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let _ws = client.websocket().await.unwrap();
    assert!(client.websocket().await.is_err(), "one at a time");
    let begun = std::time::Instant::now();
    for _ in 0..3 {
        assert_eq!(client.poll().await, "6");
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn the_server_closes_the_websocket_with_its_code() {
    let toml = format!("{ON}[client]\nping_interval_s = 1\npong_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    let mut ws = upgraded(&client).await;
    while let Some(ping) = in_time(ws.recv()).await.unwrap() {
        assert_eq!(ping.as_text(), Some("2"));
    }
    in_time(ws.close(CloseCode::NORMAL, "")).await.unwrap();
    assert_eq!(ws.closed().unwrap().code, 3012);
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn a_client_that_upgrades_while_it_is_disconnected_is_told_on_the_websocket() {
    let gateway = Gateway::guarded(ON).await;
    let client = Polling::open(&gateway).await;
    let token = token(&json!({"sub": "ann"}));
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    client.poll().await;
    let mut ws = client.websocket().await.unwrap();
    ws.send("2probe").await.unwrap();
    assert_eq!(text(&mut ws).await, "3probe");
    gateway.api("disconnect", &json!({"user": "ann"})).await;
    until(async || gateway.info().clients == 0).await;
    ws.send("5").await.unwrap();
    assert_eq!(text(&mut ws).await, "41");
    assert!(in_time(ws.recv()).await.unwrap().is_none());
    client.is_unknown().await;
}
