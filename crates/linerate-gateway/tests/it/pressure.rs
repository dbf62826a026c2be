//! Clients that read less than they are sent: other clients are not affected, and memory is
//! bounded.

use linerate::{Client, WebSocket};
use serde_json::json;

use crate::{
    http::request,
    support::{Gateway, Json, closed, in_time, message},
};

/// A client that does not read ahead, however much arrives.
pub(crate) fn stalling() -> Client {
    let mut options = linerate::Options::default();
    options.recv_queue_bytes_max = 1;
    Client::new().with_options(options)
}

/// Publishes more than sockets and rings hold, and reads it with a client that keeps up.
pub(crate) async fn flood(gateway: &Gateway, live: &mut WebSocket) {
    let payload = "x".repeat(10_000);
    for number in 0..1_500 {
        let payload = format!("{number} {payload}");
        gateway.publish("a", &payload).await;
        let arrived = message(live).await;
        assert_eq!(arrived.as_text(), Some(&*payload));
    }
}

/// Reads the whole flood. Returns how much of it the client has missed and was told of.
pub(crate) async fn missed(slow: &mut WebSocket) -> u64 {
    let (mut next, mut missed) = (0, 0);
    while next < 1_500 {
        let message = message(slow).await;
        let text = message.as_text().unwrap();
        if let Some((_, rest)) = text.split_once("\"missed\":") {
            let gap: u64 = rest.split(',').next().unwrap().parse().unwrap();
            next += gap;
            missed += gap;
        } else {
            let number: u64 = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(number, next, "every gap is reported");
            next += 1;
        }
    }
    missed
}

#[tokio::test]
async fn r02_a_client_that_stalls_loses_the_oldest_and_is_told_how_many() {
    let gateway = Gateway::open("[channel]\nring_messages_max = 100").await;
    let mut slow = gateway.raw(&stalling(), "channel=a&gaps=true").await;
    let mut live = gateway.raw(&Client::new(), "channel=a").await;
    flood(&gateway, &mut live).await;
    assert!(missed(&mut slow).await > 300);
}

#[tokio::test]
async fn r02_a_client_that_stalls_is_disconnected_where_that_is_the_policy() {
    let toml = "[channel]\nring_messages_max = 100\nslow = \"disconnect\"";
    let gateway = Gateway::open(toml).await;
    let mut slow = gateway.raw(&stalling(), "channel=a").await;
    let mut live = gateway.raw(&Client::new(), "channel=a").await;
    flood(&gateway, &mut live).await;
    let closed = async {
        while in_time(slow.recv()).await.unwrap().is_some() {}
        in_time(slow.close(linerate::CloseCode::NORMAL, ""))
            .await
            .unwrap()
    };
    assert_eq!(closed.await.code, 3008);
    assert_eq!(gateway.info().clients, 1);
}

#[tokio::test]
async fn a_positioned_subscription_that_has_a_gap_ends_so_that_it_can_recover() {
    let toml = "[channel]\nring_messages_max = 100\nhistory_size = 5000\nrecover = true";
    let gateway = Gateway::open(toml).await;
    let mut slow = Json::open_as(&gateway, &stalling()).await;
    slow.ask(r#"{"id":1,"connect":{}}"#).await;
    let reply = slow.subscribe("a").await;
    let epoch = reply["subscribe"]["epoch"].as_str().unwrap().to_owned();
    let payload = format!("\"{}\"", "x".repeat(10_000));
    for _ in 0..4_000 {
        gateway.publish("a", &payload).await;
    }
    let mut offset = 0;
    let code = loop {
        let push = slow.next().await;
        if let Some(code) = push["push"]["unsubscribe"]["code"].as_u64() {
            break code;
        }
        offset += 1;
        assert_eq!(push["push"]["pub"]["offset"], offset);
    };
    assert_eq!(code, 2500);
    let command = format!(
        r#"{{"id":3,"subscribe":{{"channel":"a","recover":true,"epoch":"{epoch}","offset":{offset}}}}}"#
    );
    let reply = slow.ask(&command).await;
    let subscribe = &reply["subscribe"];
    assert_eq!(subscribe["was_recovering"], true);
    // How much the sockets held decides whether the history still reaches back far enough.
    if subscribe["recovered"] == true {
        let missed = subscribe["publications"].as_array().unwrap();
        assert_eq!(missed.len() as u64, 4_000 - offset);
    }
}

#[tokio::test]
async fn a_client_that_reads_its_replies_late_gets_them_all() {
    let toml = "[client]\nqueue_bytes_max = 100000\nreply_bytes_max = 2000000\ncommands_per_second_max = 1000000\n[channel]\nhistory_size = 100";
    let gateway = Gateway::open(toml).await;
    let mut greedy = Json::open_as(&gateway, &stalling()).await;
    greedy.ask(r#"{"id":1,"connect":{}}"#).await;
    greedy.subscribe("a").await;
    let payload = format!("\"{}\"", "x".repeat(10_000));
    let mut other = Json::connect(&gateway).await;
    for _ in 0..100 {
        gateway.publish("a", &payload).await;
    }
    // The reply to each is a megabyte.
    for id in 3..40 {
        let command = format!(r#"{{"id":{id},"history":{{"channel":"a","limit":100}}}}"#);
        greedy.send(&command).await;
    }
    assert_eq!(other.ask(r#"{"id":9,"ping":{}}"#).await["id"], 9);
    for id in 3..40 {
        let reply = greedy.next_reply().await;
        assert_eq!(reply["id"], id);
        assert_eq!(
            reply["history"]["publications"].as_array().unwrap().len(),
            100
        );
    }
}

#[tokio::test]
async fn a_payload_that_json_can_t_carry_ends_its_readers_only() {
    let gateway = Gateway::open("").await;
    let mut reader = Json::connect(&gateway).await;
    reader.subscribe("a").await;
    let mut other = Json::connect(&gateway).await;
    other.subscribe("b").await;
    gateway.publish_bytes("a", b"\xFF").await;
    closed(&mut reader.ws, 3506).await;
    gateway.publish("b", "1").await;
    assert_eq!(other.next().await["push"]["pub"]["data"], 1);
}

#[tokio::test]
async fn r04_an_event_stream_that_nobody_reads_ends() {
    let toml = "[client]\nping_interval_s = 1\n[channel]\nring_messages_max = 10";
    let gateway = Gateway::open(toml).await;
    let stream = request(gateway.address, "GET /sse?channel=a", "", b"").await;
    let payload = "x".repeat(100_000);
    let mut live = gateway.raw(&Client::new(), "channel=a").await;
    let gone = async {
        while gateway.info().clients > 1 {
            gateway.publish("a", &payload).await;
            message(&mut live).await;
        }
    };
    in_time(gone).await;
    drop(stream);
}

#[tokio::test]
async fn r06_clients_that_come_and_go_leave_nothing_behind() {
    let gateway = Gateway::open("").await;
    for turn in 0..100 {
        let mut client = Json::connect(&gateway).await;
        client.subscribe(&format!("a{}", turn % 7)).await;
        let raw = gateway.raw(&Client::new(), "channel=a0&channel=b").await;
        let stream = request(gateway.address, "GET /sse?channel=a1", "", b"").await;
        assert_eq!(stream.status, 200);
        // Disconnect without a closing handshake, in a different order each time.
        match turn % 3 {
            0 => drop((client, raw, stream)),
            1 => drop((stream, client, raw)),
            _ => drop((raw, stream, client)),
        }
    }
    let gone = async {
        while gateway.info().clients > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    in_time(gone).await;
    assert_eq!(gateway.info().subscriptions, 0);
    assert_eq!(gateway.info().users, 0);
    let channels = gateway.api("channels", &json!({})).await;
    assert_eq!(channels["channels"], json!({}));
}
