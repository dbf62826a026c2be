//! Opening, keeping and closing connections.

use serde_json::json;

use super::{
    APP,
    client::{KEY, Pusher, closed, open},
};
use crate::support::{Gateway, config};

#[tokio::test]
async fn a_socket_id_is_two_numbers() {
    let gateway = Gateway::open(APP).await;
    let [one, other] = [
        Pusher::connect(&gateway).await,
        Pusher::connect(&gateway).await,
    ];
    assert_ne!(one.socket_id, other.socket_id);
    let (first, second) = one.socket_id.split_once('.').unwrap();
    assert!(first.parse::<u32>().is_ok() && second.parse::<u32>().is_ok());
    assert_eq!(gateway.info().clients, 2);
}

#[tokio::test]
async fn other_apps_and_versions_are_refused() {
    let gateway = Gateway::open(APP).await;
    for (path, code) in [
        ("/app/other?protocol=7", 4001),
        ("/app/app-key", 4008),
        ("/app/app-key?protocol=x", 4006),
        ("/app/app-key?protocol=6", 4007),
    ] {
        closed(&mut open(&gateway, path).await, code).await;
    }
}

#[tokio::test]
async fn pings_of_clients_are_answered() {
    let gateway = Gateway::open(APP).await;
    Pusher::connect(&gateway).await.expect_nothing().await;
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_closed() {
    let toml = format!("{APP}[client]\nping_interval_s = 1\npong_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let path = format!("/app/{KEY}?protocol=7");
    let mut ws = open(&gateway, &path).await;
    let established = ws.recv().await.unwrap().unwrap();
    assert!(
        established
            .as_text()
            .unwrap()
            .contains("connection_established")
    );
    let ping = ws.recv().await.unwrap().unwrap();
    assert_eq!(
        ping.as_text(),
        Some(r#"{"event":"pusher:ping","data":"{}"}"#)
    );
    while let Some(message) = ws.recv().await.unwrap() {
        assert!(message.as_text().unwrap().contains("pusher:ping"));
    }
    assert_eq!(ws.closed().unwrap().code, 4201);
}

#[tokio::test]
async fn connections_over_the_quota_are_closed() {
    let gateway = Gateway::open(&format!("{APP}connections_max = 1\n")).await;
    let client = Pusher::connect(&gateway).await;
    let path = format!("/app/{KEY}?protocol=7");
    closed(&mut open(&gateway, &path).await, 4004).await;
    drop(client);
}

#[tokio::test]
async fn malformed_messages_end_the_connection() {
    let gateway = Gateway::open(APP).await;
    for message in [
        json!({}),
        json!([]),
        json!({"event": "pusher:subscribe", "data": 7}),
    ] {
        let mut client = Pusher::connect(&gateway).await;
        client.send(&message).await;
        client.closed(4009).await;
    }
    let mut client = Pusher::connect(&gateway).await;
    client.send(&json!({"event": "other"})).await;
    client.error(None).await;
}

#[tokio::test]
async fn too_many_messages_are_refused_and_then_end_the_connection() {
    let toml = format!("{APP}[client]\ncommands_per_second_max = 5\n");
    let gateway = Gateway::open(&toml).await;
    let mut client = Pusher::connect(&gateway).await;
    for number in 0..7 {
        client.ask(&format!("news-{number}"), "", None).await;
    }
    let mut events = Vec::new();
    for _ in 0..7 {
        events.push(client.next().await["event"].as_str().unwrap().to_owned());
    }
    events.sort();
    assert!(
        events[..2]
            .iter()
            .all(|event| event == "pusher:subscription_error")
    );
    assert!(
        events[2..]
            .iter()
            .all(|event| event == "pusher_internal:subscription_succeeded")
    );
    for number in 0..20 {
        client.ask(&format!("more-{number}"), "", None).await;
    }
    loop {
        let message = client.next_or_code().await;
        match message {
            Ok(message) => assert_eq!(message["event"], "pusher:subscription_error"),
            Err(code) => return assert_eq!(code, 4100),
        }
    }
}

#[tokio::test]
async fn the_protocol_is_off_unless_it_is_switched_on() {
    let gateway = Gateway::open("").await;
    let url = gateway.url("/app/app-key?protocol=7");
    assert!(linerate::Client::new().connect(&url).await.is_err());
    gateway.reload(config(APP));
    Pusher::connect(&gateway).await.expect_nothing().await;
}
