//! Echoes messages with tokio-tungstenite, as a server or as a client.

use futures_util::{SinkExt, StreamExt};
use interop_peers::{Arguments, Result};
use tokio::net::TcpStream;
use tokio_tungstenite::{
    WebSocketStream, accept_async, client_async,
    tungstenite::{
        Bytes, Message,
        protocol::frame::{
            Frame,
            coding::{Data, OpCode},
        },
    },
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let arguments = Arguments::read()?;
    let fragment = arguments.fragment()?;
    let serve = |stream| async move { echo(accept_async(stream).await?, fragment).await };
    let connect = |stream, url: String| async move {
        let (ws, _response) = client_async(url, stream).await?;
        echo(ws, fragment).await
    };
    arguments.run(serve, connect).await
}

async fn echo(mut ws: WebSocketStream<TcpStream>, fragment: Option<usize>) -> Result {
    while let Some(message) = ws.next().await {
        let (payload, data) = match message? {
            Message::Text(text) => (Bytes::from(text), Data::Text),
            Message::Binary(bytes) => (bytes, Data::Binary),
            _ => continue,
        };
        send(&mut ws, payload, data, fragment.unwrap_or(usize::MAX)).await?;
    }
    Ok(())
}

/// Sends a message in fragments of the given length, with Pings in between.
async fn send(
    ws: &mut WebSocketStream<TcpStream>,
    mut payload: Bytes,
    mut data: Data,
    length: usize,
) -> Result {
    while payload.len() > length {
        let piece = payload.split_to(length);
        ws.feed(frame(piece, data, false)).await?;
        ws.feed(Message::Ping(Bytes::new())).await?;
        data = Data::Continue;
    }
    ws.send(frame(payload, data, true)).await?;
    Ok(())
}

fn frame(payload: Bytes, data: Data, fin: bool) -> Message {
    Message::Frame(Frame::message(payload, OpCode::Data(data), fin))
}
