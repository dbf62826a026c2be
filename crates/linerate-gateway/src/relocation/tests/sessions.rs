//! What sessions and connections keep when they move.

use std::{net::SocketAddr, time::Duration};

use linerate::{Client, CloseCode, Deflate, WebSocket};
use linerate_hub::fossil;
use linerate_testkit::PATIENCE;
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{Cluster, fail_to_relocate, next, relocate};

/// A client that speaks Centrifuge's protocol in JSON.
struct Json(WebSocket);

impl Json {
    async fn open(address: SocketAddr) -> Self {
        let url = format!("ws://{address}/connection/websocket");
        Self(Client::new().connect(&url).await.unwrap())
    }

    async fn connect(address: SocketAddr) -> Self {
        let mut client = Self::open(address).await;
        client.ask(&json!({"id": 1, "connect": {}})).await;
        client
    }

    async fn send(&mut self, command: &Value) {
        self.0.send(command.to_string()).await.unwrap();
    }

    async fn ask(&mut self, command: &Value) -> Value {
        self.send(command).await;
        self.next().await
    }

    /// Returns the next line, of which each message here has one.
    async fn next(&mut self) -> Value {
        serde_json::from_slice(&next(&mut self.0).await).unwrap()
    }

    /// Asserts that nothing was sent to the client before the answer to its next command.
    async fn expect_nothing(&mut self) {
        let reply = self.ask(&json!({"id": 99, "ping": {}})).await;
        assert_eq!(reply["id"], 99, "{reply}");
    }
}

#[tokio::test]
async fn commands_work_as_before() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start(1).await;
    let mut client = Json::connect(address).await;
    let mut fresh = Json::open(address).await;
    client
        .ask(&json!({"id": 2, "subscribe": {"channel": "demo:a"}}))
        .await;
    cluster.publish("demo:a", "1").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 1);
    let (new, _) = cluster.start(1).await;
    assert_eq!(relocate(&old, &new).await, 2);
    cluster.publish("demo:a", "2").await;
    assert_eq!(client.next().await["push"]["pub"]["data"], 2);
    let again = client
        .ask(&json!({"id": 3, "subscribe": {"channel": "demo:a"}}))
        .await;
    assert_eq!(again["error"]["code"], 105, "it is subscribed already");
    client
        .ask(&json!({"id": 4, "subscribe": {"channel": "demo:b"}}))
        .await;
    let published = json!({"id": 5, "publish": {"channel": "demo:b", "data": {"b": 1}}});
    client.send(&published).await;
    let replies = [client.next().await, client.next().await];
    assert!(replies.iter().any(|line| line["id"] == 5), "{replies:?}");
    assert!(
        replies
            .iter()
            .any(|line| line["push"]["channel"] == "demo:b"),
        "{replies:?}"
    );
    client
        .ask(&json!({"id": 6, "unsubscribe": {"channel": "demo:a"}}))
        .await;
    cluster.publish("demo:a", "3").await;
    client.expect_nothing().await;
    // A client that had not sent its connect command yet.
    let connected = fresh.ask(&json!({"id": 1, "connect": {}})).await;
    assert!(connected["connect"]["client"].is_string(), "{connected}");
    assert_eq!((old.info().clients, new.info().clients), (0, 2));
}

#[tokio::test]
async fn the_options_of_subscriptions_stay() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start(1).await;
    let mut filtered = Json::connect(address).await;
    let subscribe = json!({"channel": "a", "filter": "n > 1"});
    let reply = filtered
        .ask(&json!({"id": 2, "subscribe": subscribe}))
        .await;
    assert!(reply["subscribe"].is_object(), "{reply}");
    let (new, _) = cluster.start(1).await;
    relocate(&old, &new).await;
    for n in 1..=2 {
        cluster.publish("a", &json!({"n": n}).to_string()).await;
    }
    assert_eq!(filtered.next().await["push"]["pub"]["data"]["n"], 2);
}

#[tokio::test]
async fn deltas_begin_again_with_a_whole_payload() {
    let toml = "[channel]\nallow_delta = true";
    let cluster = Cluster::new();
    let (mut gateway, address) = cluster.start_with(1, toml).await;
    let mut client = Json::connect(address).await;
    let subscribe = json!({"channel": "a", "delta": "fossil"});
    let reply = client.ask(&json!({"id": 2, "subscribe": subscribe})).await;
    assert_eq!(reply["subscribe"]["delta"], true, "{reply}");
    let mut payload = Vec::new();
    for is_moved in [false, true, true] {
        if is_moved {
            // The new configuration does not allow deltas, but the client expects them.
            let (new, _) = cluster.start(1).await;
            assert_eq!(relocate(&gateway, &new).await, 1);
            gateway = new;
        }
        for n in 0..3 {
            let published = format!(r#"{{"text":"a text of some length","n":{n}}}"#);
            cluster.publish("a", &published).await;
            let push = client.next().await;
            let publication = &push["push"]["pub"];
            let data = publication["data"].as_str().unwrap().as_bytes();
            assert_eq!(publication["delta"] == true, n > 0, "{push}");
            payload = match n {
                0 => data.to_vec(),
                _ => fossil::apply(&payload, data, 100).unwrap(),
            };
            assert_eq!(String::from_utf8_lossy(&payload), published);
        }
    }
}

#[tokio::test]
async fn channels_keep_their_ids() {
    let toml = "[channel]\nallow_channel_compaction = true";
    let cluster = Cluster::new();
    let (mut gateway, address) = cluster.start_with(1, toml).await;
    let mut client = Json::connect(address).await;
    let mut ids = Vec::new();
    for (id, channel) in [(2, "a"), (3, "b")] {
        let subscribe = json!({"channel": channel, "flag": 1});
        let reply = client.ask(&json!({"id": id, "subscribe": subscribe})).await;
        ids.push((channel, reply["subscribe"]["id"].as_u64().unwrap()));
    }
    assert_ne!(ids[0].1, ids[1].1);
    for _ in 0..2 {
        for (channel, id) in &ids {
            cluster.publish(channel, "1").await;
            let push = client.next().await;
            assert_eq!(push["push"]["id"], *id, "{push}");
            assert!(push["push"]["channel"].is_null(), "{push}");
        }
        let (new, _) = cluster.start_with(1, toml).await;
        assert_eq!(relocate(&gateway, &new).await, 1);
        gateway = new;
    }
}

#[tokio::test]
async fn nobody_is_told_that_clients_leave_or_join() {
    let presence = "[channel]\npresence = true\njoin_leave = true\nallow_presence = true";
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, presence).await;
    let mut one = Json::connect(address).await;
    let subscribe = json!({"id": 2, "subscribe": {"channel": "a", "join_leave": true}});
    one.ask(&subscribe).await;
    let mut other = Json::connect(address).await;
    other.ask(&subscribe).await;
    let joined = one.next().await;
    let joined = if joined["push"]["join"].is_null() {
        one.next().await
    } else {
        joined
    };
    assert!(joined["push"]["join"].is_object(), "{joined}");
    let (new, _) = cluster.start_with(1, presence).await;
    relocate(&old, &new).await;
    let mut lines = vec![
        one.ask(&json!({"id": 9, "presence": {"channel": "a"}}))
            .await,
    ];
    while lines.last().unwrap()["id"] != 9 {
        lines.push(one.next().await);
    }
    let clients = &lines.last().unwrap()["presence"]["presence"];
    assert_eq!(
        clients.as_object().map(serde_json::Map::len),
        Some(2),
        "{lines:?}"
    );
    let moves = lines.iter().filter(|line| !line["push"].is_null());
    // It may have been told that it has joined itself.
    assert!(moves.count() <= 1, "{lines:?}");
    other.0.close(CloseCode::NORMAL, "").await.unwrap();
    let left = one.next().await;
    assert!(left["push"]["leave"].is_object(), "{left}");
}

#[tokio::test]
async fn compression_with_context_takeover_goes_on() {
    let takeover = "[compression]\nenabled = true\n[channel]\ncompression_takeover = true";
    let cluster = Cluster::new();
    let (old, address) = cluster.start_with(1, takeover).await;
    let mut options = linerate::Options::default();
    options.deflate = Some(Deflate::default());
    let client = Client::new().with_options(options);
    let url = format!("ws://{address}/raw?channel=a");
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(client.connect(&url).await.unwrap());
    }
    let text = |n: u32| json!({"n": n, "text": "the same words again and again ".repeat(9)});
    let mut gateway = old;
    for round in 0..3 {
        for n in 0..5 {
            let text = text(round * 5 + n).to_string();
            cluster.publish("a", &text).await;
            for reader in &mut readers {
                assert_eq!(next(reader).await, text);
            }
        }
        let (new, _) = cluster.start_with(1, takeover).await;
        assert_eq!(relocate(&gateway, &new).await, 3);
        gateway = new;
    }
}

/// Opens a raw WebSocket whose socket buffers little.
async fn open_slow(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.connect(&address.into()).unwrap();
    socket.set_nonblocking(true).unwrap();
    let mut stream = TcpStream::from_std(socket.into()).unwrap();
    let request = format!(
        "GET /raw?channel=a HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream
}

#[tokio::test]
async fn what_a_slow_client_has_not_read_yet_comes_with_it() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start(1).await;
    let mut slow = open_slow(address).await;
    let padding = "x".repeat(1_000);
    for number in 0..600 {
        cluster.publish("a", &format!("{number:04}{padding}")).await;
    }
    let (new, _) = cluster.start(1).await;
    assert_eq!(relocate(&old, &new).await, 1);
    drop(old);
    for number in 600..700 {
        cluster.publish("a", &format!("{number:04}{padding}")).await;
    }
    for number in 0..700 {
        let mut frame = [0; 4 + 4 + 1_000];
        let read = slow.read_exact(&mut frame);
        let read = tokio::time::timeout(linerate_testkit::PATIENCE, read).await;
        read.expect("in time").unwrap();
        assert_eq!(frame[..4], [0x81, 126, 3, 0xec], "{number}");
        assert_eq!(frame[4..8], *format!("{number:04}").as_bytes());
    }
}

#[tokio::test]
async fn a_command_that_has_half_arrived_is_completed() {
    let cluster = Cluster::new();
    let (mut gateway, address) = cluster.start(1).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /connection/websocket HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let command = br#"{"id":1,"connect":{}}"#;
    let mut frame = vec![0x81, 0x80 | command.len() as u8, 0, 0, 0, 0];
    frame.extend(command);
    for part in frame.chunks(3) {
        stream.write_all(part).await.unwrap();
        // Whether or not it has been read by now.
        tokio::time::sleep(Duration::from_millis(1)).await;
        let (new, _) = cluster.start(1).await;
        relocate(&gateway, &new).await;
        gateway = new;
    }
    let mut reply = [0; 64];
    let bytes = stream.read(&mut reply).await.unwrap();
    let reply = String::from_utf8_lossy(&reply[4..bytes]).into_owned();
    assert!(
        reply.starts_with(r#"{"id":1,"connect":{"client":"#),
        "{reply}"
    );
}

#[tokio::test]
async fn encrypted_clients_move_with_their_keys() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|it| directory.path().join(it));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = format!("[server.tls]\ncertificate = {certificate:?}\nkey = {key:?}");
    let cluster = Cluster::new();
    let (mut gateway, address) = cluster.start_with(1, &tls).await;
    let trusting = linerate::tls::danger_client_config_trusting_anybody();
    let client = Client::new().with_tls(std::sync::Arc::new(trusting));
    let url = format!("wss://{address}/connection/websocket");
    let mut client = Json(client.connect(&url).await.unwrap());
    client.ask(&json!({"id": 1, "connect": {}})).await;
    let subscribe = json!({"id": 2, "subscribe": {"channel": "demo:a"}});
    client.ask(&subscribe).await;
    for (round, bytes) in [10, 16_400, 60_000].into_iter().enumerate() {
        let data = "x".repeat(bytes);
        let publish = json!({"id": round + 3, "publish": {"channel": "demo:a", "data": data}});
        client.send(&publish).await;
        let lines = [client.next().await, client.next().await];
        let is_own = |line: &Value| line["push"]["pub"]["data"] == data;
        assert!(lines.iter().any(is_own), "round {round}");
        let (new, _) = cluster.start_with(1, &tls).await;
        assert_eq!(relocate(&gateway, &new).await, 1);
        gateway = new;
    }
    client.expect_nothing().await;
    client.0.close(CloseCode::NORMAL, "").await.unwrap();
}

/// Streams stay where they are, and neither hold up the move nor miss anything.
#[tokio::test]
async fn streaming_responses_stay() {
    let cluster = Cluster::new();
    let (old, address) = cluster.start(1).await;
    let mut client = Json::connect(address).await;
    let connect = "cf_connect=%7B%22id%22:1,%22connect%22:%7B%7D%7D";
    let targets = ["/sse?channel=demo:a", &format!("/connection/sse?{connect}")];
    let mut streams = Vec::new();
    for target in targets {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        // A comment, or the reply to `connect`.
        read_until(&mut stream, "\n\n").await;
        streams.push(stream);
    }
    for failing in [true, false] {
        let (new, _) = cluster.start(1).await;
        let moved = match failing {
            true => fail_to_relocate(&old, &new).await,
            false => relocate(&old, &new).await,
        };
        assert_eq!(moved, 1);
        cluster.publish("demo:a", &format!("\"{failing}\"")).await;
        let event = format!("data: \"{failing}\"\n\n");
        read_until(&mut streams[0], &event).await;
        if !failing {
            client.expect_nothing().await;
            assert_eq!(old.info().clients, 2);
        }
    }
}

/// Reads until the text has arrived.
async fn read_until(stream: &mut TcpStream, text: &str) {
    let mut received = Vec::new();
    let arrives = async {
        while !String::from_utf8_lossy(&received).contains(text) {
            let bytes = stream.read_buf(&mut received).await.unwrap();
            assert!(bytes > 0, "the stream ends: {}", received.escape_ascii());
        }
    };
    timeout(PATIENCE, arrives).await.expect("in time");
}
