//! Opening, keeping and closing connections, and connecting to namespaces.

use serde_json::json;

use super::{
    ON,
    client::{Arrived, SocketIo},
};
use crate::{
    backend::support::{Answer, Backend},
    http::request,
    support::{Gateway, SECRET, config, in_time, seconds_from_now, token},
};

#[tokio::test]
async fn the_first_packet_describes_the_connection() {
    let gateway = Gateway::open(&format!("{ON}[client]\nmessage_bytes_max = 5_000\n")).await;
    let [one, other] = [
        SocketIo::open(&gateway).await,
        SocketIo::open(&gateway).await,
    ];
    let handshake = one.handshake;
    let sid = handshake["sid"].as_str().unwrap();
    assert_ne!(sid, other.handshake["sid"].as_str().unwrap());
    let expected = json!({
        "sid": sid, "upgrades": [], "pingInterval": 25_000, "pingTimeout": 8_000,
        "maxPayload": 5_000,
    });
    assert_eq!(handshake, expected);
}

#[tokio::test]
async fn other_versions_and_transports_are_refused() {
    let gateway = Gateway::open(ON).await;
    let headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (query, headers) in [
        ("EIO=3&transport=websocket", headers),
        ("EIO=4&transport=websocket&sid=a", headers),
        ("transport=websocket", headers),
        ("EIO=4&transport=webtransport", ""),
    ] {
        let target = format!("GET /socket.io/?{query}");
        let answer = request(gateway.address, &target, headers, b"").await;
        assert!((400..500).contains(&answer.status), "{query}");
    }
}

#[tokio::test]
async fn the_protocol_is_off_unless_it_is_switched_on() {
    let gateway = Gateway::open("").await;
    let target = "GET /socket.io/?EIO=4&transport=websocket";
    let headers = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let answer = request(gateway.address, target, headers, b"").await;
    assert_eq!(answer.status, 404);
    assert!(answer.text().await.contains("protocols.socketio = false"));
}

#[tokio::test]
async fn a_client_connects_to_each_namespace() {
    let gateway = Gateway::open(ON).await;
    let (mut client, sid) = SocketIo::connect(&gateway).await;
    client.send("40/chat,{}").await;
    assert_eq!(client.connected("40/chat,").await, sid);
    assert_ne!(client.handshake["sid"].as_str().unwrap(), sid);
    assert_eq!(gateway.info().clients, 1);
}

#[tokio::test]
async fn a_client_that_connects_twice_gets_the_same_answer_twice() {
    let gateway = Gateway::open(ON).await;
    let (mut client, sid) = SocketIo::connect(&gateway).await;
    client.send("40").await;
    assert_eq!(client.connected("40").await, sid);
    gateway.publish("all", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn the_main_namespace_is_not_needed() {
    let gateway = Gateway::open(ON).await;
    let mut client = SocketIo::open(&gateway).await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    gateway.publish("all", "1").await;
    gateway.publish("/chat:all", "2").await;
    client.expect(&[r#"42/chat,["message",2]"#]).await;
}

#[tokio::test]
async fn an_unknown_namespace_is_refused_and_the_connection_stays() {
    let gateway = Gateway::open(ON).await;
    let mut client = SocketIo::open(&gateway).await;
    client.expect_nothing().await;
    client.send("40").await;
    client.connected("40").await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn a_token_authenticates_the_client() {
    let gateway = Gateway::guarded(ON).await;
    let mut client = SocketIo::open(&gateway).await;
    let refused = r#"44{"message":"permission denied","data":{"code":3507}}"#;
    for auth in ["", "{}", r#"{"token":7}"#] {
        client.send(&format!("40{auth}")).await;
        client.expect(&[refused]).await;
    }
    client.send(r#"40{"token":"wrong"}"#).await;
    let error = client.text().await;
    assert!(
        error.starts_with(r#"44{"message":"invalid token"#),
        "{error}"
    );
    assert!(error.ends_with(r#""data":{"code":3500}}"#), "{error}");
    let expired = token(&json!({"sub": "ann", "exp": 1}));
    client.send(&format!(r#"40{{"token":"{expired}"}}"#)).await;
    let refused = r#"44{"message":"token expired","data":{"code":109}}"#;
    client.expect(&[refused]).await;
    let token = token(&json!({"sub": "ann"}));
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    client.connected("40").await;
    assert_eq!(gateway.info().users, 1);
}

#[tokio::test]
async fn all_namespaces_of_a_connection_are_of_one_user() {
    let gateway = Gateway::guarded(ON).await;
    let mut client = SocketIo::open(&gateway).await;
    let [ann, bob] = ["ann", "bob"].map(|user| token(&json!({"sub": user})));
    client.send(&format!(r#"40{{"token":"{ann}"}}"#)).await;
    client.connected("40").await;
    client
        .send(&format!(r#"40/chat,{{"token":"{bob}"}}"#))
        .await;
    let refused = r#"44/chat,{"message":"permission denied: connection has another user","data":{"code":103}}"#;
    client.expect(&[refused]).await;
    client
        .send(&format!(r#"40/chat,{{"token":"{ann}"}}"#))
        .await;
    client.connected("40/chat,").await;
}

#[tokio::test]
async fn a_backend_is_asked_about_each_namespace() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[client]\nconnect_backend = \"connect\"\n{}",
        backend.backends(&["connect"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    backend.returns("connect", json!({"user": "ann", "channels": ["news"]}));
    let mut client = SocketIo::open(&gateway).await;
    client.send(r#"40{"key":7}"#).await;
    client.connected("40").await;
    let asked = backend.only().body;
    assert_eq!(asked["data"], json!({"key": 7}));
    assert_eq!(asked["namespace"], "/");
    assert_eq!(
        (&asked["protocol"], &asked["transport"]),
        (&json!("socketio"), &json!("websocket"))
    );
    gateway.publish("news", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
    let refused = json!({"error": {"code": 4_000, "message": "not for you"}});
    backend.answers("connect", Answer::Json(refused));
    client.send("40/chat,").await;
    client
        .expect(&[r#"44/chat,{"message":"not for you","data":{"code":4000}}"#])
        .await;
    assert_eq!(backend.only().body["namespace"], "/chat");
}

#[tokio::test]
async fn a_client_whose_backend_fails_is_closed_so_that_it_reconnects() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[client]\nconnect_backend = \"connect\"\n{}",
        backend.backends(&["connect"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    backend.answers("connect", Answer::Status(500));
    let mut client = SocketIo::open(&gateway).await;
    client.send("40").await;
    client.closed(3004).await;
}

#[tokio::test]
async fn the_server_pings_and_closes_a_client_that_does_not_answer() {
    let toml = format!("{ON}[client]\nping_interval_s = 1\npong_timeout_s = 1\n");
    let gateway = Gateway::open(&toml).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    let ping = in_time(client.ws.recv()).await.unwrap().unwrap();
    assert_eq!(ping.as_text(), Some("2"));
    client.send("3").await;
    let ping = in_time(client.ws.recv()).await.unwrap().unwrap();
    assert_eq!(ping.as_text(), Some("2"));
    client.closed(3012).await;
}

#[tokio::test]
async fn a_client_that_connects_to_no_namespace_is_closed() {
    let gateway = Gateway::open(&format!("{ON}[client]\nconnect_timeout_s = 1\n")).await;
    let client = SocketIo::open(&gateway).await;
    client.closed(3502).await;
}

#[tokio::test]
async fn a_client_can_close_with_a_packet() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send("1").await;
    client.closed(1000).await;
    let mut client = SocketIo::open(&gateway).await;
    client.send("1").await;
    client.closed(1000).await;
}

#[tokio::test]
async fn a_client_that_must_not_reconnect_is_disconnected_from_its_namespaces() {
    let gateway = Gateway::guarded(ON).await;
    let token = token(&json!({"sub": "ann"}));
    let mut client = SocketIo::open(&gateway).await;
    for namespace in ["", "/chat,"] {
        client
            .send(&format!(r#"40{namespace}{{"token":"{token}"}}"#))
            .await;
        client.connected(&format!("40{namespace}")).await;
    }
    gateway.api("disconnect", &json!({"user": "ann"})).await;
    client.expect(&["41", "41/chat,"]).await;
    client.closed(3503).await;
}

#[tokio::test]
async fn a_token_that_expires_ends_the_connection_and_the_client_may_reconnect() {
    let toml = format!(
        "[auth.token]\nhmac_secret_key = \"{SECRET}\"\nleeway_s = 0\n{ON}[client]\nrefresh_grace_s = 1\n"
    );
    let gateway = Gateway::start(config(&toml)).await;
    let exp = seconds_from_now(2);
    let token = token(&json!({"sub": "ann", "exp": exp}));
    let mut client = SocketIo::open(&gateway).await;
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    client.connected("40").await;
    assert_eq!(client.next().await, Arrived::Closed(3005));
}
