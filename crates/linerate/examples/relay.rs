//! A reverse proxy for WebSockets: `cargo run -p linerate --example relay -- 127.0.0.1:9000
//! ws://127.0.0.1:9001`.

use linerate::{Client, Options, Request, Result, Server, WebSocket, relay::Relay};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(upstream)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: relay ADDRESS URL");
        std::process::exit(2);
    };
    let listener = tokio::net::TcpListener::bind(address).await?;
    println!("ws://{}/", listener.local_addr()?);
    let handler = move |ws, request| pass_on(ws, request, upstream.clone());
    let stop = async { _ = tokio::signal::ctrl_c().await };
    Server::new()
        .with_options(Options::default().without_compression())
        .serve(listener, handler, stop)
        .await
}

/// Forwards a client to the same path on the upstream server.
async fn pass_on(ws: WebSocket, request: Request, upstream: String) -> Result<()> {
    let url = format!("{upstream}{}", request.target());
    let options = Options::default().without_compression();
    let upstream = Client::new().with_options(options).connect(&url).await?;
    let (client, upstream) = match (ws.into_parts(), upstream.into_parts()) {
        (Ok(client), Ok(upstream)) => (client, upstream),
        (Err((_, error)), _) | (_, Err((_, error))) => {
            eprintln!("{url}: {error}");
            return Ok(());
        }
    };
    match Relay::new().run(client, upstream).await {
        Ok(relayed) => println!("{url}: {relayed:?}"),
        Err(error) => eprintln!("{url}: {error}"),
    }
    Ok(())
}
