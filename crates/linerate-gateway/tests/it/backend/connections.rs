//! `connect` and `refresh`.

use linerate::Client;
use linerate_gateway::config::Secret;
use serde_json::json;

use super::support::{Answer, Backend, until};
use crate::{
    http::request,
    support::{API_KEY, Gateway, Json, config, error, message, seconds_from_now},
};

const CONNECT: &str = "connect_backend = \"connect\"\n";
const HEADERS: &str = "forwarded_headers = [\"Cookie\"]\nheaders = { X-From = \"linerate\" }\n";

#[tokio::test]
async fn backend_decides_who_a_client_is() {
    let backend = Backend::start().await;
    let result = json!({
        "user": "56", "info": {"name": "Ann"}, "data": {"hello": [1, 2]},
        "channels": ["news"], "subs": {"chat": {"data": {"topic": "x"}}},
    });
    backend.returns("connect", result);
    let gateway = backend.gateway(&["connect"], HEADERS, CONNECT).await;
    let agent = Client::new().with_header("Cookie", "session=7");
    let mut client = Json::open_as(&gateway, &agent).await;
    let command = r#"{"id":1,"connect":{"data":{"a":1},"name":"js","version":"5"}}"#;
    let reply = client.ask(command).await;
    let connected = &reply["connect"];
    assert_eq!(connected["data"], json!({"hello": [1, 2]}), "{reply}");
    assert!(connected["subs"]["news"].is_object(), "{reply}");
    assert_eq!(connected["subs"]["chat"]["data"], json!({"topic": "x"}));
    let asked = backend.only();
    let expected = json!({
        "client": connected["client"], "transport": "websocket", "protocol": "json",
        "encoding": "json", "name": "js", "version": "5", "data": {"a": 1},
    });
    assert_eq!(asked.body, expected);
    assert_eq!(asked.headers["cookie"], "session=7");
    assert_eq!(asked.headers["x-from"], "linerate");
    assert_eq!(asked.headers["x-forwarded-for"], "127.0.0.1");
    assert_eq!(asked.headers["content-type"], "application/json");
}

#[tokio::test]
async fn clients_whom_the_backend_refuses_are_told_as_it_says() {
    let backend = Backend::start().await;
    let gateway = backend.gateway(&["connect"], "", CONNECT).await;
    let refused = json!({"error": {"code": 1000, "message": "not now", "temporary": true}});
    backend.answers("connect", Answer::Json(refused));
    let mut client = Json::open(&gateway).await;
    let reply = client.ask(r#"{"id":1,"connect":{}}"#).await;
    assert_eq!(error(&reply), (1_000, "not now"));
    assert_eq!(reply["error"]["temporary"], true);
    let banned = json!({"disconnect": {"code": 4501, "reason": "banned"}});
    backend.answers("connect", Answer::Json(banned));
    client.send(r#"{"id":2,"connect":{}}"#).await;
    assert_eq!(client.closed(4_501).await, "banned");
}

#[tokio::test]
async fn a_client_that_the_backend_does_not_know_is_refused() {
    let backend = Backend::start().await;
    backend.answers("connect", Answer::Json(json!({})));
    let gateway = backend.gateway(&["connect"], "", CONNECT).await;
    let mut client = Json::open(&gateway).await;
    client.send(r#"{"id":1,"connect":{}}"#).await;
    assert_eq!(client.closed(3_507).await, "permission denied");
}

#[tokio::test]
async fn a_server_with_a_connect_backend_is_not_open() {
    let backend = Backend::start().await;
    backend.returns("connect", json!({"user": "56"}));
    let gateway = backend.gateway(&["connect"], "", CONNECT).await;
    let mut client = Json::connect(&gateway).await;
    let reply = client
        .ask(r#"{"id":2,"publish":{"channel":"a","data":1}}"#)
        .await;
    assert_eq!(error(&reply).0, 103, "{reply}");
    let answer = request(gateway.address, "POST /api/info", "", b"{}").await;
    assert_eq!(answer.status, 403, "{}", answer.head);
}

#[tokio::test]
async fn raw_clients_and_event_streams_ask_as_well() {
    let backend = Backend::start().await;
    backend.returns("connect", json!({"user": "56", "channels": ["news"]}));
    let gateway = backend.gateway(&["connect"], HEADERS, CONNECT).await;
    let client = Client::new().with_header("Cookie", "session=8");
    let mut raw = gateway.raw(&client, "").await;
    gateway.publish("news", "1").await;
    let published = message(&mut raw).await;
    assert_eq!(published.as_text().unwrap(), "1");
    let asked = backend.only();
    assert_eq!(asked.body["protocol"], "raw");
    assert_eq!(asked.headers["cookie"], "session=8");
    backend.answers("connect", Answer::Json(json!({})));
    let answer = request(gateway.address, "GET /sse?channel=news", "", b"").await;
    assert_eq!(answer.status, 401, "{}", answer.head);
    backend.answers("connect", Answer::Status(500));
    let answer = request(gateway.address, "GET /sse?channel=news", "", b"").await;
    assert_eq!(answer.status, 503, "{}", answer.head);
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let backend = Backend::start().await;
    let gateway = backend.gateway(&["connect"], HEADERS, CONNECT).await;
    let cookie = format!("Cookie: {}\r\n", "x".repeat(9_000));
    let answer = request(gateway.address, "GET /sse?channel=a", &cookie, b"").await;
    assert_eq!(answer.status, 431, "{}", answer.head);
    let text = answer.text().await;
    assert!(text.contains("9006 bytes; at most 8192"), "{text}");
    assert!(backend.asked().is_empty());
}

#[tokio::test]
async fn backend_renews_connections_without_their_clients() {
    let backend = Backend::start().await;
    let soon = json!({"user": "56", "expire_at": seconds_from_now(1), "meta": {"plan": "pro"}});
    backend.returns("connect", soon);
    backend.returns("refresh", json!({"expire_at": seconds_from_now(1)}));
    let toml = format!("{CONNECT}refresh_backend = \"refresh\"\n");
    let gateway = backend
        .gateway(&["connect", "refresh"], "meta = true", &toml)
        .await;
    let mut client = Json::open(&gateway).await;
    let reply = client.ask(r#"{"id":1,"connect":{}}"#).await;
    assert!(reply["connect"]["expires"].is_null(), "{reply}");
    backend.until_asked("refresh").await;
    backend.returns("refresh", json!({"expired": true}));
    assert_eq!(client.closed(3_005).await, "connection expired");
    let asked = backend.asked();
    let last = asked.last().unwrap();
    assert_eq!(
        (&last.body["user"], &last.body["meta"]["plan"]),
        (&json!("56"), &json!("pro"))
    );
}

#[tokio::test]
async fn a_backend_that_renews_nothing_ends_the_connection_after_the_grace_period() {
    let backend = Backend::start().await;
    let soon = json!({"user": "56", "expire_at": seconds_from_now(0)});
    backend.returns("connect", soon);
    backend.answers("refresh", Answer::Status(500));
    let toml = format!("{CONNECT}refresh_backend = \"refresh\"\nrefresh_grace_s = 1\n");
    let gateway = backend.gateway(&["connect", "refresh"], "", &toml).await;
    let mut client = Json::connect(&gateway).await;
    assert_eq!(client.closed(3_005).await, "connection expired");
    let asked = backend.asked();
    let refreshes = asked.iter().filter(|one| one.event == "refresh").count();
    assert_eq!(refreshes, 5, "{asked:?}");
}

#[tokio::test]
async fn a_revoked_user_is_asked_for_again() {
    let backend = Backend::start().await;
    backend.returns("connect", json!({"user": "ann"}));
    let toml = backend.toml(&["connect"], "", CONNECT);
    let mut config = config(&toml);
    config.auth.api_key = Some(Secret::new(API_KEY));
    let gateway = Gateway::start(config).await;
    let mut client = Json::connect(&gateway).await;
    let which = json!({"user": "ann", "issued_before": seconds_from_now(1)});
    gateway.api("invalidate_user_tokens", &which).await;
    assert_eq!(client.closed(3_005).await, "token revoked");
    // What the backend says later is of a later time.
    let reconnected = async || {
        let mut client = Json::open(&gateway).await;
        let reply = client.ask(r#"{"id":1,"connect":{}}"#).await;
        reply["connect"].is_object()
    };
    until(reconnected).await;
}
