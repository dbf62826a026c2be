//! A receiver of webhooks, which may be down.

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use serde_json::Value;
use tokio::{net::TcpListener, task::JoinHandle, time::sleep};

use super::node::Node;

/// How long a node may take to deliver what has waited.
const DELIVERED_MAX: Duration = Duration::from_secs(40);

/// A receiver of webhooks.
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<Received>>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Received {
    /// True if batches are refused, also on connections from before.
    is_down: bool,
    /// Events by the number that their node gave them.
    events: BTreeMap<u64, Value>,
    mistakes: Vec<String>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::default();
        Self {
            address,
            server: serve(listener, &state),
            state,
        }
    }

    /// Refuses connections and batches.
    pub(crate) fn go_down(&self) {
        self.server.abort();
        self.state.lock().unwrap().is_down = true;
    }

    /// Accepts batches again.
    pub(crate) async fn come_up(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.state.lock().unwrap().is_down = false;
        self.server = serve(listener, &self.state);
    }

    /// Returns the part of the configuration of a node that sends its events here.
    pub(crate) fn toml(&self) -> String {
        let address = self.address;
        let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
        format!(
            "[[webhook]]\nname = \"app\"\nurl = \"http://{address}/\"\nsecret = \"{secret}\"\n\
             retry_pause_max_ms = 1_000\n"
        )
    }

    /// Waits until the node has delivered its events, and returns what is wrong with them.
    pub(crate) async fn judge(&self, node: &Node) -> Vec<String> {
        let start = Instant::now();
        while node
            .metric("linerate_webhook_waiting{webhook=\"app\"}")
            .await
            != Some(0.0)
        {
            if start.elapsed() > DELIVERED_MAX {
                return vec!["events still wait for the webhook".to_owned()];
            }
            sleep(Duration::from_millis(100)).await;
        }
        let state = self.state.lock().unwrap();
        let mut mistakes = state.mistakes.clone();
        let numbers = state.events.keys().copied();
        if let Some((expected, seq)) = (1..).zip(numbers).find(|(expected, seq)| expected != seq) {
            mistakes.push(format!("event {expected} is missing, {seq} follows"));
        }
        mistakes.extend(lives(state.events.values()));
        mistakes
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Checks that each client connects once, and then disconnects at most once. There must be many.
fn lives<'a>(events: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut mistakes = Vec::new();
    let (mut connected, mut left) = (HashMap::new(), 0);
    for event in events {
        let client = event["client"].as_str().unwrap_or_default();
        let is_next = match event["event"].as_str() {
            Some("connected") => connected.insert(client, true).is_none(),
            Some("disconnected") => {
                left += 1;
                connected.insert(client, false) == Some(true)
            }
            Some("subscribed" | "unsubscribed") => connected.get(client) == Some(&true),
            _ => false,
        };
        if !is_next {
            mistakes.push(format!("unexpected event: {event}"));
        }
    }
    if left == 0 {
        mistakes.push("no client has left".to_owned());
    }
    mistakes
}

fn serve(listener: TcpListener, state: &Arc<Mutex<Received>>) -> JoinHandle<()> {
    let app = Router::new().route("/", post(receive));
    let app = app.with_state(state.clone());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() })
}

async fn receive(
    State(state): State<Arc<Mutex<Received>>>,
    Json(batch): Json<Value>,
) -> StatusCode {
    let mut state = state.lock().unwrap();
    if state.is_down {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    for event in batch["events"].as_array().into_iter().flatten() {
        let Some(seq) = event["seq"].as_u64() else {
            state
                .mistakes
                .push(format!("event without a number: {event}"));
            continue;
        };
        let previous = state.events.insert(seq, event.clone());
        if previous.is_some_and(|previous| previous != *event) {
            state
                .mistakes
                .push(format!("event {seq} has changed: {event}"));
        }
    }
    StatusCode::NO_CONTENT
}
