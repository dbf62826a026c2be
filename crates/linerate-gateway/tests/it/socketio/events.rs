//! Events of clients.

use serde_json::json;

use super::{
    ON,
    client::{Arrived, SocketIo},
};
use crate::{
    backend::support::{Answer, Backend},
    support::{Gateway, config},
};

/// Starts a gateway that passes on events, except those of the namespace `/chat` that are to be
/// acknowledged.
async fn gateway(backend: &Backend) -> Gateway {
    let toml = format!(
        "{ON}[socketio.replies]\nsaved = '[\"ok\", 1]'\n\"/chat:saved\" = '[]'\n\
         [client]\nsend_backend = \"send\"\n[channel]\nrpc_backend = \"rpc\"\n\
         [[namespace]]\nname = \"/chat\"\nrpc_backend = \"\"\n{}",
        backend.backends(&["rpc", "send"], "")
    );
    Gateway::start(config(&toml)).await
}

#[tokio::test]
async fn an_event_that_is_to_be_acknowledged_is_a_call() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    for (data, ack) in [
        (json!({"data": {"sum": 3}}), r#"4312[{"sum":3}]"#),
        (json!({"data": [1, "a"]}), r#"4312[1,"a"]"#),
        (json!({}), "4312[]"),
    ] {
        backend.returns("rpc", data);
        client.send(r#"4212["add",1,{"b":2}]"#).await;
        client.expect(&[ack]).await;
        let asked = backend.only().body;
        assert_eq!(asked["method"], "add");
        assert_eq!(asked["data"], json!([1, {"b": 2}]));
    }
}

#[tokio::test]
async fn acknowledgements_have_the_ids_of_their_events() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    backend.returns("rpc", json!({"data": 1}));
    for id in ["0", "18446744073709551615", "7"] {
        client.send(&format!(r#"42{id}["a"]"#)).await;
    }
    client
        .expect(&["430[1]", "4318446744073709551615[1]", "437[1]"])
        .await;
}

#[tokio::test]
async fn another_event_is_a_message() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    backend.returns("send", json!({}));
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    client.send(r#"42["moved",1,"a"]"#).await;
    let asked = backend.until_asked("send").await.remove(0).body;
    let expected = json!({"namespace": "/", "event": "moved", "args": [1, "a"]});
    assert_eq!(asked["data"], expected);
    client.send(r#"42/chat,["said"]"#).await;
    let asked = backend.until_asked("send").await.remove(0).body;
    let expected = json!({"namespace": "/chat", "event": "said", "args": []});
    assert_eq!(asked["data"], expected);
    client.expect_nothing().await;
}

#[tokio::test]
async fn attachments_reach_the_backend_and_return() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    let answer = json!({"data": {"bytes": {"_placeholder": true, "base64": "BAU="}}});
    backend.returns("rpc", answer);
    client
        .send(r#"452-7["save",{"_placeholder":true,"num":1},{"a":{"_placeholder":true,"num":0}}]"#)
        .await;
    client.attach(b"\x01").await;
    client.attach(b"\x02\x03").await;
    let ack = r#"461-7[{"bytes":{"_placeholder":true,"num":0}}]"#;
    client.expect(&[ack]).await;
    assert_eq!(client.next().await, Arrived::Binary(vec![4, 5]));
    let expected = json!([
        {"_placeholder": true, "base64": "AgM="},
        {"a": {"_placeholder": true, "base64": "AQ=="}},
    ]);
    assert_eq!(backend.only().body["data"], expected);
}

#[tokio::test]
async fn replies_of_the_configuration_need_no_backend() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    client.send(r#"421["saved",1]"#).await;
    client.send(r#"42/chat,2["saved"]"#).await;
    client.expect(&[r#"431["ok", 1]"#, "43/chat,2[]"]).await;
    assert!(backend.asked().is_empty());
}

#[tokio::test]
async fn an_event_that_the_backend_refuses_is_acknowledged_with_the_error() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    let refused = json!({"error": {"code": 400, "message": "no"}});
    backend.answers("rpc", Answer::Json(refused));
    client.send(r#"423["a"]"#).await;
    client
        .expect(&[r#"433[{"error":{"code":400,"message":"no"}}]"#])
        .await;
}

#[tokio::test]
async fn an_event_that_fails_for_now_is_not_acknowledged() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    backend.answers("rpc", Answer::Status(503));
    client.send(r#"423["a"]"#).await;
    let error = client.text().await;
    assert!(
        error.starts_with(r#"42["linerate:error",{"code":100,"#),
        "{error}"
    );
    assert!(error.ends_with(r#""event":"a"}]"#), "{error}");
}

#[tokio::test]
async fn without_a_backend_an_event_is_not_acknowledged() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send(r#"423["a"]"#).await;
    client.send(r#"42["b"]"#).await;
    client
        .expect(&[
            r#"42["linerate:error",{"code":104,"message":"method not found","event":"a"}]"#,
            r#"42["linerate:error",{"code":108,"message":"not available","event":"b"}]"#,
        ])
        .await;
}

#[tokio::test]
async fn a_backend_can_disconnect_the_client() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    let disconnect = json!({"disconnect": {"code": 4_500, "reason": "go"}});
    backend.answers("rpc", Answer::Json(disconnect));
    client.send(r#"423["a"]"#).await;
    client.expect(&["41"]).await;
    client.closed(4500).await;
}

#[tokio::test]
async fn acknowledgements_of_clients_are_ignored() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send("431[]").await;
    client.send(r#"461-1[{"_placeholder":true,"num":0}]"#).await;
    client.attach(b"a").await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn events_beyond_the_rate_are_refused_and_then_the_client_is_closed() {
    let toml = format!("{ON}[client]\ncommands_per_second_max = 2\n");
    let gateway = Gateway::open(&toml).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    for _ in 0..9 {
        client.send(r#"42["a"]"#).await;
    }
    let mut codes = Vec::new();
    let last = loop {
        match client.next().await {
            Arrived::Text(text) => codes.push(text.contains(r#""code":111"#)),
            other => break other,
        }
    };
    assert!(codes.contains(&true), "{codes:?}");
    assert_eq!(last, Arrived::Closed(3013));
}
