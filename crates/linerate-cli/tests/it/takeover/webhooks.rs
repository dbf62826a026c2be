//! A takeover while events wait for a webhook: each process tells what happened while it served,
//! and no client seems to come or go.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Json, State},
    http::StatusCode,
    routing::post,
};
use linerate_testkit::server::RedisServer;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};

use super::{
    Deploys,
    clients::{Follower, Kind, take_turns},
};
use crate::support::PATIENCE;

const CLIENTS: usize = 20;

/// A receiver of webhooks.
#[derive(Clone, Default)]
struct Receiver {
    accepts: Arc<AtomicBool>,
    batches: Arc<Mutex<Vec<Value>>>,
}

async fn receive(State(receiver): State<Receiver>, Json(batch): Json<Value>) -> StatusCode {
    if !receiver.accepts.load(Ordering::Relaxed) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    receiver.batches.lock().unwrap().push(batch);
    StatusCode::NO_CONTENT
}

impl Receiver {
    async fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().route("/", post(receive));
        let app = app.with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    /// Returns how often each kind of event was told, by the node that told it.
    fn told(&self) -> BTreeMap<(String, String), usize> {
        let mut told = BTreeMap::new();
        for batch in self.batches.lock().unwrap().iter() {
            let node = batch["node"].as_str().unwrap();
            for event in batch["events"].as_array().unwrap() {
                let kind = event["event"].as_str().unwrap();
                *told.entry((node.to_owned(), kind.to_owned())).or_default() += 1;
            }
        }
        told
    }

    /// Returns how often a kind of event was told, by all nodes.
    fn count(&self, kind: &str) -> usize {
        let told = self.told().into_iter();
        told.filter(|((_, it), _)| it == kind)
            .map(|(_, count)| count)
            .sum()
    }

    async fn until(&self, kind: &str, count: usize) {
        let until = async {
            while self.count(kind) < count {
                sleep(Duration::from_millis(20)).await;
            }
        };
        let is_in_time = timeout(PATIENCE, until).await.is_ok();
        assert!(is_in_time, "{kind}: {:?}", self.told());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_that_wait_are_delivered_and_no_client_seems_to_come_or_go() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let receiver = Receiver::default();
    let address = receiver.serve().await;
    let deploys = Deploys::new();
    let configuration = deploys.0.path().join("linerate.toml");
    let text = format!(
        "[[webhook]]\nname = \"app\"\nurl = \"http://{address}/\"\nbatch_delay_ms = 10\n\
         retry_pause_max_ms = 200\nsecret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
         events = [\"connected\", \"disconnected\", \"subscribed\", \"unsubscribed\",\
         \"occupied\", \"vacated\"]\n"
    );
    std::fs::write(&configuration, text).unwrap();
    let (broker, configuration) = (redis.url(), configuration.display().to_string());
    let more = ["--broker", &broker, "--config", &configuration];
    let mut running = deploys.start(&more);
    let mut followers = Vec::new();
    for _ in 0..CLIENTS {
        followers.push(Follower::open(running.address, Kind::Native, false).await);
    }
    // The receiver is down until the clients have moved.
    let accepts = receiver.accepts.clone();
    tokio::spawn(async move {
        sleep(Duration::from_secs(1)).await;
        accepts.store(true, Ordering::Relaxed);
    });
    take_turns(&deploys, &mut running, &more).await;
    receiver.until("connected", CLIENTS).await;
    receiver.until("subscribed", CLIENTS).await;
    // Longer than a channel must be vacant.
    sleep(Duration::from_secs(4)).await;
    for (kind, count) in [
        ("connected", CLIENTS),
        ("subscribed", CLIENTS),
        ("occupied", 1),
        ("unsubscribed", 0),
        ("disconnected", 0),
        ("vacated", 0),
        ("dropped", 0),
    ] {
        assert_eq!(receiver.count(kind), count, "{kind}: {:?}", receiver.told());
    }
    drop(followers);
    receiver.until("disconnected", CLIENTS).await;
    receiver.until("vacated", 1).await;
    let nodes_of = |kind: &str| {
        let told = receiver.told().into_keys();
        let nodes = told.filter(|(_, it)| it == kind).map(|(node, _)| node);
        nodes.collect::<Vec<_>>()
    };
    assert_eq!(nodes_of("unsubscribed"), nodes_of("disconnected"));
    assert_ne!(nodes_of("connected"), nodes_of("disconnected"));
    assert_eq!(receiver.count("vacated"), 1);
    running.stop_and_read_log();
}
