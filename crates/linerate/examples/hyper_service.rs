//! WebSockets on a hyper server: `cargo run --example hyper_service --features axum --
//! 127.0.0.1:9000`.

use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use linerate::{Request, Result, WebSocket, axum::WebSocketService};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.unwrap_or_else(|| "127.0.0.1:9000".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    let service = WebSocketService::new(echo);
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            if let Err(error) = connection.with_upgrades().await {
                eprintln!("{error}");
            }
        });
    }
}

async fn echo(mut ws: WebSocket, _request: Request) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}
