//! Many clients at once: idle clients use little memory, and clients that reconnect at the same
//! time are all accepted and recover.

use std::time::Duration;

use futures_util::future::join_all;
use linerate::{Message, WebSocket};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, Server};

/// Number of idle clients.
const IDLE: usize = 500;

/// Maximum memory per idle client, including pings. Futures are larger in a test build than in a
/// release build.
const IDLE_BYTES_MAX: u64 = 48 << 10;

/// Number of clients that reconnect at the same time.
const CROWD: usize = 300;

async fn listen(server: &Server, count: usize) -> Vec<WebSocket> {
    join_all((0..count).map(|_| server.connect("/raw?channel=demo:idle"))).await
}

async fn expect_text(ws: &mut WebSocket, text: &str) {
    let message = timeout(PATIENCE, ws.recv()).await.unwrap().unwrap();
    assert_eq!(message.as_ref().and_then(Message::as_text), Some(text));
}

/// Returns the resident memory of a server in bytes.
fn resident_bytes(server: &Server) -> u64 {
    server.process().resident_bytes().unwrap()
}

#[tokio::test]
async fn r01_idle_clients_cost_little_and_pings_cost_no_more() {
    let server = Server::start_with(&["--set", "client.ping_interval_s=1"]);
    // The first clients also cause one-time allocations, which must not be counted.
    let mut all = listen(&server, 50).await;
    let before = resident_bytes(&server);
    all.extend(listen(&server, IDLE).await);
    let each = resident_bytes(&server).saturating_sub(before) / IDLE as u64;
    assert!(each < IDLE_BYTES_MAX, "{each} bytes for each");
    // Long enough for several pings to each client.
    sleep(Duration::from_secs(4)).await;
    let each = resident_bytes(&server).saturating_sub(before) / IDLE as u64;
    assert!(each < IDLE_BYTES_MAX, "{each} bytes for each, after pings");
    server
        .api("publish", json!({"channel": "demo:idle", "data": 7}))
        .await;
    for ws in &mut all {
        expect_text(ws, "7").await;
    }
}

/// Subscribes a Centrifuge client; returns it with its position in the channel.
async fn subscribe(server: &Server, since: Option<&Value>) -> (WebSocket, Value) {
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    next(&mut ws).await;
    let mut wanted = json!({"channel": "demo:crowd"});
    if let Some(since) = since {
        let offset = since["offset"].as_u64().unwrap_or(0);
        wanted["recover"] = json!(true);
        wanted["epoch"] = since["epoch"].clone();
        wanted["offset"] = json!(offset);
    }
    let command = json!({"id": 2, "subscribe": wanted});
    ws.send(command.to_string()).await.unwrap();
    let reply = next(&mut ws).await["subscribe"].take();
    (ws, reply)
}

async fn next(ws: &mut WebSocket) -> Value {
    let message = timeout(PATIENCE, ws.recv()).await.unwrap().unwrap();
    serde_json::from_str(message.unwrap().as_text().unwrap()).unwrap()
}

#[tokio::test]
async fn g07_a_crowd_that_comes_back_at_once_gets_in_and_misses_nothing() {
    // One third of the clients is accepted per second.
    let server = Server::start_with(&["--set", "server.accepts_per_second_max=100"]);
    let mut witness = server.connect("/raw?channel=demo:crowd").await;
    let (_, start) = subscribe(&server, None).await;
    let first = join_all((0..CROWD).map(|_| subscribe(&server, None))).await;
    drop(first);
    for n in 1..=5 {
        server
            .api("publish", json!({"channel": "demo:crowd", "data": n}))
            .await;
    }
    let again = join_all((0..CROWD).map(|_| subscribe(&server, Some(&start)))).await;
    for (_, reply) in &again {
        assert_eq!(reply["recovered"], true, "{reply}");
        let missed = reply["publications"].as_array().unwrap();
        let missed: Vec<_> = missed.iter().map(|one| one["data"].clone()).collect();
        assert_eq!(missed, [1, 2, 3, 4, 5]);
    }
    let metrics = server.get("/metrics").await;
    let refused = "linerate_connections_refused_total ";
    let refused = metrics
        .text()
        .lines()
        .find_map(|line| line.strip_prefix(refused));
    assert!(
        refused.is_none_or(|refused| refused == "0.0"),
        "{refused:?}"
    );
    for n in 1..=5 {
        expect_text(&mut witness, &n.to_string()).await;
    }
}
