//! sockudo-ws as a contender: `next`, which flushes before it waits, and `feed`; for the fan-out
//! its `PubSub`.
#![forbid(unsafe_code)]

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use kit::{Arguments, Deflate, MESSAGE_BYTES_MAX, Program, Service, Socket};
use sockudo_ws::{
    CompressedWebSocketStream, Config, DeflateConfig, Error, Message, PubSub, Role,
    WebSocketStream,
    deflate::negotiate_server_deflate,
    handshake::{build_response, generate_accept_key, parse_request},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
};

/// The topic that all clients are subscribed to.
const TOPIC: &str = "all";

#[derive(Clone)]
struct Server {
    service: Service,
    config: Config,
    hub: Arc<PubSub>,
}

fn main() -> kit::Result {
    let arguments = Arguments::from_command_line()?;
    sockudo_ws::init_clock();
    let config = Config::builder().max_payload_length(MESSAGE_BYTES_MAX);
    let config = match arguments.deflate {
        None => config,
        Some(kind) => config.deflate_config(DeflateConfig {
            client_no_context_takeover: kind == Deflate::NoTakeover,
            server_no_context_takeover: kind == Deflate::NoTakeover,
            compression_threshold: 1,
            ..DeflateConfig::default()
        }),
    };
    let server = Server {
        service: arguments.service,
        config: config.build(),
        hub: Arc::default(),
    };
    kit::serve(&arguments, server)
}

impl Program for Server {
    async fn talk(self, mut socket: impl Socket) -> kit::Result {
        let (deflate, leftover) = accept(&mut socket, self.config.deflate.as_ref()).await?;
        let config = self.config.clone();
        match deflate {
            None => {
                let leftover = Some(leftover);
                let role = Role::Server;
                let ws = WebSocketStream::from_raw_with_leftover(socket, role, config, leftover);
                self.answer(ws).await?;
            }
            Some(deflate) => {
                let leftover = Some(leftover);
                let ws = CompressedWebSocketStream::server_with_leftover(
                    socket, config, deflate, leftover,
                );
                self.answer(ws).await?;
            }
        }
        Ok(())
    }
}

/// Answers the opening handshake; returns the agreed compression and the bytes after the request.
async fn accept(
    socket: &mut impl Socket,
    policy: Option<&DeflateConfig>,
) -> Result<(Option<DeflateConfig>, Bytes), Error> {
    let mut input = BytesMut::new();
    loop {
        if socket.read_buf(&mut input).await? == 0 {
            return Err(Error::ConnectionClosed);
        }
        let Some((request, head_bytes)) = parse_request(&input)? else {
            continue;
        };
        let agreed = request
            .extensions
            .zip(policy)
            .and_then(|(offers, policy)| negotiate_server_deflate(offers, policy));
        let extensions = agreed.as_ref().map(|agreed| agreed.to_response_header());
        let key = generate_accept_key(request.key);
        let response = build_response(&key, None, extensions.as_deref());
        socket.write_all(&response).await?;
        socket.flush().await?;
        let leftover = input.split_off(head_bytes).freeze();
        return Ok((agreed.map(|agreed| agreed.config), leftover));
    }
}

impl Server {
    async fn answer<W>(self, mut ws: W) -> Result<(), Error>
    where
        W: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Unpin,
    {
        if self.service == Service::Fanout {
            return self.fan_out(ws).await;
        }
        while let Some(message) = ws.next().await {
            match (message?, self.service) {
                (Message::Binary(payload) | Message::Text(payload), Service::Acknowledge) => {
                    ws.feed(Message::text(payload.len().to_string())).await?;
                }
                (message @ (Message::Binary(_) | Message::Text(_)), _) => ws.feed(message).await?,
                _ => {}
            }
        }
        Ok(())
    }

    async fn fan_out<W>(self, mut ws: W) -> Result<(), Error>
    where
        W: Stream<Item = Result<Message, Error>> + Sink<Message, Error = Error> + Unpin,
    {
        let (sender, mut publications) = mpsc::unbounded_channel();
        let subscriber = self.hub.create_subscriber(sender);
        self.hub.subscribe(subscriber, TOPIC);
        let ended = loop {
            tokio::select! {
                received = ws.next() => match received {
                    None => break Ok(()),
                    Some(Err(error)) => break Err(error),
                    Some(Ok(message @ (Message::Binary(_) | Message::Text(_)))) => {
                        self.hub.publish(TOPIC, message);
                    }
                    Some(Ok(_)) => {}
                },
                Some(publication) = publications.recv() => {
                    // Reading flushes it before it waits.
                    if let Err(error) = ws.feed(publication).await {
                        break Err(error);
                    }
                }
            }
        };
        self.hub.remove_subscriber(subscriber);
        ended
    }
}
