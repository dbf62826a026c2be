//! Tests a handler without a socket: `cargo run -p linerate --example in_memory`.

use linerate::{Client, CloseCode, Result, WebSocket};

/// The handler to be tested: answers each line in capital letters.
async fn shout(mut ws: WebSocket) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        if let Some(text) = message.as_text() {
            ws.send(text.to_uppercase()).await?;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let (ours, theirs) = tokio::io::duplex(4096);
    let handler = tokio::spawn(async move {
        let (ws, _request) = linerate::accept(theirs).await?;
        shout(ws).await
    });
    let client = Client::new();
    let mut ws = client.connect_over(ours, "ws://localhost/").await?;
    ws.send("spam").await?;
    assert_eq!(ws.recv().await?, Some("SPAM".into()));
    assert!(ws.close(CloseCode::NORMAL, "").await?.clean);
    handler.await.expect("the handler does not panic")
}
