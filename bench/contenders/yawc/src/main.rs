//! yawc as a contender: hyper's upgrade, then a stream of frames forwarded into a sink, which
//! flushes when no input is left. Frames are whole messages here: the library assembles fragments.
#![forbid(unsafe_code)]

use futures_util::{StreamExt, future};
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use kit::{Arguments, Deflate, Hub, MESSAGE_BYTES_MAX, Program, Service, Socket};
use tokio::task::unconstrained;
use yawc::{Frame, OpCode, Options, UpgradeFut, WebSocket, WebSocketError};

#[derive(Clone)]
struct Server {
    service: Service,
    hub: Hub<Frame>,
    options: Options,
}

fn main() -> kit::Result {
    let arguments = Arguments::from_command_line()?;
    // The library refuses messages that are as long as a limit. A read buffer without an explicit
    // size shrinks when the first 8 KiB are used up.
    let options = Options::default()
        .with_limits(MESSAGE_BYTES_MAX + 1, MESSAGE_BYTES_MAX + 1)
        .with_read_buffer_capacity(8 << 10)
        .with_backpressure_boundary(64 << 10)
        .with_utf8();
    let options = match arguments.deflate {
        None => options,
        Some(Deflate::NoTakeover) => options
            .client_no_context_takeover()
            .server_no_context_takeover(),
        Some(Deflate::Takeover) => options.with_balanced_compression(),
    };
    let server = Server {
        service: arguments.service,
        hub: Hub::new(),
        options,
    };
    kit::serve(&arguments, server)
}

impl Program for Server {
    async fn talk(self, socket: impl Socket) -> kit::Result {
        let service = service_fn(async |mut request| {
            let (response, upgrade) =
                WebSocket::upgrade_with_options(&mut request, self.options.clone())?;
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
        let (replies, messages) = upgrade.await?.split();
        let messages = messages
            .filter(|frame| future::ready(matches!(frame.opcode(), OpCode::Binary | OpCode::Text)));
        match self.service {
            Service::Acknowledge => {
                messages
                    .map(|frame| Ok(Frame::text(frame.payload().len().to_string())))
                    .forward(replies)
                    .await
            }
            Service::Echo => messages.map(Ok).forward(replies).await,
            Service::Fanout => {
                let deliver = Box::pin(self.hub.stream().map(Ok).forward(replies));
                let publish = messages.for_each(|frame| {
                    self.hub.publish(frame);
                    future::ready(())
                });
                future::select(deliver, publish).await;
                Ok(())
            }
        }
    }
}
