//! Forbidden requests of clients: each gets the documented code, changes nothing, and is not
//! visible to others.

use serde_json::json;

use crate::{
    http::request,
    support::{Gateway, Json, closed, config, error, token},
};

/// Subscribes a client that would notice any publication in `demo:x`, and any client that joins it.
async fn witness(gateway: &Gateway) -> Json {
    let mut witness = Json::connect(gateway).await;
    witness
        .ask(r#"{"id":2,"subscribe":{"channel":"demo:x","join_leave":true}}"#)
        .await;
    assert!(witness.next().await["push"]["join"].is_object());
    witness
}

/// Asserts that this publication is the next thing that the witness receives.
async fn assert_unnoticed(gateway: &Gateway, witness: &mut Json) {
    gateway.publish("demo:x", "\"now\"").await;
    let push = witness.next().await;
    assert_eq!(push["push"]["pub"]["data"], "now", "{push}");
    assert_eq!(gateway.info().subscriptions, 1);
}

#[tokio::test]
async fn what_is_no_command_ends_the_connection_and_nothing_of_it_is_done() {
    let gateway = Gateway::open("").await;
    let mut witness = witness(&gateway).await;
    let publish = r#"{"id":2,"publish":{"channel":"demo:x","data":1}}"#;
    let deep = "[".repeat(65) + &"]".repeat(65);
    for frame in [
        "no json".to_owned(),
        "".to_owned(),
        "[]".to_owned(),
        r#"{"id":-1,"ping":{}}"#.to_owned(),
        r#"{"publish":{"channel":"demo:x","data":1}}"#.to_owned(),
        r#"{"id":2,"publish":{"channel":7,"data":1}}"#.to_owned(),
        format!("{publish}\n{{"),
        format!(r#"{{"id":2,"publish":{{"channel":"demo:x","data":{deep}}}}}"#),
        vec![publish; 1_025].join("\n"),
        r#"{"id":2,"connect":{}}"#.to_owned(),
    ] {
        let mut client = Json::connect(&gateway).await;
        client.send(&frame).await;
        client.closed(3501).await;
    }
    assert_unnoticed(&gateway, &mut witness).await;
}

#[tokio::test]
async fn nothing_comes_before_connecting() {
    let gateway = Gateway::open("[client]\nconnect_timeout_s = 1").await;
    let mut witness = witness(&gateway).await;
    for command in [
        r#"{"id":1,"publish":{"channel":"demo:x","data":1}}"#,
        r#"{"id":1,"subscribe":{"channel":"demo:x"}}"#,
        r#"{"id":1,"ping":{}}"#,
        r#"{"id":1,"nonsense":{}}"#,
    ] {
        let mut client = Json::open(&gateway).await;
        client.send(command).await;
        client.closed(3501).await;
    }
    let mut silent = Json::open(&gateway).await;
    silent.closed(3502).await;
    assert_unnoticed(&gateway, &mut witness).await;
}

#[tokio::test]
async fn a_message_of_the_most_bytes_is_taken_and_a_longer_one_is_not() {
    let gateway = Gateway::open("[client]\nmessage_bytes_max = 1000").await;
    let mut witness = witness(&gateway).await;
    let mut client = Json::connect(&gateway).await;
    let command = r#"{"id":2,"ping":{}}"#;
    let reply = client.ask(&format!("{command:1000}")).await;
    assert_eq!(reply["id"], 2);
    let publish = r#"{"id":2,"publish":{"channel":"demo:x","data":1}}"#;
    client.send(&format!("{publish:1001}")).await;
    client.closed(1009).await;
    assert_unnoticed(&gateway, &mut witness).await;
}

#[tokio::test]
async fn names_of_channels_are_bounded() {
    let gateway = Gateway::open("[client]\nchannel_name_bytes_max = 10").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe(&"x".repeat(10)).await;
    for (channel, number) in [
        ("x".repeat(11), "11"),
        (String::new(), "empty"),
        ("a b".into(), "1"),
    ] {
        for command in [
            "subscribe",
            "unsubscribe",
            "history",
            "presence",
            "presence_stats",
        ] {
            let command = json!({"id": 3, command: {"channel": channel}}).to_string();
            let reply = client.ask(&command).await;
            assert_eq!(error(&reply).0, 107, "{command}: {reply}");
            assert!(error(&reply).1.contains(number), "{command}: {reply}");
        }
        let command = json!({"id": 3, "publish": {"channel": channel, "data": 1}}).to_string();
        assert_eq!(error(&client.ask(&command).await).0, 107);
    }
}

#[tokio::test]
async fn r08_subscriptions_are_bounded() {
    let gateway = Gateway::open("[client]\nchannels_max = 3").await;
    let mut client = Json::connect(&gateway).await;
    for channel in ["a", "b", "c"] {
        client.subscribe(channel).await;
    }
    let again = client.ask(r#"{"id":3,"subscribe":{"channel":"a"}}"#).await;
    assert_eq!(error(&again).0, 105);
    let more = r#"{"id":4,"subscribe":{"channel":"d"}}"#;
    let reply = client.ask(more).await;
    assert_eq!(error(&reply).0, 106);
    assert!(error(&reply).1.contains('3'), "{reply}");
    client
        .ask(r#"{"id":5,"unsubscribe":{"channel":"a"}}"#)
        .await;
    assert!(client.ask(more).await["subscribe"].is_object());
    assert_eq!(gateway.info().subscriptions, 3);
}

#[tokio::test]
async fn commands_are_bounded_in_each_second() {
    let gateway = Gateway::open("[client]\ncommands_per_second_max = 10").await;
    let mut witness = witness(&gateway).await;
    let mut client = Json::connect(&gateway).await;
    // The connect command was the first.
    let pings: Vec<_> = (2..=21)
        .map(|id| format!(r#"{{"id":{id},"ping":{{}}}}"#))
        .collect();
    client.send(&pings[..19].join("\n")).await;
    let mut codes = Vec::new();
    for _ in 0..19 {
        let reply = client.next().await;
        codes.push((reply["id"].as_u64().unwrap(), error(&reply).0));
    }
    codes.sort_unstable();
    let granted = codes.iter().filter(|(_, code)| *code == 0).count();
    assert_eq!(granted, 9, "{codes:?}");
    assert!(
        codes.iter().all(|(_, code)| [0, 111].contains(code)),
        "{codes:?}"
    );
    client.send(&pings[19]).await;
    client.closed(3013).await;
    assert_unnoticed(&gateway, &mut witness).await;
}

#[tokio::test]
async fn what_is_not_known_here_is_said_to_be_so() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    for command in [
        r#"{"id":2,"nonsense":{}}"#,
        r#"{"id":2,"rpc":{"method":"x","data":{}}}"#,
    ] {
        assert_eq!(error(&client.ask(command).await).0, 104, "{command}");
    }
    client.send(r#"{"send":{"data":1}}"#).await;
    client.closed(3508).await;
}

#[tokio::test]
async fn who_has_no_token_or_a_wrong_one_stays_outside() {
    let gateway = Gateway::guarded("").await;
    let forged = token(&json!({"sub": "ann"})).replace(".e", ".f");
    let none = r#"{"alg":"none"}"#;
    let none = format!("{}.{}.", base64_url(none), base64_url(r#"{"sub":"ann"}"#));
    for (token, code) in [
        (String::new(), 3507),
        ("nonsense".into(), 3500),
        (forged, 3500),
        (none, 3500),
        (token(&json!({"sub": "ann", "channel": "x"})), 3500),
        ("x".repeat(20_000), 3500),
    ] {
        let mut client = Json::open(&gateway).await;
        let command = json!({"id": 1, "connect": {"token": token}}).to_string();
        client.send(&command).await;
        client.closed(code).await;
    }
    let mut late = Json::open(&gateway).await;
    let old = token(&json!({"sub": "ann", "exp": 1}));
    let command = json!({"id": 1, "connect": {"token": old}}).to_string();
    assert_eq!(error(&late.ask(&command).await).0, 109);
    assert_eq!(gateway.info().clients, 0);
    // The client may try again on the same connection.
    let command = json!({"id": 2, "connect": {"token": token(&json!({"sub": "ann"}))}});
    assert!(late.ask(&command.to_string()).await["connect"].is_object());
}

fn base64_url(text: &str) -> String {
    use base64::Engine;
    base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(text)
}

#[tokio::test]
async fn what_a_namespace_does_not_allow_is_denied() {
    let toml = "
        [channel]
        history_size = 0
        [[namespace]]
        name = \"open\"
        allow_subscribe = true
        allow_filter = false
        allow_batch_override = false
        allow_conflate_override = false
        presence = true
        history_size = 10
        [[namespace]]
        name = \"bare\"
        allow_subscribe = true
        allow_history = true
        allow_presence = true";
    let gateway = Gateway::guarded(toml).await;
    let mut client = Json::connect_with(&gateway, &token(&json!({"sub": "ann"}))).await;
    client.subscribe("open:a").await;
    client.subscribe("bare:a").await;
    for (command, code) in [
        (json!({"subscribe": {"channel": "closed"}}), 103),
        (
            json!({"subscribe": {"channel": "open:b", "filter": "a == 1"}}),
            103,
        ),
        (
            json!({"subscribe": {"channel": "open:b", "batch_interval_ms": 5}}),
            103,
        ),
        (
            json!({"subscribe": {"channel": "open:b", "conflate": "latest"}}),
            103,
        ),
        (json!({"subscribe": {"channel": "open:*"}}), 103),
        (
            json!({"subscribe": {"channel": "bare:b", "filter": "a =="}}),
            107,
        ),
        (
            json!({"subscribe": {"channel": "bare:b", "filter": "x".repeat(2_000)}}),
            107,
        ),
        (
            json!({"subscribe": {"channel": "bare:b", "batch_interval_ms": 60_001}}),
            107,
        ),
        (
            json!({"subscribe": {"channel": "bare:b", "conflate": "key"}}),
            107,
        ),
        (
            json!({"subscribe": {"channel": "bare:b", "conflate": "/~2"}}),
            107,
        ),
        (json!({"publish": {"channel": "open:a", "data": 1}}), 103),
        (json!({"history": {"channel": "open:a"}}), 103),
        (json!({"presence": {"channel": "open:a"}}), 103),
        (json!({"presence_stats": {"channel": "open:a"}}), 103),
        (json!({"history": {"channel": "bare:a"}}), 108),
        (json!({"presence": {"channel": "bare:a"}}), 108),
        (json!({"history": {"channel": "bare:other"}}), 103),
        (
            json!({"sub_refresh": {"channel": "bare:other", "token": "x"}}),
            103,
        ),
    ] {
        let mut command = command;
        command["id"] = json!(3);
        let reply = client.ask(&command.to_string()).await;
        assert_eq!(error(&reply).0, code, "{command}: {reply}");
    }
    assert_eq!(gateway.info().subscriptions, 2);
}

#[tokio::test]
async fn filters_are_limited_for_a_client_and_for_a_channel_and_errors_say_so() {
    let toml = "
        [auth]
        anonymous = true
        [channel]
        allow_subscribe = true
        allow_anonymous = true
        [filter]
        client_filters_max = 2
        channel_filters_max = 3";
    let gateway = Gateway::guarded(toml).await;
    let subscribe = |channel: &str, filter: &str| {
        json!({"id": 3, "subscribe": {"channel": channel, "filter": filter}}).to_string()
    };
    let mut first = Json::connect(&gateway).await;
    for (channel, filter) in [("a", "n == 1"), ("b", "n == 2"), ("c", "n == 1")] {
        let reply = first.ask(&subscribe(channel, filter)).await;
        assert!(reply["error"].is_null(), "{reply}");
    }
    let reply = first.ask(&subscribe("d", "n == 3")).await;
    assert_eq!(error(&reply).0, 106, "{reply}");
    let message = "client has 2 filters, and at most 2 are allowed";
    assert!(error(&reply).1.contains(message), "{reply}");

    let mut others = Vec::new();
    for filter in ["n == 4", "n == 5"] {
        let mut other = Json::connect(&gateway).await;
        let reply = other.ask(&subscribe("a", filter)).await;
        assert!(reply["error"].is_null(), "{reply}");
        others.push(other);
    }
    let mut last = Json::connect(&gateway).await;
    let reply = last.ask(&subscribe("a", "n == 6")).await;
    assert_eq!(error(&reply).0, 106, "{reply}");
    let message = "channel has 3 filters, and at most 3 are allowed";
    assert!(error(&reply).1.contains(message), "{reply}");
    let reply = last.ask(&subscribe("a", "n == 5")).await;
    assert!(
        reply["error"].is_null(),
        "known filters take no place: {reply}"
    );
}

#[tokio::test]
async fn searches_of_a_channel_are_limited_and_the_error_names_both_numbers() {
    let toml = "
        [auth]
        anonymous = true
        [channel]
        allow_subscribe = true
        allow_anonymous = true
        [filter]
        channel_searches_max = 5";
    let gateway = Gateway::guarded(toml).await;
    let subscribe = |filter: &str| {
        json!({"id": 3, "subscribe": {"channel": "a", "filter": filter}}).to_string()
    };
    let mut first = Json::connect(&gateway).await;
    let reply = first.ask(&subscribe("size(n) > 1")).await;
    assert!(reply["error"].is_null(), "{reply}");
    let mut second = Json::connect(&gateway).await;
    let many = r#"n.contains("x") || n.endsWith("y")"#;
    let reply = second.ask(&subscribe(many)).await;
    assert_eq!(error(&reply).0, 106, "{reply}");
    let message = error(&reply).1;
    assert!(
        message.contains("6 searches") && message.contains("at most 5"),
        "{reply}"
    );
    let reply = second.ask(&subscribe("n == 1")).await;
    assert!(reply["error"].is_null(), "nothing is searched: {reply}");
}

#[tokio::test]
async fn those_without_a_user_may_only_what_is_open_to_them() {
    let toml = "
        [auth]
        anonymous = true
        [channel]
        allow_subscribe = true
        allow_publish = true
        [[namespace]]
        name = \"public\"
        allow_anonymous = true";
    assert!(config(toml).is_open());
    let gateway = Gateway::open(toml).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("public:a").await;
}

#[tokio::test]
async fn connections_of_one_user_are_bounded() {
    let gateway = Gateway::guarded("[server]\nconnections_per_user_max = 2").await;
    let ann = token(&json!({"sub": "ann"}));
    let _clients = [
        Json::connect_with(&gateway, &ann).await,
        Json::connect_with(&gateway, &ann).await,
    ];
    let mut third = Json::open(&gateway).await;
    let command = json!({"id": 1, "connect": {"token": ann}}).to_string();
    third.send(&command).await;
    assert!(third.closed(3504).await.contains('2'));
    Json::connect_with(&gateway, &token(&json!({"sub": "bob"}))).await;
}

#[tokio::test]
async fn h17_pages_of_other_origins_open_nothing() {
    let gateway = Gateway::open("").await;
    for path in ["/connection/websocket", "/raw?channel=a"] {
        for (origin, status) in [
            (format!("http://{}", gateway.address), 101),
            (format!("https://{}", gateway.address), 403),
            ("https://evil.com".into(), 403),
            ("null".into(), 403),
        ] {
            let headers = format!(
                "Origin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            );
            let target = format!("GET {path}");
            let answer = request(gateway.address, &target, &headers, b"").await;
            assert_eq!(answer.status, status, "{path} {origin}");
        }
    }
    let evil = "Origin: https://evil.com\r\n";
    let answer = request(gateway.address, "GET /sse?channel=a", evil, b"").await;
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn the_server_ends_subscriptions_and_connections_with_the_codes_it_was_given() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    let reply = client.ask(r#"{"id":3,"presence":{"channel":"a"}}"#).await;
    let name = reply["presence"]["presence"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let whom = json!({"user": "", "client": name, "channel": "a"});
    gateway.api("unsubscribe", &whom).await;
    let push = client.next().await;
    assert_eq!(push["push"]["unsubscribe"]["code"], 2000, "{push}");
    gateway.publish("a", "1").await;
    assert_eq!(client.ask(r#"{"id":4,"ping":{}}"#).await["id"], 4);
    gateway.api("disconnect", &whom).await;
    closed(&mut client.ws, 3503).await;
}
