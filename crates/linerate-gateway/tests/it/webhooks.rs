//! Webhooks: a real receiver is told what happens to clients and channels.

mod deaf;
mod occupancy;
mod published;
mod pusher;
mod services;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use parking_lot::Mutex;
use ring::hmac;
use serde_json::Value;
use tokio::{net::TcpListener, time::sleep};

use crate::{
    http::request,
    support::{Gateway, Json, config, in_time},
};

const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

/// An HTTP server that accepts or refuses batches.
#[derive(Clone, Debug, Default)]
struct Receiver(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    /// The status with which batches are refused; `None` if they are accepted.
    refusal: Option<StatusCode>,
    accepted: Vec<Delivered>,
    refused: usize,
}

/// The headers and the body of a batch.
type Delivered = (HeaderMap, Bytes);

impl Receiver {
    async fn serve(&self, address: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .route("/", post(receive))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    fn refuse(&self, status: StatusCode) {
        self.0.lock().refusal = Some(status);
    }

    fn accept(&self) {
        self.0.lock().refusal = None;
    }

    /// Waits until this many batches were refused.
    async fn refused(&self, count: usize) {
        in_time(async {
            while self.0.lock().refused < count {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    fn batches(&self) -> Vec<Delivered> {
        self.0.lock().accepted.clone()
    }

    fn events(&self) -> Vec<Value> {
        let batches = self.batches();
        let parse = |(_, body): &Delivered| serde_json::from_slice(body).unwrap();
        let bodies = batches.iter().map(parse);
        bodies
            .flat_map(|body: Value| body["events"].as_array().unwrap().clone())
            .collect()
    }

    /// Waits until there are this many events, and returns all.
    async fn count(&self, count: usize) -> Vec<Value> {
        in_time(async {
            while self.events().len() < count {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        self.events()
    }

    /// Waits until the last event is of this kind, and returns all events.
    async fn until(&self, kind: &str) -> Vec<Value> {
        in_time(async {
            loop {
                let events = self.events();
                if events.last().is_some_and(|event| event["event"] == kind) {
                    return events;
                }
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut received = receiver.0.lock();
    if let Some(status) = received.refusal {
        received.refused += 1;
        return status;
    }
    received.accepted.push((headers, body));
    StatusCode::NO_CONTENT
}

async fn gateway(address: SocketAddr, more: &str) -> Gateway {
    Gateway::start(config(&webhook(address, more))).await
}

fn webhook(address: SocketAddr, more: &str) -> String {
    format!(
        "[[webhook]]\nname = \"app\"\nurl = \"http://{address}/\"\nsecret = \"whsec_{SECRET}\"\n\
         batch_delay_ms = 10\nretry_pause_max_ms = 200\n{more}"
    )
}

/// Returns the value of a metric of the webhook.
async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let answer = request(gateway.address, "GET /metrics", "", b"").await;
    let text = answer.text().await;
    let line = format!("linerate_webhook_{name}{{webhook=\"app\"}} ");
    let value = text.lines().find_map(|it| it.strip_prefix(&line));
    value.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_client_is_reported_from_connecting_to_leaving() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let gateway = gateway(address, "").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("news").await;
    client
        .ask(r#"{"id":3,"unsubscribe":{"channel":"news"}}"#)
        .await;
    client.subscribe("news").await;
    drop(client);
    let events = receiver.until("disconnected").await;
    let all = [
        "connected",
        "subscribed",
        "unsubscribed",
        "subscribed",
        "unsubscribed",
        "disconnected",
    ];
    assert_eq!(kinds(&events), all);
    assert!(
        events
            .iter()
            .all(|event| event["client"] == events[0]["client"])
    );
    assert_eq!(
        (&events[0]["protocol"], &events[0]["transport"]),
        (&"centrifuge-json".into(), &"websocket".into())
    );
    assert_eq!(events[1]["channel"], "news");
    assert!(
        events[5]["received_bytes"].as_u64().unwrap() > 50,
        "{}",
        events[5]
    );
    assert!(
        events[5]["sent_bytes"].as_u64().unwrap() > 50,
        "{}",
        events[5]
    );
    assert!(
        events[5]["code"].is_null(),
        "the client has left: {}",
        events[5]
    );
    let numbers = events.iter().map(|event| event["seq"].as_u64().unwrap());
    assert!(numbers.eq(1..=6));
}

#[tokio::test]
async fn the_reason_of_the_server_is_reported() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let gateway = gateway(address, "events = [\"disconnected\"]").await;
    let mut client = Json::connect(&gateway).await;
    client.send(r#"{"id":2,"connect":{}}"#).await;
    client.closed(3501).await;
    let events = receiver.until("disconnected").await;
    assert_eq!(kinds(&events), ["disconnected"]);
    assert_eq!(events[0]["code"], 3501);
}

#[tokio::test]
async fn batches_are_signed_as_standard_webhooks_prescribe() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let gateway = gateway(address, "").await;
    let _client = Json::connect(&gateway).await;
    receiver.until("connected").await;
    let (headers, body) = receiver.batches().remove(0);
    let header = |name: &str| headers[name].to_str().unwrap();
    let mut signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
    signed.push_str(std::str::from_utf8(&body).unwrap());
    let key = hmac::Key::new(hmac::HMAC_SHA256, &BASE64_STANDARD.decode(SECRET).unwrap());
    let signature = header("webhook-signature").strip_prefix("v1,").unwrap();
    let signature = BASE64_STANDARD.decode(signature).unwrap();
    hmac::verify(&key, signed.as_bytes(), &signature).unwrap();
}

#[tokio::test]
async fn an_unavailable_receiver_gets_everything_later_and_in_order() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    receiver.refuse(StatusCode::INTERNAL_SERVER_ERROR);
    let gateway = gateway(address, "").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("news").await;
    drop(client);
    receiver.refused(3).await;
    assert!(receiver.events().is_empty());
    receiver.accept();
    let events = receiver.until("disconnected").await;
    assert_eq!(
        kinds(&events),
        ["connected", "subscribed", "unsubscribed", "disconnected"]
    );
}

#[tokio::test]
async fn beyond_the_limit_the_oldest_are_dropped_and_reported() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    receiver.refuse(StatusCode::SERVICE_UNAVAILABLE);
    let more = "queue_max = 5\nbatch_max = 1\nevents = [\"connected\"]";
    let gateway = gateway(address, more).await;
    let mut clients = Vec::new();
    for _ in 0..20 {
        clients.push(Json::connect(&gateway).await);
    }
    receiver.accept();
    let events = in_time(async {
        loop {
            let events = receiver.events();
            if events.last().is_some_and(|event| event["seq"] == 20) {
                return events;
            }
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    let dropped = events.iter().filter(|event| event["event"] == "dropped");
    let dropped: u64 = dropped.map(|event| event["count"].as_u64().unwrap()).sum();
    let delivered = kinds(&events)
        .into_iter()
        .filter(|kind| *kind == "connected")
        .count();
    assert!(dropped >= 14, "{dropped}");
    assert_eq!(dropped + delivered as u64, 20);
}

#[tokio::test]
async fn only_events_of_matching_channels_are_sent() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let more = "channels = [\"news:*\", \"chat\"]\nevents = [\"subscribed\", \"disconnected\"]";
    let gateway = gateway(address, more).await;
    let mut client = Json::connect(&gateway).await;
    for channel in ["news", "news:today", "chat", "chat:1"] {
        client.subscribe(channel).await;
    }
    drop(client);
    let events = receiver.until("disconnected").await;
    let channels: Vec<_> = events.iter().map(|event| &event["channel"]).collect();
    assert_eq!(
        channels,
        ["news:today".into(), "chat".into(), Value::Null].each_ref()
    );
}

#[tokio::test]
async fn a_reload_reads_files_again_and_keeps_what_waits() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    receiver.refuse(StatusCode::UNAUTHORIZED);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("authorization");
    std::fs::write(&file, "Bearer old").unwrap();
    let toml = webhook(
        address,
        &format!(
            "headers = {{ Authorization = \"file:{}\" }}",
            file.display()
        ),
    );
    let gateway = Gateway::start(config(&toml)).await;
    let _client = Json::connect(&gateway).await;
    receiver.refused(1).await;
    std::fs::write(&file, "Bearer new").unwrap();
    gateway.reload(config(&toml));
    receiver.accept();
    receiver.until("connected").await;
    let (headers, _) = receiver.batches().remove(0);
    assert_eq!(headers["authorization"], "Bearer new");
}
