//! Long polling: opening and closing sessions, and packets in both directions.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::{
    ON,
    polling_client::{Polling, deliver},
};
use crate::{
    backend::support::{Backend, until},
    http::request,
    support::{Gateway, config, in_time, token},
};

#[tokio::test]
async fn a_session_begins_with_the_packet_that_describes_it() {
    let toml = format!("{ON}[client]\nmessage_bytes_max = 5_000\n");
    let gateway = Gateway::open(&toml).await;
    let [one, other] = [Polling::open(&gateway).await, Polling::open(&gateway).await];
    assert_ne!(one.sid, other.sid);
    let expected = json!({
        "sid": one.sid, "upgrades": ["websocket"], "pingInterval": 25_000, "pingTimeout": 8_000,
        "maxPayload": 5_000,
    });
    assert_eq!(one.handshake, expected);
}

#[tokio::test]
async fn events_pass_in_both_directions() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n{}",
        backend.backends(&["app"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let (client, sid) = Polling::connect(&gateway).await;
    assert_ne!(client.sid, sid);
    gateway.publish("all", "{\"price\":190}").await;
    client.expect(&[r#"42["message",{"price":190}]"#]).await;
    backend.returns("app", json!({"data": 3}));
    client.send("427[\"add\",1,2]").await;
    client.expect(&["437[3]"]).await;
    assert_eq!(backend.only().body["data"], json!([1, 2]));
}

#[tokio::test]
async fn packets_that_wait_for_a_poll_arrive_together_and_in_order() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    deliver(&gateway, 3).await;
    let packets: Vec<_> = (1..=3).map(|n| format!("42[\"message\",{n}]")).collect();
    assert_eq!(client.poll().await, packets.join("\u{1e}"));
}

#[tokio::test]
async fn a_poll_waits_for_a_packet() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let publish = async {
        sleep(Duration::from_millis(300)).await;
        gateway.publish("all", "1").await;
    };
    let (text, ()) = tokio::join!(client.poll(), publish);
    assert_eq!(text, "42[\"message\",1]");
}

#[tokio::test]
async fn attachments_are_base64_in_both_directions() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n{}",
        backend.backends(&["app"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let (client, _) = Polling::connect(&gateway).await;
    gateway.publish_bytes("all", b"\xff\0").await;
    let hole = r#"{"_placeholder":true,"num":0}"#;
    client
        .expect(&[&format!("451-[\"message\",{hole}]"), "b/wA="])
        .await;
    let back = json!([{"_placeholder": true, "base64": "AQI="}]);
    backend.returns("app", json!({"data": back}));
    client
        .send(&format!("451-7[\"save\",{hole}]\u{1e}b/wA=\u{1e}40/chat,"))
        .await;
    let asked = json!([{"_placeholder": true, "base64": "/wA="}]);
    assert_eq!(backend.until_asked("app").await[0].body["data"], asked);
    let mut packets = Vec::new();
    while packets.len() < 3 {
        let text = client.poll().await;
        packets.extend(text.split('\u{1e}').map(str::to_owned));
    }
    assert_eq!(packets[0], format!("461-7[{hole}]"));
    assert_eq!(packets[1], "bAQI=");
    assert!(packets[2].starts_with("40/chat,"), "{packets:?}");
}

#[tokio::test]
async fn a_client_that_polls_is_counted_with_its_transport() {
    let gateway = Gateway::guarded(ON).await;
    let client = Polling::open(&gateway).await;
    let token = token(&json!({"sub": "ann"}));
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    assert!(client.poll().await.starts_with("40{"));
    let info = gateway.info();
    assert_eq!((info.clients, info.users), (1, 1));
    let metrics = request(gateway.address, "GET /metrics", "", b"").await;
    let text = metrics.text().await;
    let line = r#"linerate_clients{protocol="socketio",transport="polling"} 1"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn a_client_can_close_with_a_packet() {
    let gateway = Gateway::open(ON).await;
    let (client, _) = Polling::connect(&gateway).await;
    let (text, ()) = tokio::join!(client.poll(), client.send("41\u{1e}1"));
    assert_eq!(text, "1");
    client.is_unknown().await;
    until(async || gateway.info().clients == 0).await;
}

#[tokio::test]
async fn the_server_closes_with_a_packet() {
    let gateway = Gateway::guarded(ON).await;
    let client = Polling::open(&gateway).await;
    let token = token(&json!({"sub": "ann"}));
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    client.poll().await;
    gateway.api("disconnect", &json!({"user": "ann"})).await;
    assert_eq!(client.poll().await, "41");
    assert_eq!(client.poll().await, "1");
    client.is_unknown().await;
}

#[tokio::test]
async fn the_server_pings_and_ends_the_session_of_a_client_that_does_not_answer() {
    let toml = format!("{ON}[client]\nping_interval_s = 1\npong_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    assert_eq!(client.poll().await, "2");
    client.send("3").await;
    assert_eq!(client.poll().await, "2");
    let mut last = client.poll().await;
    while last == "2" {
        last = client.poll().await;
    }
    assert_eq!(last, "1");
    client.is_unknown().await;
}

#[tokio::test]
async fn a_client_that_does_not_poll_again_is_forgotten() {
    let toml = format!("{ON}[client]\nping_interval_s = 1\npong_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let (client, _) = Polling::connect(&gateway).await;
    assert_eq!(gateway.info().clients, 1);
    in_time(until(async || gateway.info().clients == 0)).await;
    // What was to be sent last waits for a moment.
    sleep(Duration::from_secs(6)).await;
    client.is_unknown().await;
}

#[tokio::test]
async fn a_session_without_a_namespace_is_closed() {
    let toml = format!("{ON}[client]\nconnect_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let client = Polling::open(&gateway).await;
    assert_eq!(client.poll().await, "1");
}

#[tokio::test]
async fn pages_of_allowed_origins_can_read_the_responses() {
    let toml = format!("{ON}[server]\norigins = [\"https://example.com\"]\n");
    let gateway = Gateway::open(&toml).await;
    let target = "/socket.io/?EIO=4&transport=polling";
    let origin = "Origin: https://example.com\r\n";
    for method in ["GET", "POST", "OPTIONS"] {
        let target = format!("{method} {target}");
        let answer = request(gateway.address, &target, origin, b"").await;
        let head = answer.head.to_ascii_lowercase();
        let allowed = "access-control-allow-origin: https://example.com";
        assert!(head.contains(allowed), "{head}");
    }
    let target = format!("GET {target}");
    let origin = "Origin: https://example.org\r\n";
    let answer = request(gateway.address, &target, origin, b"").await;
    assert_eq!(answer.status, 403);
    assert_eq!(answer.text().await, r#"{"code":4,"message":"Forbidden"}"#);
}
