//! Backends that are deaf, slow or wrong: clients are refused, and others do not notice.

use std::sync::Arc;

use linerate_gateway::config::Loader;
use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    support::{Answer, Backend, until},
    tls::Server,
};
use crate::{
    http::request,
    support::{Gateway, Json, config, error, in_time},
};

const OPTIONS: &str = "[[namespace]]\nname = \"chat\"\nsubscribe_backend = \"subscribe\"\n";
const BRIEF: &str = "timeout_ms = 50\nfailures_max = 3\nfailure_pause_ms = 600_000\n";

async fn subscribe(client: &mut Json) -> (u64, String) {
    let reply = client
        .ask(r#"{"id":2,"subscribe":{"channel":"chat:1"}}"#)
        .await;
    let (code, message) = error(&reply);
    (code, message.to_owned())
}

#[tokio::test]
async fn a_deaf_backend_refuses_its_clients_and_stalls_nobody_else() {
    let backend = Backend::start().await;
    backend.answers("subscribe", Answer::Nothing);
    let gateway = backend.gateway(&["subscribe"], BRIEF, OPTIONS).await;
    let mut asking = Json::connect(&gateway).await;
    let mut other = Json::connect(&gateway).await;
    other.subscribe("news").await;
    asking
        .send(r#"{"id":2,"subscribe":{"channel":"chat:1"}}"#)
        .await;
    backend.until_asked("subscribe").await;
    gateway.publish("news", "7").await;
    assert_eq!(other.next().await["push"]["pub"]["data"], 7);
    assert_eq!(error(&asking.next().await), (100, "internal server error"));
    for _ in 0..2 {
        assert_eq!(subscribe(&mut asking).await.0, 100);
    }
    backend.returns("subscribe", json!({}));
    assert_eq!(backend.asked().len(), 2);
    assert_eq!(subscribe(&mut asking).await.0, 100);
    assert!(backend.asked().is_empty(), "it is not asked for a while");
    let metrics = metrics(&gateway).await;
    for line in [
        "linerate_backend_paused{backend=\"subscribe\"} 1",
        "linerate_backend_requests{backend=\"subscribe\"} 0",
        "linerate_backend_seconds_count{backend=\"subscribe\",event=\"subscribe\",result=\"timeout\"} 3",
        "linerate_backend_seconds_count{backend=\"subscribe\",event=\"subscribe\",result=\"paused\"} 1",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
}

#[tokio::test]
async fn a_client_that_gives_up_leaves_nothing_behind() {
    let backend = Backend::start().await;
    backend.answers("subscribe", Answer::Nothing);
    let gateway = backend
        .gateway(&["subscribe"], "timeout_ms = 60_000", OPTIONS)
        .await;
    let mut client = Json::connect(&gateway).await;
    client
        .send(r#"{"id":2,"subscribe":{"channel":"chat:1"}}"#)
        .await;
    backend.until_asked("subscribe").await;
    drop(client);
    let none = "linerate_backend_requests{backend=\"subscribe\"} 0";
    until(async || metrics(&gateway).await.contains(none)).await;
}

#[tokio::test]
async fn commands_that_wait_count_towards_the_budget_and_are_limited() {
    let backend = Backend::start().await;
    let may_answer = Arc::new(Semaphore::new(0));
    backend.answers("rpc", Answer::Held(may_answer.clone()));
    let options = "[channel]\nrpc_backend = \"rpc\"\n";
    let more = "timeout_ms = 60_000";
    let gateway = backend.gateway(&["rpc"], more, options).await;
    let mut client = Json::connect(&gateway).await;
    let data = "x".repeat(60_000);
    let sends = tokio::spawn(async move {
        for id in 2..100 {
            let command = json!({"id": id, "rpc": {"method": "x", "data": data}});
            client.send(&command.to_string()).await;
        }
        for id in 2..100 {
            assert_eq!(client.next().await["id"], id);
        }
    });
    // The commands, what has been read of the next messages, and the question: far from the six
    // megabytes that the client sends.
    let (few, many) = (256 << 10, 1 << 20);
    until(async || messages_bytes(&gateway).await >= few).await;
    for _ in 0..20 {
        let used = messages_bytes(&gateway).await;
        assert!(used < many, "{used} bytes");
    }
    may_answer.add_permits(100);
    in_time(sends).await.unwrap();
}

async fn metrics(gateway: &Gateway) -> String {
    let answer = request(gateway.address, "GET /metrics", "", b"").await;
    answer.text().await
}

/// Returns how much of the budget messages use.
async fn messages_bytes(gateway: &Gateway) -> u64 {
    let metrics = metrics(gateway).await;
    let name = "linerate_memory_used_bytes{consumer=\"messages\"} ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap().parse::<f64>().unwrap() as u64
}

#[tokio::test]
async fn a_reload_replaces_backends() {
    let first = Backend::start().await;
    let second = Backend::start().await;
    first.returns("subscribe", json!({}));
    second.answers("subscribe", Answer::Json(json!({"error": {"code": 400}})));
    let gateway = first.gateway(&["subscribe"], "", OPTIONS).await;
    let mut client = Json::connect(&gateway).await;
    gateway.reload(config(&second.toml(&["subscribe"], "", OPTIONS)));
    assert_eq!(subscribe(&mut client).await.0, 400);
    gateway.reload(config(&first.toml(&["subscribe"], "", OPTIONS)));
    assert_eq!(subscribe(&mut client).await.0, 0);
    let message = |text: &str| {
        Loader::new()
            .with_text("test.toml", text)
            .load()
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        message("[channel]\nsubscribe_backend = \"x\""),
        "test.toml, line 2: channel.subscribe_backend = x is not the name of a [[backend]]"
    );
}

#[tokio::test]
async fn backends_verify_each_other_over_tls() {
    let tls = Server::start().await;
    let gateway = Gateway::start(config(&tls.toml(true))).await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.ask(r#"{"id":2,"rpc":{"method":"x"}}"#).await;
    assert_eq!(reply["rpc"]["data"], "over TLS", "{reply}");
    let gateway = Gateway::start(config(&tls.toml(false))).await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.ask(r#"{"id":2,"rpc":{"method":"x"}}"#).await;
    assert_eq!(error(&reply).0, 100, "without a certificate: {reply}");
}
