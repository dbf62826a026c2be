//! WebSockets and pages of an axum application that share its state, with a graceful shutdown:
//! `cargo run -p linerate --example axum_state --features axum -- 127.0.0.1:9001`, then
//! `linerate connect ws://127.0.0.1:9001/count` and `curl http://127.0.0.1:9001/`.

use std::sync::{Arc, atomic::AtomicU64, atomic::Ordering};
use std::time::Duration;

use axum::routing::{any, get};
use axum::{Extension, Router, extract::State, response::Response};
use linerate::axum::{Connections, WebSocketUpgrade};
use tokio::{net::TcpListener, signal::ctrl_c};

type Messages = Arc<AtomicU64>;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let connections = Connections::new();
    let app = Router::new()
        .route("/", get(page))
        .route("/count", any(count))
        .layer(Extension(connections.clone()))
        .with_state(Messages::default());
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/", listener.local_addr()?);
    axum::serve(listener, app)
        .with_graceful_shutdown(async { _ = ctrl_c().await })
        .await?;
    // axum does not wait for WebSockets: this closes them with code 1001.
    connections.close_all(Duration::from_secs(5)).await;
    Ok(())
}

async fn page(State(messages): State<Messages>) -> String {
    format!("{} messages\n", messages.load(Ordering::Relaxed))
}

/// Answers each message with how many there have been on all connections.
async fn count(State(messages): State<Messages>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |mut ws| async move {
        while ws.recv().await?.is_some() {
            let count = messages.fetch_add(1, Ordering::Relaxed) + 1;
            ws.send(count.to_string()).await?;
        }
        Ok(())
    })
}
