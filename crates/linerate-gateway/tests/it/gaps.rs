//! Clients of Centrifuge's protocol on channels without history: gaps are reported unless that is
//! disabled.

use linerate::Client;
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::{
    streams::{Client as Stream, KINDS},
    support::{Gateway, Json, in_time, message, token},
};

/// The default: no history is kept.
const LIVE: &str = "[channel]\nhistory_size = 0\n";

const SUBSCRIBE: &str = r#"{"id":2,"subscribe":{"channel":"a"}}"#;

fn code(push: &Value) -> Option<u64> {
    push["push"]["unsubscribe"]["code"].as_u64()
}

#[tokio::test]
async fn an_sdk_on_a_channel_without_history_is_told_when_the_link_was_cut() {
    let gateway = Gateway::open(LIVE).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    for turn in 0..3 {
        gateway.cut_link().await;
        assert_eq!(code(&client.next().await), Some(2500));
        // SDKs do this automatically.
        client.subscribe("a").await;
        gateway.publish("a", &turn.to_string()).await;
        assert_eq!(client.next().await["push"]["pub"]["data"], turn);
    }
}

#[tokio::test]
async fn an_sdk_without_websocket_is_told_when_the_link_was_cut() {
    for kind in KINDS {
        let gateway = Gateway::open(LIVE).await;
        let mut client = Stream::connect(&gateway, kind).await;
        client.ask(SUBSCRIBE).await;
        gateway.cut_link().await;
        assert_eq!(code(&client.next().await), Some(2500), "{kind:?}");
        assert!(client.ask(SUBSCRIBE).await["subscribe"].is_object());
        gateway.publish("a", "1").await;
        assert_eq!(client.next().await["push"]["pub"]["data"], 1);
    }
}

#[tokio::test]
async fn an_sdk_that_speaks_protobuf_is_told_when_the_link_was_cut() {
    let gateway = Gateway::open(LIVE).await;
    let url = gateway.url("/connection/websocket?cf_protocol=protobuf");
    let mut ws = Client::new().connect(&url).await.unwrap();
    // {"id": 1, "connect": {}} and {"id": 2, "subscribe": {"channel": "a"}}, each after its length.
    ws.send(&b"\x04\x08\x01\x22\x00"[..]).await.unwrap();
    message(&mut ws).await;
    let subscribe = b"\x07\x08\x02\x2a\x03\x0a\x01a";
    ws.send(&subscribe[..]).await.unwrap();
    message(&mut ws).await;
    gateway.cut_link().await;
    let push = message(&mut ws).await;
    let expected = b"\x10\xc4\x13\x1a\x12insufficient state";
    let mut windows = push.as_bytes().windows(expected.len());
    assert!(windows.any(|window| window == expected), "{push:?}");
}

#[tokio::test]
async fn an_sdk_whose_subscription_its_token_made_is_sent_away_to_come_back() {
    let gateway = Gateway::guarded("").await;
    let claims = json!({"sub": "u", "subs": {"a": {}}});
    let mut client = Json::connect_with(&gateway, &token(&claims)).await;
    gateway.publish("a", "1").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 1);
    gateway.cut_link().await;
    client.closed(3010).await;
}

#[tokio::test]
async fn where_gaps_are_silent_an_sdk_goes_on_untold_unless_it_asks_for_a_position() {
    let gateway = Gateway::open(&format!("{LIVE}gaps = \"silent\"\n")).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    let mut careful = Json::connect(&gateway).await;
    let wanted = r#"{"id":2,"subscribe":{"channel":"a","positioned":true}}"#;
    assert!(careful.ask(wanted).await["subscribe"].is_object());
    gateway.cut_link().await;
    gateway.publish("a", "1").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 1);
    assert_eq!(code(&careful.next().await), Some(2500));
}

#[tokio::test]
async fn a_conflated_subscription_is_told_of_what_was_lost_but_not_of_what_was_replaced() {
    let toml = format!("{LIVE}ring_messages_max = 4\nconflate = \"latest\"\n");
    let gateway = Gateway::open(&toml).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("a").await;
    for number in 0..1_000 {
        gateway.publish("a", &number.to_string()).await;
    }
    loop {
        let push = client.next().await;
        if push["push"]["pub"]["data"].as_u64().expect("a publication") == 999 {
            break;
        }
    }
    gateway.cut_link().await;
    assert_eq!(code(&client.next().await), Some(2500));
}

#[tokio::test]
async fn an_sdk_that_reads_too_slowly_is_told_once_for_each_time_it_has_fallen_behind() {
    let gateway = Gateway::open(&format!("{LIVE}ring_messages_max = 100\n")).await;
    let mut options = linerate::Options::default();
    options.recv_queue_bytes_max = 1;
    let stalling = Client::new().with_options(options);
    // The kernel would let the buffer of a client that has read quickly grow to tens of megabytes.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let socket = socket.connect(gateway.address).await.unwrap();
    let mut client = Json::open_over(&gateway, &stalling, socket).await;
    client.ask(r#"{"id":1,"connect":{}}"#).await;
    client.subscribe("a").await;
    let mut other = gateway.raw(&Client::new(), "channel=a").await;
    let filler = "x".repeat(10_000);
    let (mut missed, mut told) = (0, 0);
    let mut next = 0..=0;
    for round in 0..5 {
        // Publish more than the sockets and the ring hold, while the client reads nothing.
        for number in round * 2_000..(round + 1) * 2_000 {
            let payload = format!(r#"{{"n":{number},"x":"{filler}"}}"#);
            gateway.publish("a", &payload).await;
            // What another client has received was also sent to this one, if there was room.
            message(&mut other).await;
        }
        loop {
            let push = in_time(client.next()).await;
            if let Some(number) = push["push"]["pub"]["data"]["n"].as_u64() {
                assert!(next.contains(&number), "gaps are reported before {number}");
                next = number + 1..=number + 1;
                continue;
            }
            assert_eq!(code(&push), Some(2500), "{push}");
            told += 1;
            break;
        }
        in_time(client.subscribe("a")).await;
        missed += (round + 1) * 2_000 - next.start();
        // What was published last may reach the worker after the new subscription.
        next = *next.start()..=(round + 1) * 2_000;
    }
    assert!(missed > 1_000, "{missed}");
    assert_eq!(told, 5);
}
