//! WebSockets on the streams of an HTTP/2 connection.

use std::sync::Arc;

use linerate_h2::serve_connection;

use super::{application::Application, channel::Channel, streams::Streams};
use crate::{describe::describe, link::Slot, transport::Transport};

impl<A: Application> Streams<A> {
    /// Opens WebSockets until the connection ends; `_slot` is the slot of the connection itself.
    pub(super) async fn serve_http2(self, io: Transport, _slot: Slot) {
        let streams = Arc::new(self);
        let options = streams.server.settings.options.clone();
        let connection = Arc::new(describe(&io));
        let goodbye = streams.connections.shutdown();
        let start = |incoming: linerate_h2::Incoming| {
            let request = incoming.request(options.handshake);
            let channel = Channel::Http2(incoming, connection.clone());
            let streams = streams.clone();
            tokio::spawn(async move { streams.attend(request, channel).await });
        };
        let time_max = options.handshake_timeout;
        let served = serve_connection(io, &options.http2, time_max, goodbye, start).await;
        if let Err(error) = served {
            tracing::debug!(%error, "HTTP/2 connection failed");
        }
    }
}
