//! A page and a WebSocket echo with axum, over HTTP/1.1 and HTTP/2 on one port.
//!
//! ```text
//! cargo run -p linerate --example axum_http2 --features axum -- 127.0.0.1:9001
//! curl --http2-prior-knowledge http://127.0.0.1:9001/
//! ```

use std::{io, time::Duration};

use axum::{Router, response::Response, routing::any};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use linerate::Http2Limits;
use linerate::axum::{WebSocketUpgrade, serve_http2, speaks_http2};
use tokio::net::{TcpListener, TcpStream};

/// How long a client may take before the server can detect its HTTP version.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

async fn echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(|mut ws| async move {
        while let Some(message) = ws.recv().await? {
            ws.send(message).await?;
        }
        Ok(())
    })
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let app = Router::new()
        .route("/", any(|| async { "a page\n" }))
        .route("/echo", any(echo));
    let address = std::env::args().nth(1).unwrap_or("127.0.0.1:9001".into());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}/", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(serve(stream, app.clone()));
    }
}

/// Serves a client until it disconnects. An error, which is the client's, ends only its connection.
async fn serve(stream: TcpStream, app: Router) -> io::Result<()> {
    if tokio::time::timeout(HANDSHAKE_TIMEOUT, speaks_http2(&stream)).await?? {
        let never = std::future::pending();
        let limits = Http2Limits::default();
        return serve_http2(stream, app, &limits, HANDSHAKE_TIMEOUT, never).await;
    }
    hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .with_upgrades()
        .await
        .map_err(io::Error::other)
}
