//! fastwebsockets as a contender: hyper's upgrade and a `FragmentCollector`, as in the library's
//! example `echo_server`; for the fan-out the two halves, as in `echo_server_split`.
#![forbid(unsafe_code)]

use std::sync::Arc;

use fastwebsockets::{
    FragmentCollector, FragmentCollectorRead, Frame, OpCode, Payload, WebSocket, WebSocketError,
    upgrade::{UpgradeFut, upgrade},
};
use hyper::{server::conn::http1, service::service_fn, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use kit::{Arguments, Hub, MESSAGE_BYTES_MAX, Program, Service, Socket};
use tokio::{sync::Mutex, task::unconstrained};

/// Cloning a frame copies its payload.
type Publication = Arc<(OpCode, Vec<u8>)>;

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
        let service = service_fn(async |mut request| {
            let (response, upgrade) = upgrade(&mut request)?;
            tokio::spawn(unconstrained(self.clone().answer(upgrade)));
            Ok::<_, WebSocketError>(response)
        });
        http1::Builder::new()
            .serve_connection(TokioIo::new(socket), service)
            .with_upgrades()
            .await?;
        Ok(())
    }
}

impl Server {
    async fn answer(self, upgrade: UpgradeFut) -> Result<(), WebSocketError> {
        let mut ws = upgrade.await?;
        // The library refuses messages that are as long as the limit.
        ws.set_max_message_size(MESSAGE_BYTES_MAX + 1);
        match self.service {
            Service::Fanout => fan_out(ws, self.hub).await,
            service => reply(FragmentCollector::new(ws), service).await,
        }
    }
}

async fn reply(
    mut ws: FragmentCollector<TokioIo<Upgraded>>,
    service: Service,
) -> Result<(), WebSocketError> {
    loop {
        let frame = ws.read_frame().await?;
        match frame.opcode {
            OpCode::Binary | OpCode::Text if service == Service::Acknowledge => {
                let count = frame.payload.len().to_string().into_bytes();
                ws.write_frame(Frame::text(count.into())).await?;
            }
            OpCode::Binary | OpCode::Text => ws.write_frame(frame).await?,
            OpCode::Close => return Ok(()),
            _ => {}
        }
    }
}

async fn fan_out(
    ws: WebSocket<TokioIo<Upgraded>>,
    hub: Hub<Publication>,
) -> Result<(), WebSocketError> {
    let (read, write) = ws.split(tokio::io::split);
    let (mut read, write) = (FragmentCollectorRead::new(read), Mutex::new(write));
    let mut publications = hub.subscribe();
    let publish = async {
        loop {
            // The library's own output: a Pong, or the answer to a Close frame.
            let mut send = async |frame| write.lock().await.write_frame(frame).await;
            let frame = read.read_frame(&mut send).await?;
            match frame.opcode {
                OpCode::Binary | OpCode::Text => {
                    hub.publish(Arc::new((frame.opcode, frame.payload.into())));
                }
                OpCode::Close => return Ok(()),
                _ => {}
            }
        }
    };
    let deliver = async {
        while let Ok(publication) = publications.recv().await {
            let (opcode, payload) = &*publication;
            let frame = Frame::new(true, *opcode, None, Payload::Borrowed(payload));
            write.lock().await.write_frame(frame).await?;
        }
        Ok(())
    };
    tokio::select! {
        ended = publish => ended,
        ended = deliver => ended,
    }
}
