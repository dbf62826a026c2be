//! A receiver that accepts connections and never answers.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::{io::AsyncReadExt, net::TcpListener, time::sleep};

use super::{Receiver, kinds, metric, webhook};
use crate::support::{Gateway, Json, config, in_time};

#[tokio::test]
async fn a_deaf_receiver_costs_no_more_than_the_queue_and_delays_no_client() {
    let deaf = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = deaf.local_addr().unwrap();
    let reads = tokio::spawn(async move {
        let mut connections = 0;
        loop {
            let (mut socket, _) = deaf.accept().await.unwrap();
            connections += 1;
            if connections == 3 {
                return;
            }
            tokio::spawn(async move {
                let mut sink = vec![0; 4_096];
                while socket.read(&mut sink).await.is_ok_and(|bytes| bytes > 0) {}
            });
        }
    });
    let more = "timeout_ms = 100\nqueue_max = 50\nbatch_max = 10\n\
                events = [\"subscribed\", \"unsubscribed\"]\n";
    let gateway = Gateway::start(config(&webhook(address, more))).await;
    let mut client = Json::connect(&gateway).await;
    let mut slowest = Duration::ZERO;
    for _ in 0..200 {
        let since = Instant::now();
        client.subscribe("news").await;
        client
            .ask(r#"{"id":3,"unsubscribe":{"channel":"news"}}"#)
            .await;
        slowest = slowest.max(since.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
    // It is tried again and again, with a new connection.
    in_time(reads).await.unwrap();
    let (waiting, dropped) = (
        metric(&gateway, "waiting").await,
        metric(&gateway, "dropped_total").await,
    );
    assert!(waiting <= 60.0, "{waiting}");
    assert!(dropped >= 340.0, "{dropped}");
    assert_eq!(waiting + dropped, 400.0);
    assert!(metric(&gateway, "retries_total").await >= 2.0);

    // A receiver that takes its place is told of what was dropped.
    let receiver = Receiver::default();
    receiver.serve(address).await;
    let events = in_time(async {
        loop {
            let events = receiver.events();
            if events.last().is_some_and(|event| event["seq"] == 400) {
                return events;
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let count = |event: &Value| event["count"].as_u64();
    let told: u64 = events.iter().filter_map(count).sum();
    assert_eq!(told as f64, dropped);
    let delivered = events.len() - kinds(&events).iter().filter(|it| **it == "dropped").count();
    assert_eq!(delivered as u64 + told, 400);
}
