//! What Socket.IO clients keep when they move.

use std::{net::SocketAddr, time::Duration};

use linerate::{Client, WebSocket};
use linerate_broker::StreamOptions;
use serde_json::{Value, json};

use super::{Cluster, next, relocate};

const ON: &str = "[protocols]\nsocketio = true\n[socketio]\nnamespaces = [\"/\", \"/chat\"]\n\
                  rooms = [\"all\", \"/chat:all\"]\n";

async fn open(address: SocketAddr) -> WebSocket {
    let url = format!("ws://{address}/socket.io/?EIO=4&transport=websocket");
    let mut ws = Client::new().connect(&url).await.unwrap();
    assert!(next(&mut ws).await.starts_with(b"0{"));
    ws
}

#[tokio::test]
async fn namespaces_and_rooms_stay() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, ON).await;
    let mut client = open(address).await;
    let mut fresh = open(address).await;
    client.send("40/chat,").await.unwrap();
    assert!(next(&mut client).await.starts_with(b"40/chat,{"));
    let (new, _) = cluster.start_with(1, ON).await;
    assert_eq!(relocate(&old, &new).await, 2);
    cluster.publish("all", "1").await;
    cluster.publish("/chat:all", "2").await;
    let event = next(&mut client).await;
    assert_eq!(&*event, br#"42/chat,["message",2]"#);
    // A client without a namespace is not greeted again.
    fresh.send("40").await.unwrap();
    assert!(next(&mut fresh).await.starts_with(b"40{"));
    client.send(r#"42/chat,["a"]"#).await.unwrap();
    let event = next(&mut client).await;
    assert!(event.starts_with(br#"42/chat,["linerate:error""#));
}

#[tokio::test]
async fn a_client_whose_attachments_are_arriving_stays() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, ON).await;
    let mut client = open(address).await;
    client.send("40").await.unwrap();
    next(&mut client).await;
    let packet = r#"451-["a",{"_placeholder":true,"num":0}]"#;
    client.send(packet).await.unwrap();
    // The answer shows that the packets before it have arrived.
    let mut other = open(address).await;
    other.send("40").await.unwrap();
    next(&mut other).await;
    let (new, _) = cluster.start_with(1, ON).await;
    let moved = relocate(&old, &new).await;
    client.send(&b"a"[..]).await.unwrap();
    let event = next(&mut client).await;
    assert!(event.starts_with(br#"42["linerate:error""#));
    assert_eq!(moved, 1);
    assert_eq!((old.info().clients, new.info().clients), (1, 1));
}

#[tokio::test]
async fn a_client_that_has_moved_returns_to_its_session() {
    const RECOVERY: &str = "[protocols]\nsocketio = true\n[socketio]\nrooms = [\"all\"]\n\
                            recovery_s = 60\n\
                            [channel]\nhistory_size = 10\ndurable = true\nrecover = true\n";
    const STREAM: StreamOptions = StreamOptions {
        is_durable: true,
        size_max: 10,
        ttl: Duration::from_secs(60),
    };
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, RECOVERY).await;
    let mut client = open(address).await;
    client.send("40").await.unwrap();
    let connected = next(&mut client).await;
    let connected: Value = serde_json::from_slice(&connected[2..]).unwrap();
    cluster.publish_in("all", STREAM, "1").await;
    next(&mut client).await;
    let (new, address) = cluster.start_with(1, RECOVERY).await;
    assert_eq!(relocate(&old, &new).await, 1);
    cluster.publish_in("all", STREAM, "2").await;
    let event = next(&mut client).await;
    let event: Vec<Value> = serde_json::from_slice(&event[2..]).unwrap();
    assert_eq!(event[1], 2);
    drop(client);
    cluster.publish_in("all", STREAM, "3").await;
    // Repeated until the loss of the connection has been noticed.
    loop {
        let mut client = open(address).await;
        let auth = json!({"pid": connected["pid"], "offset": event[2]});
        client.send(format!("40{auth}")).await.unwrap();
        let again = next(&mut client).await;
        let again: Value = serde_json::from_slice(&again[2..]).unwrap();
        if again["pid"] == connected["pid"] {
            assert_eq!(again, connected);
            let event = next(&mut client).await;
            assert!(event.starts_with(br#"42["message",3,"#));
            return;
        }
    }
}
