//! `subscribe` and `sub_refresh`.

use linerate::Client;
use serde_json::json;

use super::support::{Answer, Backend};
use crate::{
    http::request,
    support::{Gateway, Json, SECRET, config, error, message, seconds_from_now, token},
};

/// A gateway that requires tokens to connect, and asks about channels that begin with `chat:`.
async fn gateway(backend: &Backend, events: &[&str]) -> Gateway {
    let options: String = events
        .iter()
        .map(|event| format!("{event}_backend = \"{event}\"\n"))
        .collect();
    let toml = format!("refresh_grace_s = 1\n[[namespace]]\nname = \"chat\"\n{options}");
    let toml = backend.toml(events, "", &toml);
    Gateway::start(config(&format!(
        "{toml}\n[auth.token]\nhmac_secret_key = \"{SECRET}\"\n"
    )))
    .await
}

async fn ann(gateway: &Gateway) -> Json {
    Json::connect_with(gateway, &token(&json!({"sub": "ann"}))).await
}

#[tokio::test]
async fn backend_decides_on_subscriptions_in_its_namespace() {
    let backend = Backend::start().await;
    backend.returns(
        "subscribe",
        json!({"data": {"topic": "x"}, "info": {"role": "admin"}}),
    );
    let gateway = gateway(&backend, &["subscribe"]).await;
    let mut client = ann(&gateway).await;
    let command = r#"{"id":2,"subscribe":{"channel":"chat:1","data":{"a":1}}}"#;
    let reply = client.ask(command).await;
    assert_eq!(reply["subscribe"]["data"], json!({"topic": "x"}), "{reply}");
    let asked = backend.only();
    assert_eq!(asked.body["user"], "ann");
    assert_eq!(asked.body["channel"], "chat:1");
    assert_eq!(asked.body["data"], json!({"a": 1}));
    gateway.publish("chat:1", "7").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 7);
    let other = client
        .ask(r#"{"id":3,"subscribe":{"channel":"news"}}"#)
        .await;
    assert_eq!(error(&other).0, 103, "{other}");
    assert!(backend.asked().is_empty());
}

#[tokio::test]
async fn a_token_for_the_channel_is_enough() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend, &["subscribe"]).await;
    let mut client = ann(&gateway).await;
    let token = token(&json!({"sub": "ann", "channel": "chat:1"}));
    let command = json!({"id": 2, "subscribe": {"channel": "chat:1", "token": token}});
    let reply = client.ask(&command.to_string()).await;
    assert!(reply["subscribe"].is_object(), "{reply}");
    assert!(backend.asked().is_empty());
}

#[tokio::test]
async fn refused_subscriptions_do_not_exist() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend, &["subscribe"]).await;
    let mut client = ann(&gateway).await;
    let refused = json!({"error": {"code": 403, "message": "not yours"}});
    for (answer, code) in [
        (Answer::Json(refused), 403),
        (Answer::Json(json!({})), 100),
        (Answer::Status(500), 100),
        (Answer::Text("<html>"), 100),
    ] {
        backend.answers("subscribe", answer);
        let reply = client
            .ask(r#"{"id":2,"subscribe":{"channel":"chat:1"}}"#)
            .await;
        assert_eq!(error(&reply).0, code, "{reply}");
    }
    gateway.publish("chat:1", "7").await;
    assert_eq!(client.ask(r#"{"id":3,"ping":{}}"#).await["id"], 3);
}

#[tokio::test]
async fn channels_in_urls_are_asked_about() {
    let backend = Backend::start().await;
    backend.returns("subscribe", json!({}));
    let gateway = gateway(&backend, &["subscribe"]).await;
    let token = token(&json!({"sub": "ann"}));
    let query = format!("channel=chat:1&channel=chat:2&token={token}");
    let mut raw = gateway.raw(&Client::new(), &query).await;
    gateway.publish("chat:2", "7").await;
    let published = message(&mut raw).await;
    assert_eq!(published.as_text().unwrap(), "7");
    let asked = backend.asked();
    let channels: Vec<_> = asked.iter().map(|one| &one.body["channel"]).collect();
    assert_eq!(channels, ["chat:1", "chat:2"]);
    backend.answers("subscribe", Answer::Json(json!({"error": {"code": 103}})));
    let target = format!("GET /sse?{query}");
    let answer = request(gateway.address, &target, "", b"").await;
    assert_eq!(answer.status, 403, "{}", answer.head);
}

#[tokio::test]
async fn backend_renews_subscriptions_without_their_clients() {
    let backend = Backend::start().await;
    backend.returns("subscribe", json!({"expire_at": seconds_from_now(0)}));
    backend.returns("sub_refresh", json!({"expire_at": seconds_from_now(1)}));
    let gateway = gateway(&backend, &["subscribe", "sub_refresh"]).await;
    let mut client = ann(&gateway).await;
    let reply = client.subscribe("chat:1").await;
    assert!(reply["subscribe"]["expires"].is_null(), "{reply}");
    backend.until_asked("sub_refresh").await;
    gateway.publish("chat:1", "7").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 7);
    backend.returns("sub_refresh", json!({"expired": true}));
    let push = client.next().await;
    assert_eq!(push["push"]["unsubscribe"]["code"], 2_501, "{push}");
    let last = backend.asked().pop().unwrap();
    assert_eq!(
        (&last.body["channel"], &last.body["user"]),
        (&json!("chat:1"), &json!("ann"))
    );
}
