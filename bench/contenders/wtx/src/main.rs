//! wtx as a contender: `read_frame` and `write_frame` on the parts of a connection, with payloads
//! in the library's buffers where possible; for the fan-out the owned parts.
#![forbid(unsafe_code)]

use std::sync::Arc;

use kit::{Arguments, Hub, MESSAGE_BYTES_MAX, Program, Service, Socket};
use wtx::{
    collection::Vector,
    rng::Xorshift64,
    web_socket::{
        Frame, OpCode, WebSocketAcceptor, WebSocketOwned, WebSocketPartsOwned,
        WebSocketPayloadOrigin,
    },
};

mod transport;

use transport::Transport;

/// Cloning a frame copies its payload.
type Publication = Arc<(OpCode, Vec<u8>)>;
type WebSocket<S> = WebSocketOwned<(), Xorshift64, Transport<S>, false>;

#[derive(Clone)]
struct Server {
    service: Service,
    hub: Hub<Publication>,
}

fn main() -> kit::Result {
    let arguments = Arguments::from_command_line()?.without_deflate()?;
    let server = Server {
        service: arguments.service,
        hub: Hub::new(),
    };
    kit::serve(&arguments, server)
}

impl Program for Server {
    async fn talk(self, socket: impl Socket) -> kit::Result {
        let mut ws = WebSocketAcceptor::default()
            .accept(Transport(socket))
            .await?;
        // The library refuses messages that are as long as the limit.
        ws.set_max_payload_len(MESSAGE_BYTES_MAX + 1);
        match self.service {
            Service::Fanout => fan_out(ws, self.hub).await?,
            service => reply(ws, service).await?,
        }
        Ok(())
    }
}

async fn reply<S: Socket>(mut ws: WebSocket<S>, service: Service) -> wtx::Result<()> {
    let (mut common, mut reader, mut writer) = ws.split_mut();
    let mut buffer = Vector::new();
    loop {
        let origin = WebSocketPayloadOrigin::Adaptive;
        let mut frame = reader.read_frame(&mut buffer, &mut common, origin).await?;
        match frame.op_code() {
            OpCode::Binary | OpCode::Text if service == Service::Acknowledge => {
                let mut count = frame.payload().len().to_string().into_bytes();
                let mut frame = Frame::new_fin(OpCode::Text, count.as_mut_slice());
                writer.write_frame(&mut common, &mut frame).await?;
            }
            OpCode::Binary | OpCode::Text => writer.write_frame(&mut common, &mut frame).await?,
            OpCode::Close => return Ok(()),
            _ => {}
        }
    }
}

async fn fan_out<S: Socket>(ws: WebSocket<S>, hub: Hub<Publication>) -> wtx::Result<()> {
    let split = |transport: Transport<S>| tokio::io::split(transport.0);
    let WebSocketPartsOwned {
        mut reader,
        replier,
        mut writer,
    } = ws.into_split(split)?;
    let mut publications = hub.subscribe();
    let publish = async {
        let mut buffer = Vector::new();
        loop {
            let origin = WebSocketPayloadOrigin::Adaptive;
            let frame = reader.read_frame(&mut buffer, origin).await?;
            match frame.op_code() {
                OpCode::Binary | OpCode::Text => {
                    hub.publish(Arc::new((frame.op_code(), frame.payload().to_vec())));
                }
                // The other half answers it, and ends the connection.
                OpCode::Close => return std::future::pending().await,
                _ => {}
            }
        }
    };
    let deliver = async {
        let mut payload = Vec::new();
        loop {
            tokio::select! {
                mut control = replier.reply_frame() => {
                    if writer.write_reply_frame(&mut control).await? {
                        return Ok(());
                    }
                }
                published = publications.recv() => {
                    let Ok(publication) = published else { return Ok(()) };
                    payload.clone_from(&publication.1);
                    let mut frame = Frame::new_fin(publication.0, payload.as_mut_slice());
                    writer.write_frame(&mut frame).await?;
                }
            }
        }
    };
    tokio::select! {
        ended = publish => ended,
        ended = deliver => ended,
    }
}
