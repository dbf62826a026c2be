//! WebSockets on the streams of an HTTP/2 connection.

use std::future::Future;

use linerate_h2::{Incoming, response, serve_connection};
use linerate_proto::handshake::Request;

use super::streams::Streams;
use crate::{Result, WebSocket, link::Slot, transport::Transport};

impl<H, F> Streams<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    /// Opens WebSockets until the connection ends; `_slot` is the slot of the connection itself.
    pub(super) async fn serve_http2(self, io: Transport, _slot: Slot) {
        let options = &self.server.settings.options;
        let goodbye = self.connections.shutdown();
        let start = |incoming| self.start(incoming);
        let time_max = options.handshake_timeout;
        let served = serve_connection(io, &options.http2, time_max, goodbye, start).await;
        if let Err(error) = served {
            tracing::debug!(%error, "HTTP/2 connection failed");
        }
    }

    fn start(&self, incoming: Incoming) {
        let request = incoming.request(self.server.settings.options.handshake);
        let opened = match self.judge(request, response) {
            Ok((response, opening)) => incoming.accept(response).map(|stream| {
                self.open(Transport::Http2(Box::new(stream)), opening);
            }),
            Err(refusal) => incoming.refuse(&refusal),
        };
        if let Err(error) = opened {
            tracing::debug!(%error, "response not delivered");
        }
    }
}
