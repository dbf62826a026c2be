//! Commands of an application that affect connections on any worker or node.

use std::time::Duration;

use linerate::WebSocket;
use linerate_testkit::server::RedisServer;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::support::{PATIENCE, Server, close_code, until};

/// Connects as an SDK does; returns the connection and its client ID.
async fn connect(server: &Server) -> (WebSocket, String) {
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    let client = next(&mut ws).await["connect"]["client"]
        .as_str()
        .unwrap()
        .to_owned();
    (ws, client)
}

async fn next(ws: &mut WebSocket) -> Value {
    let message = timeout(PATIENCE, ws.recv())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    serde_json::from_str(message.as_text().unwrap()).unwrap()
}

/// Waits until the clients in `demo:room` are as expected. A client's node stores at the broker who
/// is there, while it tells the client that it has subscribed.
async fn until_presence(asked: &Server, is_expected: impl Fn(&Value) -> bool) {
    let stored = async {
        loop {
            let answer = asked.api("presence", json!({"channel": "demo:room"})).await;
            if is_expected(&answer["presence"]) {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, stored).await.unwrap();
}

async fn steer(asked: &Server, ws: &mut WebSocket, client: &str) {
    let in_room = |extra: Value| {
        let mut body = json!({"client": client, "channel": "demo:room"});
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        body
    };
    asked
        .api("subscribe", in_room(json!({"info": {"role": "guest"}})))
        .await;
    let push = next(ws).await["push"].take();
    assert_eq!(push["channel"], "demo:room");
    assert!(push["subscribe"].is_object(), "{push}");

    let guest = json!({"role": "guest"});
    until_presence(asked, |present| present[client]["chan_info"] == guest).await;
    asked
        .api("publish", json!({"channel": "demo:room", "data": {"n": 1}}))
        .await;
    assert_eq!(next(ws).await["push"]["pub"]["data"], json!({"n": 1}));

    asked.api("unsubscribe", in_room(json!({}))).await;
    assert_eq!(next(ws).await["push"]["unsubscribe"]["code"], 2000);
    until_presence(asked, |present| *present == json!({})).await;

    let why = json!({"client": client, "disconnect": {"code": 4321, "reason": "enough"}});
    asked.api("disconnect", why).await;
    assert!(
        timeout(PATIENCE, ws.recv())
            .await
            .unwrap()
            .unwrap()
            .is_none()
    );
    assert_eq!(close_code(ws).await, 4321);
}

#[tokio::test]
async fn an_application_steers_connections_on_all_workers() {
    let server = Server::start();
    for _ in 0..4 {
        let (mut ws, client) = connect(&server).await;
        steer(&server, &mut ws, &client).await;
    }
}

/// Waits until two nodes know each other and receive from the broker; before that, they lose
/// messages to each other.
async fn meet(nodes: [&Server; 2]) {
    for node in nodes {
        until(node, "/ready", |text| text.starts_with("200")).await;
        let met = async {
            while node.api("info", json!({})).await["nodes"]
                .as_array()
                .unwrap()
                .len()
                < 2
            {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, met).await.unwrap();
    }
}

#[tokio::test]
async fn an_application_steers_connections_on_other_nodes() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let [asked, serving] = [0, 1].map(|_| Server::start_with(&["--broker", &redis.url()]));
    meet([&asked, &serving]).await;
    let (mut ws, client) = connect(&serving).await;
    steer(&asked, &mut ws, &client).await;
}

/// Sticky sessions are not needed, because a command names its node and its session.
#[tokio::test]
async fn commands_by_http_find_their_stream_on_another_node() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let [first, second] = [0, 1].map(|_| Server::start_with(&["--broker", &redis.url()]));
    meet([&first, &second]).await;
    let body = r#"{"id":1,"connect":{}}"#;
    let (mut stream, hello) = open_stream(&first, body).await;
    let (session, node) = (&hello["connect"]["session"], &hello["connect"]["node"]);
    let command = json!({"id": 2, "subscribe": {"channel": "demo:room"}}).to_string();
    let emulated = json!({"session": session, "node": node, "data": command}).to_string();
    assert_eq!(second.post("/emulation", &emulated).await.status / 100, 2);
    let reply = stream.next().await;
    assert_eq!(reply["id"], 2, "{reply}");
    assert!(reply["subscribe"].is_object(), "{reply}");
}

/// The lines of a streaming response.
struct Stream(tokio::io::BufReader<tokio::net::TcpStream>);

impl Stream {
    /// Waits for the next line that is a JSON object with content; skips chunk sizes and pings.
    async fn next(&mut self) -> Value {
        use tokio::io::AsyncBufReadExt;
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, self.0.read_line(&mut line)).await;
            assert!(read.unwrap().unwrap() > 0, "the stream continues");
            match serde_json::from_str::<Value>(line.trim()) {
                Ok(Value::Object(object)) if !object.is_empty() => return object.into(),
                _ => {}
            }
        }
    }
}

async fn open_stream(server: &Server, body: &str) -> (Stream, Value) {
    use tokio::io::AsyncWriteExt;
    let mut socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let head = format!(
        "POST /connection/http_stream HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n\r\n{body}",
        server.address,
        body.len()
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut stream = Stream(tokio::io::BufReader::new(socket));
    let hello = stream.next().await;
    (stream, hello)
}
