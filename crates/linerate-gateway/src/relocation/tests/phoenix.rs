//! What Phoenix clients keep when they move.

use linerate::Client;
use serde_json::{Value, json};

use super::{Cluster, next, relocate};

#[tokio::test]
async fn joins_stay_with_their_references() {
    let toml = "[protocols]\nphoenix = true\n";
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, toml).await;
    let url = format!("ws://{address}/socket/websocket?vsn=2.0.0");
    let mut ws = Client::new().connect(&url).await.unwrap();
    let join = |reference: &str, topic: &str| {
        json!([reference, reference, topic, "phx_join", {}]).to_string()
    };
    let read = |message: &[u8]| serde_json::from_slice::<Value>(message).unwrap();
    for (reference, topic) in [("1", "room:1"), ("2", "room:2")] {
        ws.send(join(reference, topic)).await.unwrap();
        assert_eq!(read(&next(&mut ws).await)[4]["status"], "ok");
    }
    let (new, _) = cluster.start_with(1, toml).await;
    assert_eq!(relocate(&old, &new).await, 1);
    cluster.publish("room:1", "1").await;
    let broadcast = json!([null, null, "room:1", "message", 1]);
    assert_eq!(read(&next(&mut ws).await), broadcast);
    let leave = json!(["2", "3", "room:2", "phx_leave", {}]);
    ws.send(leave.to_string()).await.unwrap();
    let left = json!(["2", "3", "room:2", "phx_reply", {"status": "ok", "response": {}}]);
    assert_eq!(read(&next(&mut ws).await), left);
    let closed = json!(["2", "2", "room:2", "phx_close", {}]);
    assert_eq!(read(&next(&mut ws).await), closed);
    ws.send(join("4", "room:1")).await.unwrap();
    let closed = json!(["1", "1", "room:1", "phx_close", {}]);
    assert_eq!(read(&next(&mut ws).await), closed);
}
