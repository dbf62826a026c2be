//! Subscriptions to patterns reach only channels to which the client could subscribe by name.

use linerate::Client;
use serde_json::json;

use crate::{
    http::request,
    support::{Gateway, Json, SECRET, config, in_time, message, token},
};

const OPTIONS: &str = "[channel]\nallow_subscribe = true\nallow_anonymous = true\nallow_pattern = true\n\
    [[namespace]]\nname = \"private\"\nallow_subscribe = false\nallow_anonymous = false\n\
    [[namespace]]\nname = \"users\"\nallow_anonymous = false\n\
    [[namespace]]\nname = \"single\"\nallow_pattern = false\n";

/// A channel of each namespace. The last one ends the test, because every client may see it.
const CHANNELS: [&str; 5] = ["private:x", "users:x", "single:x", "p", "pend"];

async fn start() -> Gateway {
    Gateway::guarded(&format!("[auth]\nanonymous = true\n{OPTIONS}")).await
}

async fn publish_everywhere(gateway: &Gateway) {
    for channel in CHANNELS {
        gateway.publish(channel, &json!(channel).to_string()).await;
    }
}

/// Returns what a Centrifuge client receives through a pattern, up to the last channel.
async fn seen(client: &mut Json, gateway: &Gateway) -> Vec<String> {
    publish_everywhere(gateway).await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|last| last != "pend") {
        let line = client.next().await;
        let data = line["push"]["pub"]["data"].as_str();
        seen.push(data.unwrap_or_else(|| panic!("{line}")).to_owned());
    }
    seen
}

#[tokio::test]
async fn an_anonymous_pattern_does_not_cross_into_a_namespace_that_denies_it() {
    let gateway = start().await;
    for pattern in ["*", "p*"] {
        let mut client = Json::connect(&gateway).await;
        client.subscribe(pattern).await;
        assert_eq!(
            seen(&mut client, &gateway).await,
            ["p", "pend"],
            "{pattern}"
        );
    }
    // Nothing from the private namespace arrives, although the pattern itself is allowed.
    let mut client = Json::connect(&gateway).await;
    client.subscribe("private*").await;
    client.subscribe("pen*").await;
    assert_eq!(seen(&mut client, &gateway).await, ["pend"]);
}

#[tokio::test]
async fn users_and_holders_of_a_token_for_the_pattern_see_what_they_may() {
    let gateway = start().await;
    let ann = token(&json!({"sub": "ann"}));
    let mut client = Json::connect_with(&gateway, &ann).await;
    client.subscribe("*").await;
    assert_eq!(seen(&mut client, &gateway).await, ["users:x", "p", "pend"]);
    let all = token(&json!({"sub": "ann", "channel": "*"}));
    let mut client = Json::connect_with(&gateway, &ann).await;
    let command = json!({"id": 2, "subscribe": {"channel": "*", "token": all}});
    assert!(client.ask(&command.to_string()).await["subscribe"].is_object());
    let expected = ["private:x", "users:x", "p", "pend"];
    assert_eq!(seen(&mut client, &gateway).await, expected);
}

#[tokio::test]
async fn a_pattern_crosses_no_namespace_in_any_protocol() {
    let gateway = start().await;
    let mut raw = gateway.raw(&Client::new(), "channel=*&gaps=true").await;
    let filtered = "channel=*&gaps=true&filter=size(value)%20%3E%200%20%7C%7C%20true";
    let mut filtered = gateway.raw(&Client::new(), filtered).await;
    let mut events = request(gateway.address, "GET /sse?channel=*", "", b"").await;
    assert_eq!(events.until(b"\n\n").await.unwrap(), b":");
    let native = Client::new().with_subprotocol("linerate.v1");
    let mut native = Json::open_as(&gateway, &native).await;
    native.ask(r#"{"id":1,"connect":{}}"#).await;
    native.subscribe("*").await;
    publish_everywhere(&gateway).await;
    for expected in ["\"p\"", "\"pend\""] {
        assert_eq!(message(&mut raw).await, expected.into());
        assert_eq!(message(&mut filtered).await, expected.into());
        let event = String::from_utf8(events.until(b"\n\n").await.unwrap()).unwrap();
        assert!(event.ends_with(&format!("data: {expected}")), "{event}");
    }
    let mut told = Vec::new();
    while !told.windows(6).any(|bytes| bytes == b"\"pend\"") {
        let block = in_time(native.ws.recv()).await.unwrap().unwrap();
        told.extend_from_slice(block.as_bytes());
    }
    let told = String::from_utf8_lossy(&told);
    for channel in ["private", "users", "single"] {
        assert!(!told.contains(channel), "{told}");
    }
}

#[tokio::test]
async fn a_namespace_that_is_closed_later_is_withheld_from_patterns_that_stand() {
    let gateway = start().await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("*").await;
    assert_eq!(seen(&mut client, &gateway).await, ["p", "pend"]);
    let auth = format!("[auth]\nanonymous = true\n[auth.token]\nhmac_secret_key = \"{SECRET}\"\n");
    let open = config(&format!(
        "{auth}[channel]\nallow_subscribe = true\nallow_anonymous = true\nallow_pattern = true\n"
    ));
    let closed = config(&format!("{auth}{OPTIONS}"));
    for (config, expected) in [(open, &CHANNELS[..]), (closed, &CHANNELS[3..])] {
        gateway.reload(config);
        assert_eq!(seen(&mut client, &gateway).await, expected);
    }
}
