//! tokio-websockets as a contender: reads as many messages as are ready, and flushes their replies
//! together. `forward` would write each reply separately, because reading flushes what is queued.
#![forbid(unsafe_code)]

use futures_util::{SinkExt, StreamExt, TryStreamExt, future};
use kit::{Arguments, Hub, Program, Service, Socket};
use tokio_websockets::{Message, ServerBuilder};

/// Messages that are answered together.
const GATHERED_MAX: usize = 32;

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
        let (_request, ws) = ServerBuilder::new().accept(socket).await?;
        let (mut replies, messages) = ws.split();
        let messages =
            messages.try_filter(|message| future::ready(message.is_text() || message.is_binary()));
        match self.service {
            Service::Acknowledge | Service::Echo => {
                let mut gathered = messages.try_ready_chunks(GATHERED_MAX);
                while let Some(messages) = gathered.try_next().await.map_err(|stopped| stopped.1)? {
                    for message in messages {
                        replies.feed(self.reply(message)).await?;
                    }
                    replies.flush().await?;
                }
            }
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

impl Server {
    fn reply(&self, message: Message) -> Message {
        match self.service {
            Service::Acknowledge => Message::text(message.as_payload().len().to_string()),
            Service::Echo | Service::Fanout => message,
        }
    }
}
