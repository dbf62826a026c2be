//! Requests to the JetStream API of a NATS server.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

/// How long to wait for a response.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Sends a request and returns the response, or `None` if there is none.
pub(crate) async fn request(port: u16, subject: &str, payload: &str) -> Option<Value> {
    timeout(ANSWER_MAX, ask(port, subject, payload))
        .await
        .ok()?
}

async fn ask(port: u16, subject: &str, payload: &str) -> Option<Value> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await.ok()?;
    let mut stream = BufReader::new(stream);
    let length = payload.len();
    let commands = format!(
        "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {length}\r\n{payload}\r\n"
    );
    stream.write_all(commands.as_bytes()).await.ok()?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.starts_with("MSG ") {
            let length = line.trim_end().rsplit(' ').next()?.parse().ok()?;
            let mut answer = vec![0; length];
            stream.read_exact(&mut answer).await.ok()?;
            return serde_json::from_slice(&answer).ok();
        }
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n").await.ok()?;
        }
    }
}
