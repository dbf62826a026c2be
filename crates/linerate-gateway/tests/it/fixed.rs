//! Tests of `/raw` and `/sse`, whose clients send no commands.

use linerate::{Client, Message};
use serde_json::json;

use crate::{
    http::request,
    support::{Gateway, Json, closed, in_time, seconds_from_now, token},
};

#[tokio::test]
async fn a_raw_client_gets_what_was_published_and_nothing_else() {
    let gateway = Gateway::open("").await;
    let mut ws = gateway.raw(&Client::new(), "channel=b&channel=a").await;
    for (channel, payload) in [
        ("a", &b"{\n\"x\": 1}"[..]),
        ("other", b"0"),
        ("b", "größer".as_bytes()),
        ("a", b"\xFF\x00"),
    ] {
        gateway.publish_bytes(channel, payload).await;
    }
    let mut arrived = Vec::new();
    for _ in 0..3 {
        arrived.push(in_time(ws.recv()).await.unwrap().unwrap());
    }
    // Only the order within each channel is defined.
    arrived.sort_by_key(|message| message.as_text() == Some("größer"));
    let expected = [
        "{\n\"x\": 1}".into(),
        Message::from(b"\xFF\x00"),
        "größer".into(),
    ];
    assert_eq!(arrived, expected);
}

#[tokio::test]
async fn what_a_raw_client_says_is_discarded() {
    let gateway = Gateway::open("").await;
    let mut ws = gateway.raw(&Client::new(), "channel=demo:x").await;
    for _ in 0..100 {
        ws.send(r#"{"id":1,"publish":{"channel":"demo:x","data":1}}"#)
            .await
            .unwrap();
    }
    gateway.publish("demo:x", "2").await;
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("2".into()));
}

#[tokio::test]
async fn subscribers_filter_and_conflate_by_the_address() {
    let gateway = Gateway::open("").await;
    let filter = "channel=a&filter=level%20%3D%3D%20%22error%22";
    let mut filtered = gateway.raw(&Client::new(), filter).await;
    let conflate = "channel=a&batch_interval_ms=300&conflate=/level";
    let mut latest = gateway.raw(&Client::new(), conflate).await;
    for number in 0..10 {
        for level in ["info", "error"] {
            let payload = json!({"level": level, "n": number});
            gateway.publish("a", &payload.to_string()).await;
        }
    }
    for number in 0..10 {
        let message = in_time(filtered.recv()).await.unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
        assert_eq!(value, json!({"level": "error", "n": number}));
    }
    let mut newest = std::collections::BTreeMap::new();
    while newest.len() < 2 || newest.values().any(|number| *number != 9) {
        let message = in_time(latest.recv()).await.unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_str(message.as_text().unwrap()).unwrap();
        let level = value["level"].as_str().unwrap().to_owned();
        newest.insert(level, value["n"].as_i64().unwrap());
    }
}

#[tokio::test]
async fn an_event_stream_goes_on_where_it_was_cut() {
    let gateway = Gateway::open("").await;
    let mut answer = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("text/event-stream"), "{}", answer.head);
    assert_eq!(answer.until(b"\n\n").await.unwrap(), b":");
    gateway.publish("a", "one\ntwo").await;
    let event = String::from_utf8(answer.until(b"\n\n").await.unwrap()).unwrap();
    let (id, data) = event.split_once('\n').unwrap();
    assert_eq!(data, "data: one\ndata: two");
    let id = id.strip_prefix("id: ").unwrap().to_owned();
    drop(answer);
    gateway.publish("a", "3").await;
    gateway.publish("a", "4").await;
    let header = format!("Last-Event-ID: {id}\r\n");
    let mut answer = request(gateway.address, "GET /sse?channel=a", &header, b"").await;
    answer.until(b"\n\n").await.unwrap();
    for expected in ["data: 3", "data: 4"] {
        let event = String::from_utf8(answer.until(b"\n\n").await.unwrap()).unwrap();
        assert_eq!(event.split_once('\n').unwrap().1, expected);
    }
    // With another incarnation of the stream, it is unknown what was missed.
    let header = "Last-Event-ID: other:1\r\n";
    let mut answer = request(gateway.address, "GET /sse?channel=a", header, b"").await;
    answer.until(b"\n\n").await.unwrap();
    let event = String::from_utf8(answer.until(b"\n\n").await.unwrap()).unwrap();
    assert!(event.starts_with("event: gap\n"), "{event}");
    gateway.publish("a", "5").await;
    let event = String::from_utf8(answer.until(b"\n\n").await.unwrap()).unwrap();
    assert!(event.ends_with("data: 5"), "{event}");
}

#[tokio::test]
async fn a_raw_client_recovers_from_a_position() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    let reply = client.subscribe("a").await;
    let epoch = reply["subscribe"]["epoch"].as_str().unwrap();
    for number in 1..=3 {
        gateway.publish("a", &number.to_string()).await;
    }
    let url = gateway.url(&format!("/raw?channel=a&since={epoch}:1&gaps=true"));
    let mut ws = linerate::connect(&url).await.unwrap();
    for expected in ["2", "3"] {
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some(expected.into()));
    }
    let url = gateway.url("/raw?channel=a&since=other:1&gaps=true");
    let mut ws = linerate::connect(&url).await.unwrap();
    let message = in_time(ws.recv()).await.unwrap().unwrap();
    assert!(
        message
            .as_text()
            .unwrap()
            .starts_with("{\"gap\":{\"channel\":\"a\"")
    );
}

#[tokio::test]
async fn requests_that_may_not_be_are_refused_before_they_are_upgraded() {
    let gateway =
        Gateway::guarded("[client]\nchannels_max = 2\n[channel]\nallow_anonymous = true").await;
    let good = token(&json!({"sub": "ann", "channels": ["mine"]}));
    let old = token(&json!({"sub": "ann", "exp": 1}));
    for (query, status) in [
        ("channel=mine".to_owned(), 401),
        ("channel=mine&token=nonsense".to_owned(), 401),
        (format!("channel=mine&token={old}"), 401),
        (format!("channel=other&token={good}"), 403),
        (format!("channel=mine&token={good}&chanel=x"), 400),
        (format!("channel=mine&channel=mine&token={good}"), 400),
        (format!("channel=&token={good}"), 400),
        (format!("channel=a&channel=b&channel=c&token={good}"), 429),
        (format!("channel=mine&filter=1%20%2B&token={good}"), 400),
        (
            format!("channel=mine&batch_interval_ms=60001&token={good}"),
            400,
        ),
        (format!("channel=mine&conflate=key&token={good}"), 400),
    ] {
        let url = gateway.url(&format!("/raw?{query}"));
        let refused = linerate::connect(&url).await.unwrap_err();
        assert!(
            refused.to_string().contains(&status.to_string()),
            "{query}: {refused}"
        );
        let target = format!("GET /sse?{query}");
        let answer = request(gateway.address, &target, "", b"").await;
        assert_eq!(answer.status, status, "{query}");
        assert!(!answer.text().await.is_empty(), "{query}");
    }
    assert_eq!(gateway.info().clients, 0);
    // Without a channel parameter: the channels that the token names.
    let query = format!("token={good}");
    let mut ws = gateway.raw(&Client::new(), &query).await;
    gateway.publish("mine", "1").await;
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("1".into()));
    let header = format!("Authorization: Bearer {good}\r\n");
    let answer = request(gateway.address, "GET /sse", &header, b"").await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn a_session_ends_with_its_token() {
    let gateway = Gateway::guarded("").await;
    let claims = json!({"sub": "ann", "channels": ["mine"], "exp": seconds_from_now(2)});
    let url = gateway.url(&format!("/raw?token={}", token(&claims)));
    let mut raw = linerate::connect(&url).await.unwrap();
    let target = format!("GET /sse?token={}", token(&claims));
    let mut answer = request(gateway.address, &target, "", b"").await;
    closed(&mut raw, 3005).await;
    let rest = answer.rest().await;
    assert!(rest.contains("retry: "), "{rest}");
    assert!(
        rest.contains("event: disconnect\ndata: {\"code\":3005,"),
        "{rest}"
    );
}

#[tokio::test]
async fn a_payload_that_an_event_stream_can_t_carry_ends_it() {
    let gateway = Gateway::open("").await;
    let mut answer = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    let mut other = gateway.raw(&Client::new(), "channel=a").await;
    gateway.publish_bytes("a", b"\xFF").await;
    let rest = answer.rest().await;
    assert!(
        rest.contains("event: disconnect\ndata: {\"code\":3506,"),
        "{rest}"
    );
    assert!(!rest.contains("retry: "), "it must not reconnect: {rest}");
    assert_eq!(in_time(other.recv()).await.unwrap(), Some(b"\xFF".into()));
}

#[tokio::test]
async fn tokens_for_single_channels_open_these_and_end_the_connection_with_them() {
    let gateway = Gateway::guarded("[[namespace]]\nname = \"open\"\nallow_subscribe = true").await;
    let user = token(&json!({"sub": "ann"}));
    let grant = |channel: &str, seconds| {
        let claims = json!({"sub": "ann", "channel": channel, "exp": seconds_from_now(seconds)});
        format!("&channel_token={}", token(&claims))
    };
    let (a, b) = (grant("a", 100), grant("b", 100));
    for (query, status) in [
        (format!("channel=a&channel=b{a}{b}"), 200),
        (format!("channel=b&channel=open:x&channel=a{a}{b}"), 200),
        (format!("{}{b}", &a[1..]), 200),
        (format!("channel=a&channel=b{a}"), 403),
        (format!("channel=open:x{a}"), 400),
        (format!("channel=a{}", grant("a", -100)), 401),
        (format!("channel=a{a}x"), 403),
        (format!("channel=a&channel_token={user}"), 403),
        (format!("channel=a&channel_token={}", other_user()), 403),
        (format!("channel=a{}", a.repeat(129)), 429),
    ] {
        let target = format!("GET /sse?{query}&token={user}");
        let answer = request(gateway.address, &target, "", b"").await;
        assert_eq!(answer.status, status, "{query}");
    }
    let answer = request(gateway.address, &format!("GET /sse?channel=a{a}"), "", b"").await;
    assert_eq!(
        answer.status, 401,
        "a token for a channel opens no connection"
    );

    let soon = grant("b", 2);
    let query = format!("token={user}{a}{soon}");
    let mut ws = gateway.raw(&Client::new(), &query).await;
    for channel in ["a", "b"] {
        gateway.publish(channel, channel).await;
        assert_eq!(in_time(ws.recv()).await.unwrap(), Some(channel.into()));
    }
    closed(&mut ws, 3006).await;
    let target = format!("GET /sse?token={user}{}", grant("b", 1));
    let mut answer = request(gateway.address, &target, "", b"").await;
    let said = answer.rest().await;
    assert!(said.contains("\"code\":3006"), "{said}");
    assert_eq!(gateway.info().subscriptions, 0);
}

fn other_user() -> String {
    token(&json!({"sub": "bob", "channel": "a"}))
}
