//! Tests of the native protocol: commands as text, publications in blocks.

use linerate::Client;
use serde_json::{Value, json};

use crate::support::{Gateway, in_time, message};

async fn connect(gateway: &Gateway) -> linerate::WebSocket {
    let client = Client::new().with_subprotocol("linerate.v1");
    let url = gateway.url("/connection/websocket");
    let mut ws = client.connect(&url).await.unwrap();
    assert_eq!(ws.subprotocol().as_deref(), Some("linerate.v1"));
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    let reply = reply(&mut ws).await;
    assert!(reply["connect"].is_object(), "{reply}");
    ws
}

async fn reply(ws: &mut linerate::WebSocket) -> Value {
    let message = message(ws).await;
    serde_json::from_str(message.as_text().expect("text")).unwrap()
}

#[tokio::test]
async fn publications_come_in_blocks_under_the_number_that_the_reply_names() {
    let gateway = Gateway::open("").await;
    let mut ws = connect(&gateway).await;
    ws.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#)
        .await
        .unwrap();
    let subscribed = reply(&mut ws).await;
    let id = subscribed["subscribe"]["id"].as_u64().expect("a number") as u8;
    gateway.publish_bytes("a", b"\xFFx").await;
    let block = message(&mut ws).await;
    // The channel, the flag for offsets, the first offset, and one publication with its length.
    assert_eq!(block.as_bytes(), [id, 0x01, 1, 1, 2, 0xFF, b'x']);
}

#[tokio::test]
async fn what_was_missed_comes_in_blocks_behind_the_reply() {
    let gateway = Gateway::open("").await;
    let mut ws = connect(&gateway).await;
    ws.send(r#"{"id":2,"subscribe":{"channel":"a"}}"#)
        .await
        .unwrap();
    let epoch = reply(&mut ws).await["subscribe"]["epoch"].clone();
    for payload in ["1", "2", "3"] {
        gateway.publish("a", payload).await;
    }
    let mut other = connect(&gateway).await;
    let recover = json!({"channel": "a", "recover": true, "epoch": epoch, "offset": 1});
    let command = json!({"id": 2, "subscribe": recover}).to_string();
    other.send(command).await.unwrap();
    let subscribed = reply(&mut other).await;
    assert_eq!(subscribed["subscribe"]["recovered"], true, "{subscribed}");
    let block = message(&mut other).await;
    assert_eq!(block.as_bytes()[1..], [0x01, 2, 2, 1, b'2', 1, b'3']);
}

#[tokio::test]
async fn options_of_ours_are_taken() {
    let gateway = Gateway::open("").await;
    let mut ws = connect(&gateway).await;
    let subscribe = json!({"channel": "a", "filter": "n > 8", "batch_interval_ms": 100});
    let command = json!({"id": 2, "subscribe": subscribe}).to_string();
    ws.send(command).await.unwrap();
    reply(&mut ws).await;
    for number in 0..=9 {
        let payload = json!({"n": number}).to_string();
        gateway.publish("a", &payload).await;
    }
    let block = message(&mut ws).await;
    assert!(
        block.as_bytes().ends_with(b"{\"n\":9}"),
        "{:?}",
        block.as_bytes()
    );
    assert!(
        !block
            .as_bytes()
            .windows(7)
            .any(|seven| seven == b"{\"n\":8}")
    );
    let idle = tokio::time::timeout(std::time::Duration::from_millis(300), ws.recv());
    assert!(idle.await.is_err());
    in_time(ws.close(linerate::CloseCode::NORMAL, ""))
        .await
        .unwrap();
}
