//! Compressed WebSockets (RFC 7692): a publication is compressed once for all clients that can
//! inflate it.

use std::sync::Arc;

use linerate::{Client, CloseCode, Counters, Deflate, WebSocket};
use linerate_hub::fossil;

use crate::support::{Gateway, Json, in_time, message};

const ON: &str = "[compression]\nenabled = true";

/// Returns a client and its counters.
fn client(deflate: Option<Deflate>) -> (Client, Arc<Counters>) {
    let counters = Arc::<Counters>::default();
    let mut options = linerate::Options::default();
    options.deflate = deflate;
    options.counters = Some(counters.clone());
    (Client::new().with_options(options), counters)
}

/// Returns a distinct publication of about 1 KiB.
fn publication(number: u32) -> String {
    let row = |n| {
        format!(
            r#"{{"symbol":"ABC{n}","price":{}.25,"size":{number}}}"#,
            n * 7
        )
    };
    let rows: Vec<_> = (0..25).map(row).collect();
    format!(r#"{{"id":{number},"rows":[{}]}}"#, rows.join(","))
}

async fn assert_takes(ws: &mut WebSocket, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let arrived = message(ws).await;
        assert_eq!(arrived.as_text(), Some(&*publication(number)));
    }
}

#[tokio::test]
async fn it_is_off_unless_asked_for() {
    let gateway = Gateway::open("").await;
    let (client, _) = client(Some(Deflate::default()));
    let ws = gateway.raw(&client, "channel=a").await;
    assert!(ws.compression().is_none());
    let json = Json::open_as(&gateway, &client).await;
    assert!(json.ws.compression().is_none());
}

#[tokio::test]
async fn publications_reach_those_who_compress_and_those_who_do_not() {
    for takeover in [false, true] {
        let gateway = Gateway::open(&format!("{ON}\ntakeover = {takeover}")).await;
        let mut narrow = Deflate::default();
        narrow.peer_window_bits = 9;
        let (with, small) = client(Some(Deflate::default()));
        let (without, large) = client(None);
        let (narrow, _) = client(Some(narrow));
        let mut subscribers = Vec::new();
        for client in [&with, &with, &without, &narrow] {
            subscribers.push(gateway.raw(client, "channel=a").await);
        }
        assert!(subscribers[0].compression().is_some());
        assert!(subscribers[2].compression().is_none());
        let before = (small.bytes_received(), large.bytes_received());
        for number in 0..50 {
            gateway.publish("a", &publication(number)).await;
        }
        for subscriber in &mut subscribers {
            assert_takes(subscriber, 0..50).await;
        }
        let compressed = small.bytes_received() - before.0;
        let plain = large.bytes_received() - before.1;
        // Two of the subscribers share these counters.
        assert!(compressed / 2 < plain / 3, "{compressed} / 2 of {plain}");
    }
}

#[tokio::test]
async fn deltas_are_compressed_for_all_whenever_they_have_joined() {
    let channel = "[channel]\ncompression_takeover = true\nallow_delta = true";
    let gateway = Gateway::open(&format!("{ON}\nmessage_bytes_min = 64\n{channel}")).await;
    let (client, _) = client(Some(Deflate::default()));
    let mut subscribers: Vec<(Json, Vec<u8>)> = Vec::new();
    for number in 0..12 {
        if number % 3 == 0 {
            let mut json = Json::open_as(&gateway, &client).await;
            json.ask(r#"{"id":1,"connect":{}}"#).await;
            let subscribe = r#"{"id":2,"subscribe":{"channel":"a","delta":"fossil"}}"#;
            assert_eq!(json.ask(subscribe).await["subscribe"]["delta"], true);
            subscribers.push((json, Vec::new()));
        }
        let published = publication(number);
        gateway.publish("a", &published).await;
        for (json, payload) in &mut subscribers {
            let push = json.next().await;
            let data = push["push"]["pub"]["data"].as_str().unwrap().as_bytes();
            let is_delta = push["push"]["pub"]["delta"] == true;
            assert_eq!(is_delta, !payload.is_empty(), "{push}");
            *payload = match is_delta {
                true => fossil::apply(payload, data, published.len()).unwrap(),
                false => data.to_vec(),
            };
            assert_eq!(*payload, published.as_bytes());
        }
    }
}

#[tokio::test]
async fn commands_and_replies_are_compressed_too() {
    let gateway = Gateway::open(&format!("{ON}\nmessage_bytes_min = 1\ntakeover = true")).await;
    let (client, _) = client(Some({
        let mut deflate = Deflate::default();
        deflate.message_bytes_min = 1;
        deflate
    }));
    let mut json = Json::open_as(&gateway, &client).await;
    assert!(
        json.ws
            .compression()
            .is_some_and(|context| context.takeover)
    );
    let reply = json.ask(r#"{"id":1,"connect":{}}"#).await;
    assert!(reply["connect"]["client"].is_string(), "{reply}");
    json.subscribe("news").await;
    for number in 0..20 {
        gateway.publish("news", &publication(number)).await;
        assert_eq!(json.next().await["push"]["pub"]["data"]["id"], number);
        let command = r#"{"id":9,"ping":{}}"#;
        assert_eq!(json.ask(command).await["id"], 9);
    }
}

#[tokio::test]
async fn x01_a_bomb_ends_its_connection_and_no_other() {
    let gateway = Gateway::open(ON).await;
    let (client, counters) = client(Some(Deflate::default()));
    let mut other = Json::connect(&gateway).await;
    let mut json = Json::open_as(&gateway, &client).await;
    json.send(&" ".repeat(10 << 20)).await;
    assert!(counters.bytes_sent() < 64 << 10, "it is small on the wire");
    let closed = async {
        while let Ok(Some(_)) = json.ws.recv().await {}
        json.ws.close(CloseCode::NORMAL, "").await.unwrap()
    };
    assert_eq!(in_time(closed).await.code, 1009);
    assert_eq!(other.ask(r#"{"id":9,"ping":{}}"#).await["id"], 9);
}

/// Returns an open gateway with context takeover in all channels, or without.
async fn with_takeover(takeover: bool) -> Gateway {
    let history = "history_size = 20\nallow_history = true";
    let channel = format!("[channel]\ncompression_takeover = {takeover}\n{history}");
    Gateway::open(&format!("{ON}\n{channel}")).await
}

#[tokio::test]
async fn blocks_that_refer_back_are_shorter_than_those_that_do_not() {
    let mut received = Vec::new();
    for takeover in [false, true] {
        let gateway = with_takeover(takeover).await;
        let (client, counters) = client(Some(Deflate::default()));
        let mut subscribers = Vec::new();
        for _ in 0..3 {
            subscribers.push(gateway.raw(&client, "channel=a").await);
        }
        let before = counters.bytes_received();
        for number in 0..50 {
            gateway.publish("a", &publication(number)).await;
            for subscriber in &mut subscribers {
                assert_takes(subscriber, number..number + 1).await;
            }
        }
        received.push(counters.bytes_received() - before);
    }
    assert!(received[1] < received[0] / 3 * 2, "{received:?}");
}

#[tokio::test]
async fn clients_that_join_late_or_get_other_messages_inflate_everything() {
    let gateway = with_takeover(true).await;
    let mut narrow = Deflate::default();
    narrow.peer_window_bits = 9;
    let mut alone = Deflate::default();
    alone.peer_takeover = false;
    let options = [Some(Deflate::default()), Some(narrow), Some(alone), None];
    let clients = options.map(|deflate| client(deflate).0);
    let mut raw = Vec::new();
    let mut json = Vec::new();
    for number in 0..60 {
        if number % 4 == 0 && number < 40 {
            let client = &clients[number as usize / 4 % 4];
            raw.push(gateway.raw(client, "channel=a").await);
            let mut both = Json::open_as(&gateway, client).await;
            let reply = both.ask(r#"{"id":1,"connect":{}}"#).await;
            assert!(reply["connect"]["client"].is_string(), "{reply}");
            both.subscribe("a").await;
            both.subscribe("b").await;
            json.push(both);
        }
        gateway.publish("a", &publication(number)).await;
        for subscriber in &mut raw {
            assert_takes(subscriber, number..number + 1).await;
        }
        let lucky = number as usize % json.len();
        for subscriber in &mut json {
            assert_eq!(subscriber.next().await["push"]["pub"]["data"]["id"], number);
        }
        // A long reply, which is compressed, between two blocks.
        let command = r#"{"id":9,"history":{"channel":"a","limit":3}}"#;
        let reply = json[lucky].ask(command).await;
        let publications = reply["history"]["publications"].as_array();
        assert!(publications.is_some_and(|all| !all.is_empty()), "{reply}");
        if number % 3 == 0 {
            gateway.publish("b", &publication(number)).await;
            for subscriber in &mut json {
                assert_eq!(subscriber.next().await["push"]["channel"], "b");
            }
        }
    }
}
