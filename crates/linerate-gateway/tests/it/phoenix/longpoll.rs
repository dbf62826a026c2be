//! Long polling: opening and closing sessions, and messages in both directions.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    ON,
    client::{Phoenix, ok},
    longpoll_client::{LongPoll, PATH, body, opening},
};
use crate::{
    backend::support::{Answer, Backend, until},
    http::request,
    support::{Gateway, SECRET, config, in_time, token},
};

#[tokio::test]
async fn a_session_begins_with_its_token() {
    let gateway = Gateway::open(ON).await;
    let [one, other] = [
        LongPoll::open(&gateway).await,
        LongPoll::open(&gateway).await,
    ];
    assert_ne!(one.token, other.token);
    one.send(&[json!([null, "1", "phoenix", "heartbeat", {}])])
        .await;
    let reply = json!([null, "1", "phoenix", "phx_reply", ok(json!({}))]);
    one.expect(&[reply]).await;
}

#[tokio::test]
async fn messages_pass_in_both_directions() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n{}",
        backend.backends(&["app"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    gateway.publish("room:1", r#"{"price":190}"#).await;
    let broadcast = json!([null, null, "room:1", "message", {"price": 190}]);
    client.expect(&[broadcast]).await;
    backend.returns("app", json!({"data": {"sum": 3}}));
    client
        .send(&[json!(["1", "2", "room:1", "add", {"a": 1, "b": 2}])])
        .await;
    let answer = json!(["1", "2", "room:1", "phx_reply", ok(json!({"sum": 3}))]);
    client.expect(&[answer]).await;
    assert_eq!(backend.only().body["data"], json!({"a": 1, "b": 2}));
}

#[tokio::test]
async fn messages_that_wait_for_a_poll_arrive_together_and_in_order() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let mut other = Phoenix::connect(&gateway).await;
    other.join("room:1", json!({})).await;
    let message = |number: u32| json!([null, null, "room:1", "message", number]);
    for number in 1..=3 {
        gateway.publish("room:1", &number.to_string()).await;
        assert_eq!(other.json().await, message(number));
    }
    let expected: Vec<_> = (1..=3).map(message).collect();
    assert_eq!(client.messages().await, expected);
}

#[tokio::test]
async fn a_body_has_a_message_in_each_line() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::open(&gateway).await;
    let join = |n: u32| json!(["1", n.to_string(), format!("room:{n}"), "phx_join", {}]);
    let lines: Vec<_> = (1..=3).map(|n| join(n).to_string()).collect();
    client
        .send_lines(&format!("{}\r\n\n", lines.join("\r\n")))
        .await;
    let joined = |n: u32| {
        let topic = format!("room:{n}");
        json!(["1", n.to_string(), topic, "phx_reply", ok(json!({}))])
    };
    client.expect(&[joined(1), joined(2), joined(3)]).await;
}

#[tokio::test]
async fn a_poll_waits_for_a_message_and_is_answered_without_one_when_its_time_is_over() {
    let toml = format!("{ON}[phoenix]\nheartbeat_timeout_s = 4\n");
    let gateway = Gateway::open(&toml).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let publish = async {
        sleep(Duration::from_millis(300)).await;
        gateway.publish("room:1", "1").await;
    };
    let (messages, ()) = tokio::join!(client.messages(), publish);
    assert_eq!(messages, [json!([null, null, "room:1", "message", 1])]);
    let begun = Instant::now();
    let expected = json!({"status": 204, "token": client.token, "messages": []});
    assert_eq!(client.poll().await, expected);
    assert!(begun.elapsed() >= Duration::from_secs(2));
}

#[tokio::test]
async fn bytes_are_base64_in_both_directions() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[channel]\nrpc_backend = \"app\"\n{}",
        backend.backends(&["app"], "binary = true")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    gateway.publish_bytes("room:1", b"\xff\0").await;
    let broadcast = json!([null, null, "room:1", "message", "/wA="]);
    client.expect(&[broadcast]).await;
    backend.returns("app", json!({"b64data": "AP8="}));
    // join_ref "1", ref "2", topic "room:1", event "save", and the bytes ff 00.
    let message = base64(b"\x00\x01\x01\x06\x0412room:1save\xff\0");
    let heartbeat = json!([null, "3", "phoenix", "heartbeat", {}]);
    client.send_lines(&format!("{message}\n{heartbeat}")).await;
    assert_eq!(backend.until_asked("app").await[0].body["b64data"], "/wA=");
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(client.messages().await);
    }
    let saved = json!(["1", "2", "room:1", "phx_reply", ok(json!("AP8="))]);
    assert!(found.contains(&saved), "{found:?}");
}

fn base64(bytes: &[u8]) -> String {
    use base64::{Engine, prelude::BASE64_STANDARD};
    BASE64_STANDARD.encode(bytes)
}

#[tokio::test]
async fn a_token_is_in_a_header_field_or_a_parameter() {
    let gateway = Gateway::guarded(ON).await;
    let token = token(&json!({"sub": "ann"}));
    let field = format!("X-Phoenix-AuthToken: {token}\r\n");
    let path = format!("/socket/longpoll?token={token}&vsn=2.0.0&");
    for (path, headers) in [(PATH, &*field), (&*path, "")] {
        let client = LongPoll::open_as(&gateway, path, headers).await;
        client
            .send(&[json!(["1", "1", "open:1", "phx_join", {}])])
            .await;
        let polled = client.messages().await;
        assert_eq!(polled[0][3], "phx_reply");
        // The npm package repeats its own parameters before the token of the session.
        let target = format!("POST {path}&token={}", client.token);
        let answer = request(
            gateway.address,
            &target,
            "",
            b"[1,2,\"t\",\"phx_leave\",{}]",
        )
        .await;
        assert_eq!(body(answer).await, json!({"status": 200}));
    }
    assert_eq!(gateway.info().users, 1);
}

#[tokio::test]
async fn a_client_that_may_not_connect_is_told_why_and_has_no_session() {
    let gateway = Gateway::guarded(ON).await;
    let expired = token(&json!({"sub": "ann", "exp": 1}));
    for (path, headers, reason) in [
        (PATH, "", "permission denied"),
        (PATH, "X-Phoenix-AuthToken: wrong\r\n", "invalid token"),
        (
            &*format!("/socket/longpoll?vsn=2.0.0&token={expired}"),
            "",
            "token expired",
        ),
        ("/socket/longpoll", "", "vsn is missing"),
        (
            "/socket/longpoll?vsn=1.0.0",
            "",
            "vsn \"1.0.0\" is not supported",
        ),
    ] {
        let refused = opening(&gateway, path, headers).await;
        assert_eq!(refused["status"], 403, "{refused}");
        assert_eq!(refused["token"], Value::Null);
        let found = refused["reason"].as_str().unwrap();
        assert!(found.contains(reason), "{found}");
    }
    assert_eq!(gateway.info().clients, 0);
}

#[tokio::test]
async fn a_backend_is_asked_with_the_parameters_before_the_session_is_open() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[client]\nconnect_backend = \"connect\"\n[auth.token]\nhmac_secret_key = \"{SECRET}\"\n{}",
        backend.backends(&["connect"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let path = format!("{PATH}room=a");
    let no = json!({"error": {"code": 403, "message": "no"}});
    backend.answers("connect", Answer::Json(no));
    let refused = opening(&gateway, &path, "").await;
    assert_eq!(refused, json!({"status": 403, "reason": "no (403)"}));
    backend.answers("connect", Answer::Status(500));
    assert_eq!(opening(&gateway, &path, "").await["status"], 500);
    backend.asked();
    backend.returns("connect", json!({"user": "ann"}));
    let client = LongPoll::open_as(&gateway, &path, "").await;
    let asked = backend.only().body;
    assert_eq!(asked["data"], json!({"room": "a", "vsn": "2.0.0"}));
    assert_eq!(
        (&asked["protocol"], &asked["transport"]),
        (&json!("phoenix"), &json!("longpoll"))
    );
    client
        .send(&[json!([null, "1", "phoenix", "heartbeat", {}])])
        .await;
    client.messages().await;
    assert_eq!(gateway.info().users, 1);
}

#[tokio::test]
async fn a_client_that_polls_is_counted_with_its_transport() {
    let gateway = Gateway::open(ON).await;
    let _client = LongPoll::joined(&gateway, "room:1").await;
    let metrics = request(gateway.address, "GET /metrics", "", b"").await;
    let text = metrics.text().await;
    let line = r#"linerate_clients{protocol="phoenix",transport="longpoll"} 1"#;
    assert!(text.contains(line), "{text}");
}

#[tokio::test]
async fn polls_are_signs_of_life_and_a_client_without_them_is_forgotten() {
    let toml = format!("{ON}[phoenix]\nheartbeat_timeout_s = 2\n");
    let gateway = Gateway::open(&toml).await;
    let lively = LongPoll::open(&gateway).await;
    let quiet = LongPoll::joined(&gateway, "room:1").await;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) {
        assert_eq!(lively.poll().await["status"], 204);
    }
    in_time(until(async || gateway.info().clients == 1)).await;
    assert_eq!(lively.poll().await["status"], 204);
    // What is sent last waits for a moment.
    sleep(Duration::from_secs(5)).await;
    quiet.is_unknown().await;
}

#[tokio::test]
async fn messages_arrive_before_the_session_ends() {
    let gateway = Gateway::guarded(ON).await;
    let token = token(&json!({"sub": "ann"}));
    let field = format!("X-Phoenix-AuthToken: {token}\r\n");
    let client = LongPoll::open_as(&gateway, PATH, &field).await;
    client
        .send(&[json!([null, "1", "phoenix", "heartbeat", {}])])
        .await;
    gateway.api("disconnect", &json!({"user": "ann"})).await;
    let reply = json!([null, "1", "phoenix", "phx_reply", ok(json!({}))]);
    client.expect(&[reply]).await;
    assert_eq!(client.ends().await, "force disconnect (1000)");
}

#[tokio::test]
async fn a_poll_that_waits_ends_when_the_server_is_drained() {
    let gateway = Gateway::open(ON).await;
    let client = LongPoll::joined(&gateway, "room:1").await;
    let target = client.target("GET");
    let address = gateway.address;
    let waiting = tokio::spawn(async move { body(request(address, &target, "", b"").await).await });
    sleep(Duration::from_millis(300)).await;
    in_time(gateway.drain()).await;
    let ended = json!({"status": 410, "reason": "shutdown (1012)"});
    assert_eq!(in_time(waiting).await.unwrap(), ended);
}

#[tokio::test]
async fn pages_of_allowed_origins_can_read_the_responses() {
    let toml = format!("{ON}[server]\norigins = [\"https://example.com\"]\n");
    let gateway = Gateway::open(&toml).await;
    let origin = "Origin: https://example.com\r\n";
    for method in ["GET", "POST", "OPTIONS"] {
        let target = format!("{method} {PATH}");
        let answer = request(gateway.address, &target, origin, b"").await;
        let head = answer.head.to_ascii_lowercase();
        let allowed = "access-control-allow-origin: https://example.com";
        assert!(head.contains(allowed), "{head}");
        let field =
            "access-control-allow-headers: authorization, content-type, x-phoenix-authtoken";
        assert_eq!(head.contains(field), method == "OPTIONS", "{head}");
    }
    let refused = opening(&gateway, PATH, "Origin: https://example.org\r\n").await;
    assert_eq!(
        refused,
        json!({"status": 403, "reason": "origin is not allowed"})
    );
}
