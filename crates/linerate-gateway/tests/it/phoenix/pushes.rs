//! Events of clients.

use linerate::Client;
use serde_json::json;

use super::{
    ON,
    client::{Arrived, Phoenix, error, ok},
};
use crate::{
    backend::support::{Answer, Backend},
    support::{Gateway, config, message},
};

const PUBLISHING: &str = "[protocols]\nphoenix = true\n[channel]\nallow_publish = true\n";

async fn gateway(backend: &Backend) -> Gateway {
    let backends = backend.backends(&["rpc"], "");
    let toml = format!("{ON}[channel]\nrpc_backend = \"rpc\"\n{backends}");
    Gateway::start(config(&toml)).await
}

#[tokio::test]
async fn an_event_is_a_call_of_the_backend() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    backend.returns("rpc", json!({"data": {"sum": 3}}));
    let answer = client.push("room:1", "add", json!({"a": 1})).await;
    assert_eq!(answer, ok(json!({"sum": 3})));
    let asked = backend.only().body;
    assert_eq!(
        (&asked["method"], &asked["channel"]),
        (&json!("add"), &json!("room:1"))
    );
    assert_eq!(asked["data"], json!({"a": 1}));
    backend.answers(
        "rpc",
        Answer::Json(json!({"error": {"code": 400, "message": "no"}})),
    );
    assert_eq!(
        client.push("room:1", "add", json!({})).await,
        error(400, "no")
    );
    backend.answers("rpc", Answer::Status(500));
    let failed = client.push("room:1", "add", json!({})).await;
    assert_eq!(failed, error(100, "internal server error"));
}

#[tokio::test]
async fn an_event_without_a_reference_is_not_answered() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    client.send(json!(["1", null, "room:1", "moved", {}])).await;
    client.expect_nothing().await;
    assert_eq!(backend.only().body["method"], "moved");
}

#[tokio::test]
async fn binary_events_have_binary_answers() {
    let backend = Backend::start().await;
    let backends = backend.backends(&["rpc"], "binary = true");
    let toml = format!("{ON}[channel]\nrpc_backend = \"rpc\"\n{backends}");
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    backend.returns("rpc", json!({"b64data": "/w=="}));
    client
        .ws
        .send(&b"\x00\x01\x01\x06\x0212room:1up\xfe"[..])
        .await
        .unwrap();
    let answer = b"\x01\x01\x01\x06\x0212room:1ok\xff".to_vec();
    assert_eq!(client.next().await, Arrived::Binary(answer));
    assert_eq!(backend.only().body["b64data"], "/g==");
}

#[tokio::test]
async fn without_a_backend_an_event_is_broadcast() {
    let gateway = Gateway::open(PUBLISHING).await;
    let mut clients = [
        Phoenix::connect(&gateway).await,
        Phoenix::connect(&gateway).await,
    ];
    for client in &mut clients {
        client.join("room:1", json!({})).await;
    }
    clients[0]
        .send(json!(["1", "2", "room:1", "said", {"a": 1}]))
        .await;
    let broadcast = json!([null, null, "room:1", "said", {"a": 1}]);
    assert_eq!(clients[1].json().await, broadcast);
    let mut arrived = [clients[0].json().await, clients[0].json().await];
    arrived.sort_by_key(|message| message[3].as_str().map(str::to_owned));
    let answer = json!(["1", "2", "room:1", "phx_reply", ok(json!({}))]);
    assert_eq!(arrived, [answer, broadcast]);
}

#[tokio::test]
async fn events_that_are_not_allowed_are_refused() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    let unmatched = json!({"status": "error", "response": {"reason": "unmatched topic"}});
    assert_eq!(client.push("room:1", "said", json!({})).await, unmatched);
    client.join("room:1", json!({})).await;
    let denied = error(103, "permission denied");
    assert_eq!(client.push("room:1", "said", json!({})).await, denied);
    let reserved = client.push("room:1", "phx_close", json!({})).await;
    assert_eq!(
        reserved,
        error(107, "bad request: event \"phx_close\" is reserved")
    );
    client.send(json!(["0", "2", "room:1", "said", {}])).await;
    assert_eq!(client.response("0", "2", "room:1").await, unmatched);
}

#[tokio::test]
async fn events_reach_the_clients_of_other_protocols() {
    let gateway = Gateway::open(PUBLISHING).await;
    let mut raw = gateway.raw(&Client::new(), "channel=room:1").await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    client
        .send(json!(["1", null, "room:1", "said", {"a": 1}]))
        .await;
    assert_eq!(message(&mut raw).await.as_text(), Some("{\"a\":1}"));
}
