//! axum as a contender: its `WebSocketUpgrade` extractor on hyper, like `axum::serve`, but with
//! support for TLS streams. A stream of messages is forwarded into a sink, which flushes when no
//! input is left.
#![forbid(unsafe_code)]

use axum::{
    Router,
    extract::ws::{Message, WebSocket, WebSocketUpgrade},
    routing::any,
};
use futures_util::{StreamExt, TryStreamExt, future};
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use kit::{Arguments, Hub, MESSAGE_BYTES_MAX, Program, Service, Socket};
use tokio::task::unconstrained;

#[derive(Clone)]
struct Server(Router);

fn main() -> kit::Result {
    let arguments = Arguments::from_command_line()?.without_deflate()?;
    let (service, hub) = (arguments.service, Hub::new());
    let handler = any(async move |upgrade: WebSocketUpgrade| {
        upgrade
            .max_frame_size(MESSAGE_BYTES_MAX)
            .on_upgrade(move |ws| unconstrained(talk(ws, service, hub)))
    });
    kit::serve(&arguments, Server(Router::new().fallback(handler)))
}

impl Program for Server {
    async fn talk(self, socket: impl Socket) -> kit::Result {
        http1::Builder::new()
            .serve_connection(TokioIo::new(socket), TowerToHyperService::new(self.0))
            .with_upgrades()
            .await?;
        Ok(())
    }
}

/// Ends with the connection, whose errors are ignored.
async fn talk(ws: WebSocket, service: Service, hub: Hub<Message>) {
    let (replies, messages) = ws.split();
    let messages = messages.try_filter(|message| {
        future::ready(matches!(message, Message::Binary(_) | Message::Text(_)))
    });
    match service {
        Service::Acknowledge => {
            let count = |message: Message| Message::text(message.into_data().len().to_string());
            _ = messages.map_ok(count).forward(replies).await;
        }
        Service::Echo => _ = messages.forward(replies).await,
        Service::Fanout => {
            let deliver = hub.stream().map(Ok).forward(replies);
            let publish = messages.try_for_each(|message| {
                hub.publish(message);
                future::ok(())
            });
            _ = future::select(Box::pin(deliver), publish).await;
        }
    }
}
