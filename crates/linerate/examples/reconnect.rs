//! A client that reconnects until the server closes the connection for good:
//! `cargo run -p linerate --example reconnect -- ws://127.0.0.1:9001/`.

use std::ops::ControlFlow;

use linerate::{Backoff, Client, CloseCode, Closed, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or_else(|| "ws://127.0.0.1:9001/".into());
    let client = Client::new();
    let mut backoff = Backoff::new();
    loop {
        let end = converse(&client, &url, &mut backoff).await;
        eprintln!(
            "{}",
            end.as_ref()
                .map_or_else(ToString::to_string, ToString::to_string)
        );
        // Waits a random time: at most one second after the first failure, one minute after many.
        if let ControlFlow::Break(_) = backoff.wait_after(end).await? {
            return Ok(());
        }
    }
}

/// Connects, prints messages until the connection ends, and returns how it ended.
async fn converse(client: &Client, url: &str, backoff: &mut Backoff) -> Result<Closed> {
    let mut ws = client.connect(url).await?;
    backoff.connected();
    // The server has forgotten the previous connection: tell it again what this client wants. If
    // that fails, `recv` returns why.
    _ = ws.send("subscribe").await;
    while let Some(message) = ws.recv().await? {
        println!("{message:?}");
    }
    ws.close(CloseCode::NORMAL, "").await
}
