//! Tests of the memory budget: floods of every kind stay within it, other clients are served, and
//! all memory is released afterwards.

mod consumers;

use std::time::{Duration, Instant};

use linerate::{CloseCode, WebSocket};
use linerate_harness::process::{Process, Status};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{sleep, timeout},
};

use crate::support::{PATIENCE, Server, linerate};

const MIB: u64 = 1 << 20;

/// A connection that was opened before memory was short, for monitoring and for the server API.
struct Line(TcpStream);

impl Line {
    async fn open(server: &Server) -> Self {
        Self(TcpStream::connect(server.address).await.unwrap())
    }

    /// Sends a request; returns the status and the body of the response.
    async fn ask(&mut self, method: &str, path: &str, body: &str) -> (u16, String) {
        let bytes = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {bytes}\r\n\r\n"
        );
        self.0.write_all((head + body).as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        loop {
            let mut piece = [0; 16 << 10];
            let read = timeout(PATIENCE, self.0.read(&mut piece)).await;
            let read = read.unwrap().unwrap();
            assert!(read > 0, "connection ended in the middle of an answer");
            answer.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&answer);
            let Some((head, body)) = text.split_once("\r\n\r\n") else {
                continue;
            };
            let head = head.to_ascii_lowercase();
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                let status = head.split(' ').nth(1).unwrap().parse().unwrap();
                return (status, body.to_owned());
            }
        }
    }

    /// Returns whether `/ready` fails because memory is short.
    async fn is_short(&mut self) -> bool {
        let (status, body) = self.ask("GET", "/ready", "").await;
        let readiness: Value = serde_json::from_str(&body).unwrap();
        let reasons = readiness["reasons"].as_array().unwrap();
        let is_short = reasons.iter().any(|reason| reason == "memory");
        assert_eq!(status, if reasons.is_empty() { 200 } else { 503 });
        is_short
    }

    async fn metrics(&mut self) -> String {
        self.ask("GET", "/metrics", "").await.1
    }

    /// Returns how often something was closed to free memory of `consumer`, or of any consumer if
    /// it is empty.
    async fn sheds(&mut self, consumer: &str) -> u64 {
        let text = self.metrics().await;
        let values = text.lines().filter_map(|line| {
            let line = line.strip_prefix("linerate_memory_sheds_total{consumer=\"")?;
            let (name, value) = line.split_once("\"} ")?;
            (consumer.is_empty() || name == consumer).then(|| value.parse::<f64>().unwrap() as u64)
        });
        values.sum()
    }

    /// Returns the bytes in use by one consumer, and by all.
    async fn used(&mut self, consumer: &str) -> (u64, u64) {
        let text = self.metrics().await;
        let values = text.lines().filter_map(|line| {
            let line = line.strip_prefix("linerate_memory_used_bytes{consumer=\"")?;
            let (name, value) = line.split_once("\"} ")?;
            Some((name.to_owned(), value.parse::<f64>().unwrap() as u64))
        });
        let values: Vec<_> = values.collect();
        assert_eq!(values.len(), 11, "{text}");
        let one = values.iter().find(|(name, _)| name == consumer);
        let all = values.iter().map(|(_, bytes)| bytes).sum();
        (one.unwrap().1, all)
    }

    async fn publish(&mut self, channel: &str, data: &str) {
        let is_taken = self.try_publish(channel, data).await;
        assert!(is_taken, "{} bytes were refused", data.len());
    }

    /// Returns whether a publication was accepted. Large ones are refused while memory is critical.
    async fn try_publish(&mut self, channel: &str, data: &str) -> bool {
        let body = json!({"channel": channel, "data": data}).to_string();
        let (status, answer) = self.ask("POST", "/api/publish", &body).await;
        let is_refused = status == 503 && answer.contains("memory");
        assert!(is_refused || !answer.contains("error"), "{status} {answer}");
        !is_refused
    }

    /// Waits until memory is no longer short and new clients are accepted.
    async fn expect_recovery(&mut self, server: &Server, used_max: u64) {
        let since = Instant::now();
        while self.is_short().await || self.used("blocks").await.1 > used_max {
            let used = self.used("blocks").await;
            assert!(since.elapsed() < PATIENCE, "still {used:?} bytes in use");
            sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(server.get("/live").await.status, 200);
    }
}

#[test]
fn huge_pages_of_memory_are_used_only_if_the_configuration_allows_it() {
    let of = |status: Status| status.number("THP_enabled:");
    let before = of(Process::own().status().unwrap());
    for (flags, expected) in [
        (&[][..], Some(0)),
        (&["--set", "server.huge_pages=true"][..], before),
    ] {
        let mut command = linerate(&["serve", "--listen", "127.0.0.1:0"]);
        let server = Server::spawn(command.args(flags));
        assert_eq!(
            of(server.process().status().unwrap()),
            expected,
            "{flags:?}"
        );
    }
}

fn start(memory_bytes_max: u64, settings: &[&str]) -> Server {
    let memory = format!("server.memory_bytes_max={memory_bytes_max}");
    let mut flags = vec!["--set", &memory];
    for setting in settings {
        flags.extend(["--set", setting]);
    }
    Server::start_with(&flags)
}

fn resident_bytes(server: &Server) -> u64 {
    server.process().resident_bytes().unwrap()
}

async fn text(ws: &mut WebSocket) -> String {
    let message = timeout(PATIENCE, ws.recv()).await.unwrap().unwrap();
    message.unwrap().as_text().unwrap().to_owned()
}

/// Returns whether a new connection is refused, and checks that the refusal says when to retry.
async fn is_refused(server: &Server) -> bool {
    let response = server.get("/live").await;
    if response.status == 200 {
        return false;
    }
    assert_eq!(response.status, 503);
    assert!(response.text().contains("memory"), "{}", response.text());
    true
}

/// Reads until a connection is silent or closed; returns the close code.
async fn end_of(mut ws: WebSocket) -> Option<u16> {
    while let Ok(Ok(Some(_))) = timeout(Duration::from_secs(5), ws.recv()).await {}
    let closed = timeout(PATIENCE, ws.close(CloseCode::NORMAL, "")).await;
    closed.ok()?.ok().map(|closed| closed.code)
}

#[tokio::test]
async fn publications_for_slow_readers_end_with_1013_and_the_others_miss_nothing() {
    const BUDGET: u64 = 16 * MIB;
    let server = start(BUDGET, &["channel.history_size=0"]);
    let mut line = Line::open(&server).await;
    let mut calm = server.connect("/raw?channel=demo:calm").await;
    let mut slow = Vec::new();
    for reader in 0..8 {
        let path = format!("/raw?channel=demo:flood{reader}");
        slow.push(server.connect(&path).await);
    }
    let resident = resident_bytes(&server);
    let mut ends = Vec::new();
    let (mut was_short, mut was_refused) = (false, false);
    let (mut used_max, mut resident_max) = (0, 0);
    let payload = "x".repeat(200 << 10);
    let mut rounds_left = 15;
    for round in 0..70 {
        // The server closes the line after a minute, which many more rounds may take.
        rounds_left -= i32::from(was_short && was_refused && !ends.is_empty());
        if rounds_left < 0 {
            break;
        }
        for reader in 0..8 {
            line.try_publish(&format!("demo:flood{reader}"), &payload)
                .await;
        }
        line.publish("demo:calm", &format!("{round}")).await;
        assert_eq!(text(&mut calm).await, format!("\"{round}\""));
        if line.is_short().await {
            was_short = true;
            was_refused |= is_refused(&server).await;
        }
        if line.sheds("").await > 0 {
            // They start to read again, and so learn why they are closed.
            ends.extend(slow.drain(..).map(|ws| tokio::spawn(end_of(ws))));
        }
        used_max = used_max.max(line.used("publications").await.1);
        resident_max = resident_max.max(resident_bytes(&server));
    }
    assert!(was_short && was_refused, "{used_max} bytes were in use");
    // The data of one round may arrive before the first clients are closed.
    assert!(used_max <= BUDGET + 4 * MIB, "{used_max} bytes in use");
    let grown = resident_max.saturating_sub(resident);
    assert!(
        grown <= 2 * BUDGET + 16 * MIB,
        "{grown} bytes more are resident"
    );
    // The slow readers that were not closed now read everything and stay connected.
    let mut codes = Vec::new();
    for end in ends {
        codes.push(end.await.unwrap());
    }
    assert!(codes.contains(&Some(1013)), "{codes:?}");
    assert!(line.sheds("publications").await > 0);
    line.expect_recovery(&server, 3 * MIB).await;
}
