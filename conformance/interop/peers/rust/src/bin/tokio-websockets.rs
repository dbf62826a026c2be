//! Echoes messages with tokio-websockets, as a server or as a client.

use futures_util::{SinkExt, StreamExt};
use interop_peers::{Arguments, Result};
use tokio::net::TcpStream;
use tokio_websockets::{ClientBuilder, Config, Message, ServerBuilder, WebSocketStream};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let arguments = Arguments::read()?;
    // The library itself splits longer messages.
    let config = match arguments.fragment()? {
        Some(length) => Config::default().frame_size(length),
        None => Config::default(),
    };
    let serve = |stream| async move {
        let server = ServerBuilder::new().config(config);
        let (_request, ws) = server.accept(stream).await?;
        echo(ws).await
    };
    let connect = |stream, url: String| async move {
        let client = ClientBuilder::from_uri(url.parse::<http::Uri>()?).config(config);
        let (ws, _response) = client.connect_on(stream).await?;
        echo(ws).await
    };
    arguments.run(serve, connect).await
}

async fn echo(mut ws: WebSocketStream<TcpStream>) -> Result {
    while let Some(message) = ws.next().await {
        let message = message?;
        if !message.is_text() && !message.is_binary() {
            continue;
        }
        if message.as_payload().len() % 16 == 1 {
            ws.feed(Message::ping("between messages")).await?;
        }
        ws.send(message).await?;
    }
    Ok(())
}
