//! Webhooks are told what clients publish.

use serde_json::{Value, json};

use super::{Receiver, gateway, kinds, webhook};
use crate::support::{Gateway, Json, config};

const OPEN: &str =
    "[channel]\nallow_publish = true\n[[namespace]]\nname = \"quiet\"\nallow_publish = false\n";

async fn publish(client: &mut Json, channel: &str, data: &str) -> Value {
    let command = format!(r#"{{"id":9,"publish":{{"channel":"{channel}","data":{data}}}}}"#);
    client.ask(&command).await
}

#[tokio::test]
async fn a_publication_of_a_client_is_told_with_its_data() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let more = format!("events = [\"published\", \"disconnected\"]\n{OPEN}");
    let gateway = gateway(address, &more).await;
    let mut client = Json::connect(&gateway).await;
    let refused = publish(&mut client, "quiet:a", "1").await;
    assert!(refused["error"].is_object(), "{refused}");
    for data in [r#"{"text": "ü\n"}"#, "7"] {
        let reply = publish(&mut client, "news", data).await;
        assert!(reply["publish"].is_object(), "{reply}");
    }
    // The application knows what it publishes itself.
    gateway.publish("news", "8").await;
    drop(client);
    let events = receiver.until("disconnected").await;
    assert_eq!(kinds(&events), ["published", "published", "disconnected"]);
    assert_eq!(events[0]["channel"], "news");
    assert_eq!(events[0]["data"], json!({"text": "ü\n"}));
    assert_eq!(events[1]["data"], 7);
    assert_eq!(events[0]["client"], events[2]["client"]);
    assert!(events[0]["tags"].is_null());
}

#[tokio::test]
async fn publications_are_told_only_to_webhooks_that_ask_for_them() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let toml = format!("{}\n{OPEN}", webhook(address, ""));
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Json::connect(&gateway).await;
    publish(&mut client, "news", "7").await;
    drop(client);
    let events = receiver.until("disconnected").await;
    assert_eq!(kinds(&events), ["connected", "disconnected"]);
}

#[tokio::test]
async fn a_publication_that_fails_is_not_told() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let more = format!("events = [\"published\", \"disconnected\"]\n{OPEN}");
    let toml = webhook(address, &more);
    // No server listens there.
    let gateway = Gateway::start_on("redis://127.0.0.1:9", config(&toml));
    let mut client = Json::connect(&gateway).await;
    let refused = publish(&mut client, "news", "7").await;
    assert!(refused["error"].is_object(), "{refused}");
    drop(client);
    let events = receiver.until("disconnected").await;
    assert_eq!(kinds(&events), ["disconnected"]);
}
