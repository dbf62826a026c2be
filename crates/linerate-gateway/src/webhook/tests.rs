//! A receiver that is down for an hour.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use linerate_budget::{Budget, Consumer};
use linerate_hub::ChannelName;
use linerate_testkit::{PATIENCE, server::free_port};
use serde_json::Value;
use tokio::{
    net::TcpListener,
    runtime::Handle,
    time::{resume, sleep, timeout},
};

use super::{Endpoint, Event, Happened, Webhook};
use crate::config::{Secret, WebhookOptions};

/// The seconds of an hour, in each of which there is an event.
const SECONDS: u64 = 3_600;

type Received = Arc<Mutex<Vec<(u64, String)>>>;

async fn receive(State(received): State<Received>, Json(batch): Json<Value>) -> StatusCode {
    for event in batch["events"].as_array().unwrap() {
        let channel = event["channel"].as_str().unwrap_or_default();
        let seq = event["seq"].as_u64().unwrap_or_default();
        received.lock().unwrap().push((seq, channel.to_owned()));
    }
    StatusCode::NO_CONTENT
}

#[tokio::test(start_paused = true)]
async fn events_of_an_hour_without_the_receiver_are_told_in_order() {
    let port = free_port();
    let options = WebhookOptions {
        name: "app".into(),
        url: Secret::new(&format!("http://127.0.0.1:{port}/")),
        secret: Some(Secret::new(
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=",
        )),
        retry_pause_max: Duration::from_secs(2),
        ..WebhookOptions::default()
    };
    let endpoint = Arc::new(Endpoint::new(&options, None).unwrap());
    let lease = Budget::unbounded().lease(Consumer::Messages);
    let webhook = Webhook::start("node".into(), endpoint, lease, &Handle::current());
    for second in 0..SECONDS {
        let channel = ChannelName::new(&format!("at:{second}")).unwrap();
        webhook.push(Event::now(None, Happened::Vacated { channel }));
        sleep(Duration::from_secs(1)).await;
    }
    let counts = webhook.counts();
    assert_eq!((counts.delivered, counts.dropped), (0, 0));
    assert!(counts.retries > SECONDS / 10, "{counts:?}");
    // The receiver answers in real time.
    resume();
    let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
    let received = Received::default();
    let app = Router::new().route("/", post(receive));
    let app = app.with_state(received.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    timeout(PATIENCE, webhook.flushed()).await.unwrap();
    let expected = (1..).zip((0..SECONDS).map(|second| format!("at:{second}")));
    let expected: Vec<_> = expected.collect();
    assert_eq!(*received.lock().unwrap(), expected);
    assert_eq!(webhook.counts().delivered, SECONDS);
}
