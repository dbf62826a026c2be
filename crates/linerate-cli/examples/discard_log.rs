//! The baseline for `npm run measure`: receives uploads like `linerate serve` but parses nothing.
//!
//! It serves the pages in a folder, receives with the same library, acknowledges as often, and ends
//! each upload with the summary of an empty log.
//!
//! ```text
//! cargo run --release -p linerate-cli --example discard_log -- web/dist
//! ```

use std::{env, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Context;
use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use linerate::{MessageKind, Options, Reader, Receiver, Result, Sender, axum::WebSocketUpgrade};
use linerate_logview::{
    aggregate::{Aggregator, Limits},
    session::{self, SUBPROTOCOL, Uploads, files_message},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Number of bytes received within a message between two acknowledgements.
const ACK_BYTES: u64 = 1 << 20;

type Folder = State<Arc<PathBuf>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let folder = env::args().nth(1).context("usage: discard_log FOLDER")?;
    let routes = Router::new()
        .route("/logs", get(page))
        .route("/assets/{name}", get(asset))
        .route("/logs/upload", get(upload))
        .with_state(Arc::new(PathBuf::from(folder)));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("discard_log: http://{}", listener.local_addr()?);
    axum::serve(listener, routes).await?;
    Ok(())
}

async fn page(folder: Folder) -> Response {
    file(folder, "logs.html").await
}

async fn asset(folder: Folder, Path(name): Path<String>) -> Response {
    file(folder, &format!("assets/{name}")).await
}

async fn file(State(folder): Folder, name: &str) -> Response {
    let content_type = match name.rsplit_once('.') {
        Some((_, "css")) => "text/css",
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "js")) => "text/javascript",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    };
    match tokio::fs::read(folder.join(name)).await {
        Ok(bytes) => ([(header::CONTENT_TYPE, content_type)], bytes).into_response(),
        Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
    }
}

async fn upload(upgrade: WebSocketUpgrade) -> Response {
    let mut options = Options::default().without_compression();
    options.config.limits.message_bytes_max = session::Limits::default().window_bytes;
    let upgrade = upgrade
        .with_options(options)
        .with_subprotocols(&[SUBPROTOCOL]);
    upgrade.on_upgrade(|ws| async move {
        let (sender, receiver) = ws.split();
        discard(sender, receiver).await
    })
}

async fn discard(sender: Sender, mut receiver: Receiver) -> Result<()> {
    sender
        .send(files_message(&[], Uploads::Allowed, Duration::ZERO))
        .await?;
    let (mut received, mut acknowledged) = (0, 0);
    while let Some(mut reader) = receiver.reader().await? {
        if reader.kind() == MessageKind::Text {
            let text = text_of(reader).await?;
            let Some(reply) = reply(&text) else {
                return Ok(());
            };
            sender.send(reply.to_string()).await?;
            continue;
        }
        while let Some(piece) = reader.chunk().await? {
            received += piece.as_bytes().len() as u64;
            if received - acknowledged >= ACK_BYTES {
                acknowledged = received;
                sender.send(ack(received)).await?;
            }
        }
        acknowledged = received;
        sender.send(ack(received)).await?;
    }
    Ok(())
}

async fn text_of(mut reader: Reader<'_>) -> Result<String> {
    let mut text = String::new();
    while let Some(piece) = reader.chunk().await? {
        text.push_str(piece.as_text().unwrap_or_default());
    }
    Ok(text)
}

fn ack(bytes: u64) -> String {
    json!({"type": "ack", "bytes": bytes}).to_string()
}

/// Returns the reply to a text message, or `None` if the connection should end.
fn reply(text: &str) -> Option<Value> {
    let said: Value = serde_json::from_str(text).ok()?;
    let seq = &said["seq"];
    match said["type"].as_str()? {
        "start" => {
            let window_bytes = session::Limits::default().window_bytes;
            Some(json!({"type": "ready", "id": "", "window_bytes": window_bytes, "bytes": 0}))
        }
        "finish" => {
            let summary = Aggregator::new(Limits::default()).summary();
            Some(json!({"type": "snapshot", "final": true, "summary": summary}))
        }
        "query" | "rows" => {
            let message = "this server stores no columns";
            Some(json!({"type": "refused", "seq": seq, "code": "columns_full", "message": message}))
        }
        _ => None,
    }
}
