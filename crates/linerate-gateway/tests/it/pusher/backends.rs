//! Channels for which a backend decides.

use serde_json::json;

use super::{APP, client::Pusher};
use crate::{
    backend::support::{Answer, Backend},
    support::{Gateway, config},
};

/// Starts a gateway that asks about subscriptions and publications.
async fn gateway(backend: &Backend) -> Gateway {
    let options = "[channel]\nsubscribe_backend = \"subscribe\"\npublish_backend = \"publish\"\n";
    let backends = backend.backends(&["subscribe", "publish"], "");
    Gateway::start(config(&format!("{APP}{options}{backends}"))).await
}

#[tokio::test]
async fn the_backend_is_asked_about_public_channels_only() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    assert!(backend.asked().is_empty(), "a signature is enough");
    backend.returns("subscribe", json!({}));
    client.subscribe("news").await;
    assert_eq!(backend.only().body["channel"], "news");
    let refused = json!({"error": {"code": 403, "message": "not yours"}});
    backend.answers("subscribe", Answer::Json(refused));
    let command = json!({"event": "pusher:subscribe", "data": {"channel": "others"}});
    client.send(&command).await;
    let message = client.next().await;
    assert_eq!(message["event"], "pusher:subscription_error", "{message}");
}

#[tokio::test]
async fn the_backend_decides_on_client_events() {
    let backend = Backend::start().await;
    let gateway = gateway(&backend).await;
    let mut sender = Pusher::connect(&gateway).await;
    let mut other = Pusher::connect(&gateway).await;
    for client in [&mut sender, &mut other] {
        client.subscribe("private-a").await;
    }
    backend.returns("publish", json!({"data": {"mild": true}}));
    let rude = json!({"rude": true});
    sender.trigger("private-a", "client-e", rude.clone()).await;
    let event = other.event("private-a", "client-e").await;
    assert_eq!(event, json!({"mild": true}));
    assert_eq!(backend.only().body["data"], rude);
    backend.answers("publish", Answer::Status(500));
    sender.trigger("private-a", "client-e", rude).await;
    assert_eq!(sender.next().await["event"], "pusher:error");
    other.expect_nothing().await;
}
