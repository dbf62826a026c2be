//! tokio-tungstenite as a contender: a stream of messages forwarded into a sink, which flushes when
//! no input is left, as in the library's examples `echo-server` and `server`.
#![forbid(unsafe_code)]

use futures_util::{StreamExt, TryStreamExt, future};
use kit::{Arguments, Hub, MESSAGE_BYTES_MAX, Program, Service, Socket};
use tokio_tungstenite::{
    accept_async_with_config,
    tungstenite::{Message, protocol::WebSocketConfig},
};

#[derive(Clone)]
struct Server {
    service: Service,
    hub: Hub<Message>,
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
        let config = WebSocketConfig::default().max_frame_size(Some(MESSAGE_BYTES_MAX));
        let ws = accept_async_with_config(socket, Some(config)).await?;
        let (replies, messages) = ws.split();
        let messages =
            messages.try_filter(|message| future::ready(message.is_text() || message.is_binary()));
        match self.service {
            Service::Acknowledge => {
                messages
                    .map_ok(|message| Message::text(message.len().to_string()))
                    .forward(replies)
                    .await?;
            }
            Service::Echo => messages.forward(replies).await?,
            Service::Fanout => {
                let deliver = self.hub.stream().map(Ok).forward(replies);
                let publish = messages.try_for_each(|message| {
                    self.hub.publish(message);
                    future::ok(())
                });
                future::try_select(Box::pin(deliver), publish)
                    .await
                    .map_err(|ended| ended.factor_first().0)?;
            }
        }
        Ok(())
    }
}
