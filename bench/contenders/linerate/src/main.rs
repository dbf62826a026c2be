//! linerate as a contender.
#![forbid(unsafe_code)]

use std::future;

use kit::{Arguments, MESSAGE_BYTES_MAX, Service};
use linerate::{
    CloseCode, Deflate, Options, Server, WebSocket,
    handshake::OriginPolicy,
    room::{Room, RoomOptions, SlowMember},
};

/// How many bytes of publications may wait for a subscriber.
const BACKLOG_BYTES_MAX: usize = 16 << 20;

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
    let (service, room) = (arguments.service, room());
    kit::on_each_thread(&arguments, move |listener| {
        let (server, room) = (server.clone(), room.clone());
        async move {
            let talk = move |ws, _request| talk(ws, service, room.clone());
            Ok(server.serve(listener, talk, future::pending()).await?)
        }
    })
}

/// Creates a room that disconnects slow subscribers, because no publication may be lost.
fn room() -> Room {
    let mut options = RoomOptions::default();
    options.backlog_bytes_max = BACKLOG_BYTES_MAX;
    options.slow = SlowMember::Close(CloseCode::TRY_AGAIN_LATER);
    Room::with_options(options)
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

async fn talk(mut ws: WebSocket, service: Service, room: Room) -> linerate::Result<()> {
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
        Service::Fanout => {
            let _member = room.join(&ws)?;
            while let Some(message) = ws.recv().await? {
                room.send(message);
            }
            Ok(())
        }
    }
}
