//! Uploads a log to `linerate serve` and prints the throughput.
//!
//! The client costs next to nothing, so the result is the speed of the server.
//!
//! ```text
//! cargo run --release -p linerate-cli --example upload_log -- http://127.0.0.1:8080 access.log 126
//! ```

use std::{env, fs, sync::Arc, time::Instant};

use anyhow::{Context, bail, ensure};
use linerate::{Client, CloseCode, Receiver, Sender};
use serde_json::{Value, json};
use tokio::sync::watch;

/// Length of each message.
const MESSAGE_BYTES: usize = 1 << 20;

/// The server's flow control: the client may send up to `acknowledged + bytes` bytes in total.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    acknowledged: u64,
    bytes: u64,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = env::args().skip(1);
    let usage = "usage: upload_log URL FILE [TIMES]";
    let (url, path) = arguments.next().zip(arguments.next()).context(usage)?;
    let times: u64 = arguments.next().map_or(Ok(1), |times| times.parse())?;
    let log = fs::read(&path).context(path)?;
    let url = format!("{}/logs/upload", url.replacen("http", "ws", 1));
    let client = Client::new().with_subprotocol("linerate.logs.v1");
    let (sender, receiver) = client.connect(&url).await?.split();
    let size = log.len() as u64 * times;
    let files = [json!({"name": "access.log", "size": size})];
    let start = json!({"type": "start", "files": files});
    let started = Instant::now();
    sender.send(start.to_string()).await?;

    let (window, windows) = watch::channel(Window::default());
    let sender = Arc::new(sender);
    let sending = tokio::spawn(send(sender.clone(), log, times, windows));
    let summary = hear(receiver, window).await?;
    let seconds = started.elapsed().as_secs_f64();
    sending.await??;
    ensure!(
        summary["bytes_read"] == size,
        "server did not report {size} bytes read"
    );
    sender.close(CloseCode::NORMAL, "").await?;
    println!(
        "{:.0} MB/s: {size} bytes, {} requests in {seconds:.2} s",
        size as f64 / seconds / 1e6,
        summary["requests"]
    );
    Ok(())
}

/// Sends the log `times` times, waiting whenever the window is full.
async fn send(
    sender: Arc<Sender>,
    log: Vec<u8>,
    times: u64,
    mut windows: watch::Receiver<Window>,
) -> anyhow::Result<()> {
    let mut sent = 0;
    for _ in 0..times {
        for message in log.chunks(MESSAGE_BYTES) {
            sent += message.len() as u64;
            let is_allowed = |window: &Window| sent <= window.acknowledged + window.bytes;
            windows.wait_for(is_allowed).await?;
            sender.send(message).await?;
        }
    }
    sender.send(r#"{"type":"finish"}"#).await?;
    Ok(())
}

/// Processes the server's messages until the final summary, and returns that summary.
async fn hear(mut receiver: Receiver, window: watch::Sender<Window>) -> anyhow::Result<Value> {
    while let Some(message) = receiver.recv().await? {
        let mut message: Value =
            serde_json::from_str(message.as_text().context("server sent a binary message")?)?;
        let bytes = message["bytes"].as_u64().unwrap_or_default();
        match message["type"].as_str() {
            Some("ready") => {
                let window_bytes = message["window_bytes"].as_u64().unwrap_or_default();
                window.send_modify(|window| window.bytes = window_bytes);
            }
            Some("ack") => window.send_modify(|window| window.acknowledged = bytes),
            Some("snapshot") if message["final"] == true => return Ok(message["summary"].take()),
            Some("error") => bail!("server refused the upload: {}", message["message"]),
            _ => {}
        }
    }
    bail!("connection ended before the final summary")
}
