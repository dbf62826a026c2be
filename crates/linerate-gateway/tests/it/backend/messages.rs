//! `publish`, `rpc` and `send`.

use serde_json::{Value, json};

use super::support::{Answer, Backend};
use crate::support::{Json, error};

const PUBLISH: &str = "[channel]\nallow_subscribe = true\nallow_publish = false\nhistory_size = 9\n\
                       allow_history = true\npublish_backend = \"publish\"\n";

async fn publish(client: &mut Json, data: &Value) -> Value {
    let command = json!({"id": 3, "publish": {"channel": "a", "data": data}});
    client.send(&command.to_string()).await;
    client.next_reply().await
}

#[tokio::test]
async fn backend_decides_what_is_published() {
    let backend = Backend::start().await;
    let gateway = backend.gateway(&["publish"], "", PUBLISH).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    backend.returns("publish", json!({"data": {"text": "mild"}}));
    client
        .send(r#"{"id":3,"publish":{"channel":"a","data":{"text":"rude"}}}"#)
        .await;
    let lines = [client.next().await, client.next().await];
    let push = lines.iter().find(|line| !line["push"].is_null()).unwrap();
    assert_eq!(push["push"]["pub"]["data"], json!({"text": "mild"}));
    let asked = backend.only();
    assert_eq!(asked.body["data"], json!({"text": "rude"}));
    assert_eq!(asked.body["channel"], "a");
    backend.answers(
        "publish",
        Answer::Json(json!({"error": {"code": 400, "message": "no"}})),
    );
    assert_eq!(error(&publish(&mut client, &json!(1)).await), (400, "no"));
    backend.answers("publish", Answer::Status(503));
    assert_eq!(error(&publish(&mut client, &json!(2)).await).0, 100);
    assert_eq!(backend.asked().len(), 2, "publications are not repeated");
    backend.returns("publish", json!({"skip_history": true}));
    assert!(error(&publish(&mut client, &json!(3)).await).0 == 0);
    client
        .send(r#"{"id":4,"history":{"channel":"a","limit":9}}"#)
        .await;
    let history = client.next_reply().await;
    let publications = history["history"]["publications"].as_array().unwrap();
    assert_eq!(publications.len(), 1, "{history}");
}

#[tokio::test]
async fn methods_go_to_the_backend_of_their_namespace() {
    let backend = Backend::start().await;
    let toml = "[channel]\nrpc_backend = \"rpc\"\n[[namespace]]\nname = \"shop\"\n\
                rpc_backend = \"shop\"\n[[namespace]]\nname = \"none\"\nrpc_backend = \"\"\n";
    let gateway = backend.gateway(&["rpc", "shop"], "", toml).await;
    backend.returns("rpc", json!({"data": {"sum": 3}}));
    backend.returns("shop", json!({}));
    let mut client = Json::connect(&gateway).await;
    let reply = client
        .ask(r#"{"id":2,"rpc":{"method":"sum","data":[1, 2]}}"#)
        .await;
    assert_eq!(reply, json!({"id": 2, "rpc": {"data": {"sum": 3}}}));
    let asked = backend.only();
    assert_eq!(
        (asked.event.as_str(), &asked.body["data"]),
        ("rpc", &json!([1, 2]))
    );
    assert_eq!(asked.body["method"], "sum");
    let reply = client.ask(r#"{"id":3,"rpc":{"method":"shop:list"}}"#).await;
    assert_eq!(reply, json!({"id": 3, "rpc": {}}));
    assert_eq!(backend.only().name, "shop");
    let reply = client.ask(r#"{"id":4,"rpc":{"method":"none:x"}}"#).await;
    assert_eq!(error(&reply).0, 104, "{reply}");
    assert!(backend.asked().is_empty());
}

#[tokio::test]
async fn messages_reach_the_backend_and_have_no_answer() {
    let backend = Backend::start().await;
    let toml = "send_backend = \"send\"\n";
    let gateway = backend.gateway(&["send"], "", toml).await;
    backend.returns("send", json!({}));
    let mut client = Json::connect(&gateway).await;
    client.send(r#"{"send":{"data":{"typing":true}}}"#).await;
    let reply = client.ask(r#"{"id":2,"ping":{}}"#).await;
    assert_eq!(reply["id"], 2, "{reply}");
    assert_eq!(backend.only().body["data"], json!({"typing": true}));
    backend.answers("send", Answer::Status(500));
    client.send(r#"{"send":{"data":1}}"#).await;
    assert_eq!(client.ask(r#"{"id":3,"ping":{}}"#).await["id"], 3);
    let answer = json!({"disconnect": {"code": 4000, "reason": "flood"}});
    backend.answers("send", Answer::Json(answer));
    client.send(r#"{"send":{"data":1}}"#).await;
    assert_eq!(client.closed(4_000).await, "flood");
}
