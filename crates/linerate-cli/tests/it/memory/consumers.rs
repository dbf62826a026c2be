//! One test for each consumer in the table of `docs/gateway/memory.md`: driven to its limit, it
//! stays within it; clients that use too much are told so; another client is served all the time;
//! and all memory is released.
//!
//! The test of `publications` is in `memory.rs`, that of `histories` in `linerate-gateway`, and
//! that of `uploads` in `upload.rs`.

use std::time::{Duration, Instant};

use linerate::{Client, CloseCode, Deflate, MessageKind, WebSocket};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Line, MIB, start, text};
use crate::support::{PATIENCE, Server};

/// Disables deadlines, so that only shedding closes what these floods leave open.
const NO_DEADLINES: [&str; 2] = [
    "client.connect_timeout_s=600",
    "client.message_timeout_s=600",
];

/// A server under a flood, and a client that does not take part in it.
struct Scene {
    server: Server,
    line: Line,
    calm: WebSocket,
    round: u32,
    bytes_max: u64,
}

impl Scene {
    async fn start(bytes_max: u64, settings: &[&str]) -> Self {
        let server = start(bytes_max, &[settings, &NO_DEADLINES].concat());
        let line = Line::open(&server).await;
        let calm = server.connect("/raw?channel=demo:calm").await;
        Self {
            server,
            line,
            calm,
            round: 0,
            bytes_max,
        }
    }

    /// Checks that the other client receives its publications and that the server stays within its
    /// budget.
    async fn look(&mut self) {
        self.round += 1;
        let data = self.round.to_string();
        self.line.publish("demo:calm", &data).await;
        assert_eq!(text(&mut self.calm).await, format!("\"{data}\""));
    }

    /// Keeps checking until a condition is met.
    async fn until(&mut self, what: &str, mut is_so: impl AsyncFnMut(&mut Line) -> bool) {
        let since = Instant::now();
        while !is_so(&mut self.line).await {
            self.look().await;
            if since.elapsed() > PATIENCE {
                let metrics = self.line.metrics().await;
                let memory = metrics
                    .lines()
                    .filter(|line| line.starts_with("linerate_memory"));
                panic!("not {what}: {:#?}", memory.collect::<Vec<_>>());
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until part of the flood has been shed and new clients are accepted again.
    async fn relieved(&mut self, consumer: &str) {
        self.until("shed", async |line| line.sheds(consumer).await > 0)
            .await;
        self.until("relieved", async |line| !line.is_short().await)
            .await;
        assert_eq!(self.server.get("/live").await.status, 200);
    }

    /// Waits until the server has closed one client of a flood, ends the others, and returns what
    /// that one was told.
    async fn first_told<T: 'static>(&mut self, mut flood: JoinSet<T>) -> T {
        let since = Instant::now();
        loop {
            self.look().await;
            let first = timeout(Duration::from_millis(100), flood.join_next()).await;
            if let Ok(first) = first {
                flood.shutdown().await;
                return first.unwrap().unwrap();
            }
            assert!(since.elapsed() < PATIENCE, "no client was closed");
        }
    }

    /// Waits until the flood no longer uses any memory, except for slabs that workers keep.
    async fn returned(&mut self, consumer: &str) {
        let slabs = self.bytes_max / 8;
        self.until("returned", async |line| {
            line.used(consumer).await.0 <= slabs
        })
        .await;
        self.line
            .expect_recovery(&self.server, self.bytes_max / 2)
            .await;
    }
}

/// Connects a Centrifuge client that uses JSON.
async fn connect(server: &Server) -> WebSocket {
    let mut ws = server.connect("/connection/websocket").await;
    ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
    assert!(text(&mut ws).await.contains("\"client\""));
    ws
}

/// Starts a message without ever finishing it, and reads until the server has closed the
/// connection. Returns the close code.
async fn begin_message(mut ws: WebSocket, bytes: Vec<u8>) -> Option<u16> {
    let mut writer = ws.writer(MessageKind::Text);
    // A server that is already short of memory may have closed the connection.
    _ = writer.write(&bytes).await;
    // Dropping its writer would close the connection.
    std::mem::forget(writer);
    let (sender, mut receiver) = ws.split();
    while let Ok(Some(_)) = receiver.recv().await {}
    let closed = sender.close(CloseCode::NORMAL, "").await;
    closed.ok().map(|closed| closed.code)
}

/// Reads until the server has closed the connection; returns the close code.
async fn code_of(mut ws: WebSocket) -> Option<u16> {
    while let Ok(Some(_)) = ws.recv().await {}
    let closed = ws.close(CloseCode::NORMAL, "").await;
    closed.ok().map(|closed| closed.code)
}

#[tokio::test]
async fn backlogs_of_clients_that_do_not_read_end_with_3011() {
    const BUDGET: u64 = 16 * MIB;
    let settings = [
        "client.queue_bytes_max=4194304",
        "client.reply_bytes_max=2000000",
    ];
    let mut scene = Scene::start(BUDGET, &settings).await;
    let data = "x".repeat(100 << 10);
    for _ in 0..9 {
        scene.line.publish("demo:long", &data).await;
    }
    let mut flood = Vec::new();
    for _ in 0..12 {
        let Ok(mut ws) = linerate::connect(&scene.server.url("/connection/websocket")).await else {
            break;
        };
        _ = ws.send(r#"{"id":1,"connect":{}}"#).await;
        let subscribe = json!({"id": 2, "subscribe": {"channel": "demo:long"}});
        _ = ws.send(subscribe.to_string()).await;
        for id in 3..40 {
            let history = json!({"id": id, "history": {"channel": "demo:long", "limit": 9}});
            _ = ws.send(history.to_string()).await;
        }
        scene.look().await;
        flood.push(ws);
    }
    scene
        .until("shed", async |line| line.sheds("backlogs").await > 0)
        .await;
    let (_, all) = scene.line.used("backlogs").await;
    assert!(all <= BUDGET * 3 / 2, "{all} bytes in use");
    let mut readers = JoinSet::new();
    for ws in flood {
        readers.spawn(code_of(ws));
    }
    assert_eq!(scene.first_told(readers).await, Some(3011));
    scene.returned("backlogs").await;
}

#[tokio::test]
async fn blocks_stay_within_what_a_channel_keeps_of_them() {
    let mut scene = Scene::start(64 * MIB, &["channel.history_size=0"]).await;
    let mut slow = Vec::new();
    for _ in 0..4 {
        slow.push(scene.server.connect("/raw?channel=demo:blocks").await);
    }
    let data = "x".repeat(60 << 10);
    for _ in 0..200 {
        scene.line.publish("demo:blocks", &data).await;
        let (blocks, _) = scene.line.used("blocks").await;
        // One kind of subscription's blocks, the data that waits for a socket, and two slabs.
        assert!(blocks <= 2 * MIB, "{blocks} bytes of blocks");
    }
    scene.look().await;
    drop(slow);
    scene.returned("blocks").await;
}

#[tokio::test]
async fn bodies_that_never_end_are_answered_503_and_keep_nobody_out() {
    const BUDGET: u64 = 8 * MIB;
    let mut scene = Scene::start(BUDGET, &[]).await;
    let mut flood = JoinSet::new();
    for _ in 0..12 {
        let mut stream = TcpStream::connect(scene.server.address).await.unwrap();
        flood.spawn(async move {
            let head =
                "POST /api/publish HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n";
            _ = stream.write_all(head.as_bytes()).await;
            _ = stream.write_all(&vec![b' '; 900_000]).await;
            let mut answer = Vec::new();
            // A reset may follow the response, because the server does not read the rest of the
            // body.
            _ = stream.read_to_end(&mut answer).await;
            String::from_utf8(answer).unwrap()
        });
        let (_, all) = scene.line.used("bodies").await;
        assert!(all <= BUDGET, "{all} bytes in use");
    }
    scene
        .until("ended", async |line| {
            let metrics = line.metrics().await;
            assert!(line.used("bodies").await.1 <= BUDGET);
            !metrics.contains("linerate_memory_refusals_total{consumer=\"bodies\"} 0")
                || line.sheds("bodies").await > 0
        })
        .await;
    scene
        .until("relieved", async |line| !line.is_short().await)
        .await;
    assert_eq!(scene.server.get("/live").await.status, 200);
    let answer = scene.first_told(flood).await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    let answer = answer.to_ascii_lowercase();
    assert!(answer.contains("retry-after: "), "{answer}");
    scene.returned("bodies").await;
}

#[tokio::test]
async fn connections_that_never_ask_are_closed_before_others_are_kept_out() {
    const BUDGET: u64 = 4 * MIB;
    let mut scene = Scene::start(BUDGET, &["server.connections_max=5000"]).await;
    let mut flood = Vec::new();
    for _ in 0..600 {
        flood.push(TcpStream::connect(scene.server.address).await.unwrap());
    }
    scene
        .until("short", async |line| line.is_short().await)
        .await;
    let (used, all) = scene.line.used("connections").await;
    assert!(used > 3 * MIB && all < BUDGET, "{used} of {all}");
    scene.relieved("connections").await;
    drop(flood);
    scene.returned("connections").await;
}

#[tokio::test]
async fn inflaters_stay_within_a_quarter_of_the_budget_and_those_beyond_it_are_told_1013() {
    const BUDGET: u64 = 16 * MIB;
    let settings = ["compression.enabled=true", "compression.takeover=true"];
    let mut scene = Scene::start(BUDGET, &settings).await;
    let mut options = linerate::Options::default();
    let mut deflate = Deflate::default();
    deflate.message_bytes_min = 1;
    options.deflate = Some(deflate);
    let client = Client::new().with_options(options);
    let url = scene.server.url("/connection/websocket");
    let mut flood = JoinSet::new();
    for _ in 0..120 {
        let ws = client.connect(&url).await.unwrap();
        flood.spawn(begin_message(ws, vec![b' '; 2_000]));
    }
    scene.look().await;
    scene
        .until("counted", async |line| {
            let (used, _) = line.used("inflaters").await;
            assert!(used <= BUDGET / 4 + BUDGET / 32, "{used} bytes of windows");
            used > BUDGET / 5
        })
        .await;
    assert_eq!(scene.first_told(flood).await, Some(1013));
    scene.returned("inflaters").await;
}

#[tokio::test]
async fn messages_that_never_end_are_closed_with_3011_and_keep_nobody_out() {
    const BUDGET: u64 = 16 * MIB;
    let settings = ["client.message_bytes_max=4194304"];
    let mut scene = Scene::start(BUDGET, &settings).await;
    let url = scene.server.url("/connection/websocket");
    let mut flood = JoinSet::new();
    for number in 0..9 {
        let Ok(mut ws) = linerate::connect(&url).await else {
            break;
        };
        // Use both authenticated and unauthenticated clients.
        if number % 2 == 0 {
            ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
        }
        flood.spawn(begin_message(ws, vec![b' '; 2_000_000]));
        let (_, all) = scene.line.used("messages").await;
        assert!(all <= BUDGET + 4 * MIB, "{all} bytes in use");
    }
    scene.relieved("messages").await;
    assert_eq!(scene.first_told(flood).await, Some(3011));
    scene.returned("messages").await;
}

#[tokio::test]
async fn subscriptions_beyond_the_budget_end_with_3011() {
    const BUDGET: u64 = 4 * MIB;
    let settings = [
        "client.channels_max=1000",
        "client.commands_per_second_max=1000000",
        // These clients answer no pings.
        "client.ping_interval_s=300",
    ];
    let mut scene = Scene::start(BUDGET, &settings).await;
    let mut flood = Vec::new();
    // All clients connect before memory is short.
    for _ in 0..8 {
        flood.push(connect(&scene.server).await);
    }
    let mut ends = JoinSet::new();
    for mut ws in flood {
        ends.spawn(async move {
            for id in 2..1_000 {
                let name = format!("demo:{id}-{}", "x".repeat(200));
                let command = json!({"id": id, "subscribe": {"channel": name}});
                if ws.send(command.to_string()).await.is_err() {
                    break;
                }
                let reply = timeout(PATIENCE, ws.recv()).await.unwrap();
                if !matches!(reply, Ok(Some(_))) {
                    break;
                }
            }
            code_of(ws).await
        });
    }
    scene
        .until("shed", async |line| {
            let (_, all) = line.used("subscriptions").await;
            assert!(all <= BUDGET + MIB, "{all} bytes in use");
            line.sheds("subscriptions").await > 0
        })
        .await;
    assert_eq!(scene.first_told(ends).await, Some(3011));
    scene.returned("subscriptions").await;
}
