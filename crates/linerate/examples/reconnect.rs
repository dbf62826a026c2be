//! A client that reconnects until it is stopped or the server refuses it for good:
//! `cargo run -p linerate --example reconnect -- ws://127.0.0.1:9001/`.

use linerate::{Backoff, Client, Result};

#[tokio::main]
async fn main() -> Result<()> {
    let url = std::env::args().nth(1);
    let url = url.unwrap_or_else(|| "ws://127.0.0.1:9001/".into());
    let client = Client::new();
    let mut backoff = Backoff::new();
    loop {
        match converse(&client, &url, &mut backoff).await {
            Ok(()) => eprintln!("the server has closed the connection"),
            Err(error) if !error.is_transient() => return Err(error),
            Err(error) => eprintln!("{error}"),
        }
        // A random time, at most one second after the first failure and one minute after many.
        backoff.wait().await?;
    }
}

/// Connects, and prints messages until the connection ends.
async fn converse(client: &Client, url: &str, backoff: &mut Backoff) -> Result<()> {
    let mut ws = client.connect(url).await?;
    backoff.connected();
    // The server has forgotten the previous connection: tell it again what this client wants.
    ws.send("subscribe").await?;
    while let Some(message) = ws.recv().await? {
        println!("{message:?}");
    }
    Ok(())
}
