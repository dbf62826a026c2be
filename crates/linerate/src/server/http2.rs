//! WebSockets on the streams of an HTTP/2 connection.

use std::{future::Future, sync::Arc};

use linerate_proto::{
    Role,
    handshake::{HandshakeError, Refusal, Request, Scheme},
};

use super::{Connections, Server, Slot, accept::decide, drive};
use crate::{
    Error, Result, WebSocket,
    http2::{self, Incoming, Stream, serve_connection},
    link::{Agreed, Link, Transport},
};

/// The data that the WebSockets of a connection share.
pub(super) struct Connection<H> {
    pub(super) server: Arc<Server>,
    pub(super) scheme: Scheme,
    pub(super) handler: Arc<H>,
    pub(super) connections: Connections,
}

impl<H, F> Connection<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    /// Opens WebSockets until the connection ends; `_slot` is the slot of the connection itself.
    pub(super) async fn serve(self, io: Transport, _slot: Slot) {
        let options = &self.server.settings.options;
        let limits = Arc::new(options.http2.clone());
        let goodbye = self.connections.shutdown();
        let start = |incoming| self.start(incoming);
        let served = serve_connection(io, &limits, options.handshake_timeout, goodbye, start).await;
        if let Err(error) = served {
            tracing::debug!(%error, "HTTP/2 connection failed");
        }
    }

    fn start(&self, mut incoming: Incoming) {
        match self.judge(&incoming) {
            Ok(opening) => self.open(incoming, opening),
            Err((refusal, error)) => {
                tracing::debug!(%error, "opening handshake failed");
                match http2::refuse(&mut incoming.respond, &refusal) {
                    Ok(()) if incoming.body.is_end_stream() => {}
                    Ok(()) => _ = tokio::spawn(refused(incoming)),
                    Err(error) => {
                        incoming.place.note_reset();
                        tracing::debug!(%error, "refusal not delivered");
                    }
                }
            }
        }
    }

    fn judge(&self, incoming: &Incoming) -> std::result::Result<Opening, (Refusal, Error)> {
        let refuse = |error: HandshakeError| (Refusal::from(error), error.into());
        let slot = self.connections.take_slot().ok_or_else(|| {
            let refusal = Refusal::new(503, "too many connections");
            let refusal = refusal.expect("503 is the status of a refusal");
            (refusal, Error::Refused { status: 503 })
        })?;
        let limits = self.server.settings.options.handshake;
        let protocol = incoming.head.extensions.get::<h2::ext::Protocol>();
        let protocol = protocol.map(h2::ext::Protocol::as_str);
        let request = http2::request(&incoming.head, protocol, limits).map_err(refuse)?;
        let (response, agreed) = decide(&self.server, &request, self.scheme, |acceptance| {
            (http2::response(acceptance), Agreed::from(acceptance))
        })?;
        Ok(Opening {
            response: response.map_err(refuse)?,
            request,
            slot,
            agreed,
        })
    }

    fn open(&self, mut incoming: Incoming, opening: Opening) {
        let send = match incoming.respond.send_response(opening.response, false) {
            Ok(send) => send,
            Err(error) => {
                incoming.place.note_reset();
                return tracing::debug!(%error, "opening handshake failed");
            }
        };
        let stream = Stream::new(send, incoming.body, Some(incoming.place));
        let io = Transport::Http2(Box::new(stream));
        let link = Link::new(io, Role::Server, &self.server.settings, b"", opening.agreed);
        drive(link, opening.request, opening.slot, &*self.handler);
    }
}

/// Waits for the rest of a refused request, which keeps its place in the meantime.
async fn refused(incoming: Incoming) {
    let Incoming {
        body,
        mut respond,
        mut place,
        overflows,
        ..
    } = incoming;
    http2::linger(body, &mut respond, &overflows, &mut place).await;
}

/// A WebSocket that is about to be opened.
struct Opening {
    request: Request,
    response: http::Response<()>,
    slot: Slot,
    agreed: Agreed,
}
