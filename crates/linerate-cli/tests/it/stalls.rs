//! A node that was stopped first reads what has arrived meanwhile before it decides that a peer was
//! silent.

use std::time::Duration;

use linerate::WebSocket;
use linerate_testkit::server::{RedisServer, ServerProcess, free_port};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{PATIENCE, Server, until};

/// Longer than a link may be silent (10 s), and than a client may take to answer a ping (8 s).
const STALL: Duration = Duration::from_secs(13);

/// Connects as an SDK does, to a channel without history.
async fn centrifuge(server: &Server) -> WebSocket {
    let mut ws = server.connect("/connection/websocket").await;
    ws.send("{\"id\":1,\"connect\":{}}\n{\"id\":2,\"subscribe\":{\"channel\":\"live:a\"}}")
        .await
        .unwrap();
    let reply = next(&mut ws).await;
    assert!(reply.contains("\"client\""), "{reply}");
    ws
}

async fn next(ws: &mut WebSocket) -> String {
    let message = timeout(PATIENCE, ws.recv()).await.unwrap().unwrap();
    let message = message.unwrap_or_else(|| panic!("closed: {:?}", ws.closed()));
    message.as_text().unwrap().to_owned()
}

/// Reads until the number `to` has arrived. Every number must arrive once and in order, and nothing
/// else.
async fn read_until(raw: &mut WebSocket, from: u64, to: u64) {
    for expected in from..=to {
        assert_eq!(next(raw).await, expected.to_string());
    }
}

/// Returns the numbers that arrive on an SDK's connection up to `last`. The client must not be
/// unsubscribed or disconnected.
async fn numbers(ws: &mut WebSocket, last: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.last() != Some(&last) {
        let text = next(ws).await;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            match &line["push"]["pub"]["data"] {
                Value::Number(number) => numbers.push(number.as_u64().unwrap()),
                _ if line == json!({}) => ws.send("{}").await.unwrap(),
                _ => assert!(line["push"].is_null(), "{line}"),
            }
        }
    }
    numbers
}

/// Stops one of two servers with SIGSTOP, publishes through the other one, and resumes the first.
async fn nothing_is_lost(broker: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("linerate.toml");
    let toml = "[[namespace]]\nname = \"live\"\nhistory_size = 0\nrecover = false\n";
    std::fs::write(&file, toml).unwrap();
    let flags = ["--broker", broker, "--config", file.to_str().unwrap()];
    let [stopped, other] = [0, 1].map(|_| Server::start_with(&flags));
    for server in [&stopped, &other] {
        until(server, "/ready", |text| text.starts_with("200")).await;
    }
    let publish = async |number: u64| {
        let body = json!({"channel": "live:a", "data": number});
        other.api("publish", body).await;
    };
    let mut raw = stopped.connect("/raw?channel=live:a&gaps=true").await;
    let mut sdk = centrifuge(&stopped).await;
    publish(0).await;
    read_until(&mut raw, 0, 0).await;
    assert_eq!(numbers(&mut sdk, 0).await, [0]);
    // By then, probes have been sent in both directions.
    sleep(Duration::from_millis(1_500)).await;
    stopped.signal("-STOP");
    let (begun, mut last) = (Instant::now(), 0);
    while begun.elapsed() < STALL {
        last += 1;
        publish(last).await;
        sleep(Duration::from_millis(10)).await;
    }
    stopped.signal("-CONT");
    last += 1;
    publish(last).await;
    read_until(&mut raw, 1, last).await;
    let arrived = numbers(&mut sdk, last).await;
    assert!(arrived.into_iter().eq(1..=last));
    // No connection is closed later, either.
    sleep(Duration::from_secs(3)).await;
    publish(last + 1).await;
    read_until(&mut raw, last + 1, last + 1).await;
    assert_eq!(stopped.get("/ready").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_stopped_reads_its_healthy_link_to_redis_before_it_judges_it() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    nothing_is_lost(&redis.url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_stopped_reads_its_healthy_link_to_nats_before_it_judges_it() {
    let port = free_port();
    let arguments = ["-a", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned);
    let Some(nats) = ServerProcess::start("nats-server", port, |_| arguments.to_vec()) else {
        return;
    };
    nothing_is_lost(&format!("nats://{}", nats.address())).await;
}
