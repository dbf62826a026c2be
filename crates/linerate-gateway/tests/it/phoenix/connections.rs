//! Opening, keeping and closing connections.

use serde_json::json;

use super::{
    ON,
    client::{PATH, Phoenix, ok},
};
use crate::{
    backend::support::{Answer, Backend},
    http::request,
    support::{Gateway, SECRET, config, token},
};

const UPGRADE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Returns the status and the body of the answer to a request for a WebSocket.
async fn refused(gateway: &Gateway, path: &str, headers: &str) -> (u16, String) {
    let headers = format!("{UPGRADE}{headers}");
    let answer = request(gateway.address, &format!("GET {path}"), &headers, b"").await;
    (answer.status, answer.text().await)
}

#[tokio::test]
async fn only_version_2_0_0_is_accepted() {
    let gateway = Gateway::open(ON).await;
    for (path, reason) in [
        ("/socket/websocket", "vsn is missing, and must be 2.0.0"),
        (
            "/socket/websocket?vsn=1.0.0",
            "vsn \"1.0.0\" is not supported, only 2.0.0",
        ),
    ] {
        let (status, text) = refused(&gateway, path, "").await;
        assert_eq!(status, 400);
        assert!(text.contains(reason), "{text}");
    }
    assert_eq!(gateway.info().clients, 0);
}

#[tokio::test]
async fn the_protocol_is_off_unless_it_is_switched_on() {
    let gateway = Gateway::open("").await;
    let (status, text) = refused(&gateway, PATH, "").await;
    assert_eq!(status, 404);
    assert!(text.contains("protocols.phoenix = false"), "{text}");
}

#[tokio::test]
async fn the_subprotocol_is_confirmed_and_carries_a_token() {
    let gateway = Gateway::guarded(ON).await;
    let token = token(&json!({"sub": "ann"}));
    let encoded = base64(token.as_bytes());
    let offered =
        format!("Sec-WebSocket-Protocol: phoenix, base64url.bearer.phx.{encoded}\r\n{UPGRADE}");
    let target = format!("GET {PATH}");
    let answer = request(gateway.address, &target, &offered, b"").await;
    assert_eq!(answer.status, 101);
    let head = answer.head.to_ascii_lowercase();
    assert!(
        head.contains("sec-websocket-protocol: phoenix\r\n"),
        "{head}"
    );
    let malformed = "Sec-WebSocket-Protocol: phoenix, base64url.bearer.phx.!\r\n";
    let (status, text) = refused(&gateway, PATH, malformed).await;
    assert_eq!(status, 400);
    assert!(text.contains("authToken is not base64 of a text"), "{text}");
}

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
    STANDARD_NO_PAD.encode(bytes)
}

#[tokio::test]
async fn a_client_that_may_not_connect_is_refused_before_the_connection_is_open() {
    let gateway = Gateway::guarded(ON).await;
    let expired = token(&json!({"sub": "ann", "exp": 1}));
    for (token, reason) in [
        ("", "permission denied"),
        ("wrong", "invalid token"),
        (&*expired, "token expired"),
    ] {
        let (status, text) = refused(&gateway, &format!("{PATH}&token={token}"), "").await;
        assert_eq!(status, 401, "{text}");
        assert!(text.contains(reason), "{text}");
    }
    let token = token(&json!({"sub": "ann"}));
    let mut client = Phoenix::open(&gateway, &format!("{PATH}&token={token}")).await;
    client.expect_nothing().await;
    assert_eq!(gateway.info().users, 1);
}

#[tokio::test]
async fn a_backend_is_asked_with_the_parameters_before_the_connection_is_open() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[client]\nconnect_backend = \"connect\"\n[auth.token]\nhmac_secret_key = \"{SECRET}\"\n{}",
        backend.backends(&["connect"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    backend.answers(
        "connect",
        Answer::Json(json!({"error": {"code": 403, "message": "no"}})),
    );
    let path = format!("{PATH}&room=a");
    assert_eq!(
        refused(&gateway, &path, "").await,
        (400, "no (403)\n".to_owned())
    );
    backend.answers("connect", Answer::Status(500));
    assert_eq!(refused(&gateway, &path, "").await.0, 503);
    backend.asked();
    backend.returns("connect", json!({"user": "ann", "channels": ["news"]}));
    let mut client = Phoenix::open(&gateway, &path).await;
    let asked = backend.only().body;
    assert_eq!(asked["data"], json!({"room": "a", "vsn": "2.0.0"}));
    assert_eq!(
        (&asked["protocol"], &asked["name"]),
        (&json!("phoenix"), &json!("phoenix"))
    );
    // A client is in no topic that it has not joined.
    gateway.publish("news", "1").await;
    client.expect_nothing().await;
    assert_eq!(gateway.info().users, 1);
}

#[tokio::test]
async fn heartbeats_are_answered() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.expect_nothing().await;
    client
        .send(json!([null, 7, "phoenix", "heartbeat", {}]))
        .await;
    let expected = json!([null, 7, "phoenix", "phx_reply", ok(json!({}))]);
    assert_eq!(client.json().await, expected);
}

#[tokio::test]
async fn a_silent_client_is_closed() {
    let toml = format!("{ON}[phoenix]\nheartbeat_timeout_s = 2\n");
    let gateway = Gateway::open(&toml).await;
    let client = Phoenix::connect(&gateway).await;
    assert_eq!(client.closed(1002).await, "no pong");
}
