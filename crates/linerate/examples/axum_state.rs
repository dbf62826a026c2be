//! WebSockets and pages of an axum application that share its state:
//! `cargo run -p linerate --example axum_state --features axum`, then
//! `linerate connect ws://127.0.0.1:9001/count` and `curl http://127.0.0.1:9001/`.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    extract::State,
    response::Response,
    routing::{any, get},
};
use linerate::axum::WebSocketUpgrade;
use tokio::net::TcpListener;

/// What all requests share.
#[derive(Clone, Default)]
struct App {
    messages: Arc<AtomicU64>,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let app = Router::new()
        .route("/", get(page))
        .route("/count", any(count))
        .with_state(App::default());
    let listener = TcpListener::bind("127.0.0.1:9001").await?;
    axum::serve(listener, app).await
}

async fn page(State(app): State<App>) -> String {
    format!("{} messages\n", app.messages.load(Ordering::Relaxed))
}

/// Answers each message with how many there have been on all connections.
async fn count(State(app): State<App>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |mut ws| async move {
        while ws.recv().await?.is_some() {
            let messages = app.messages.fetch_add(1, Ordering::Relaxed) + 1;
            ws.send(messages.to_string()).await?;
        }
        Ok(())
    })
}
