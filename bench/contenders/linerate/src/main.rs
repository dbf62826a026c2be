//! linerate as a contender.
#![forbid(unsafe_code)]

use std::{future, sync::Arc};

use kit::{Arguments, Hub, MESSAGE_BYTES_MAX, Service};
use linerate::{Deflate, Message, Options, Server, WebSocket, handshake::OriginPolicy};

/// In an `Arc`, because cloning a message copies its payload.
type Publication = Arc<Message>;

fn main() -> kit::Result {
    let arguments = Arguments::from_command_line()?;
    let mut options = Options::default();
    options.deflate = arguments.deflate.map(deflate);
    options.config.limits.message_bytes_max = MESSAGE_BYTES_MAX as u64;
    let mut server = Server::new()
        .with_options(options)
        .with_origins(OriginPolicy::DangerAny);
    if let Some(tls) = kit::server_config(&arguments)? {
        server = server.with_tls(tls);
    }
    let (service, hub) = (arguments.service, Hub::new());
    kit::on_each_thread(&arguments, move |listener| {
        let (server, hub) = (server.clone(), hub.clone());
        async move {
            let talk = move |ws, _request| talk(ws, service, hub.clone());
            Ok(server.serve(listener, talk, future::pending()).await?)
        }
    })
}

/// The defaults, except for context takeover. A client that does not offer a smaller window keeps
/// its context only with 15 bits.
fn deflate(wanted: kit::Deflate) -> Deflate {
    let takeover = wanted == kit::Deflate::Takeover;
    let mut deflate = Deflate::default();
    deflate.takeover = takeover;
    deflate.peer_takeover = takeover;
    deflate.peer_window_bits = 15;
    deflate
}

async fn talk(mut ws: WebSocket, service: Service, hub: Hub<Publication>) -> linerate::Result<()> {
    match service {
        Service::Acknowledge => {
            ws.for_each(|message, replies| {
                replies.push(message.len().to_string());
                Ok(())
            })
            .await
        }
        Service::Echo => {
            ws.for_each(|message, replies| {
                replies.push(message);
                Ok(())
            })
            .await
        }
        Service::Fanout => fan_out(ws, hub).await,
    }
}

async fn fan_out(mut ws: WebSocket, hub: Hub<Publication>) -> linerate::Result<()> {
    let mut publications = hub.subscribe();
    loop {
        tokio::select! {
            received = ws.recv() => match received? {
                None => return Ok(()),
                Some(message) => hub.publish(Arc::new(message)),
            },
            published = publications.recv() => match published.as_deref() {
                Err(_) => return Ok(()),
                Ok(Message::Binary(bytes)) => ws.send_binary(bytes).await?,
                Ok(Message::Text(text)) => ws.send_text(text).await?,
            },
        }
    }
}
