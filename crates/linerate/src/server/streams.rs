//! Requests for a WebSocket on the streams of HTTP/2 and HTTP/3 connections.

use std::{future::Future, sync::Arc};

use linerate_proto::{
    Role,
    handshake::{Acceptance, HandshakeError, Refusal, Request, Scheme},
};

use super::{Server, accept::decide, drive};
use crate::{
    Error, Result, WebSocket,
    link::{Connections, HandshakeResult, Link, Slot},
    transport::Transport,
};

/// The data that the streams of a connection share.
pub(super) struct Streams<H> {
    pub(super) server: Arc<Server>,
    pub(super) scheme: Scheme,
    pub(super) handler: Arc<H>,
    pub(super) connections: Connections,
}

/// A WebSocket that is about to be opened.
pub(super) struct PendingWebSocket {
    request: Request,
    slot: Slot,
    agreed: HandshakeResult,
}

impl<H, F> Streams<H>
where
    H: Fn(WebSocket, Request) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    /// Decides about a request. `respond` makes the response from an acceptance.
    pub(super) fn judge<R>(
        &self,
        request: Result<Request, HandshakeError>,
        respond: impl FnOnce(&Acceptance<'_>) -> Result<R, HandshakeError>,
    ) -> Result<(R, PendingWebSocket), Refusal> {
        self.decide(request, respond).map_err(|(refusal, error)| {
            tracing::debug!(%error, "opening handshake failed");
            refusal
        })
    }

    fn decide<R>(
        &self,
        request: Result<Request, HandshakeError>,
        respond: impl FnOnce(&Acceptance<'_>) -> Result<R, HandshakeError>,
    ) -> Result<(R, PendingWebSocket), (Refusal, Error)> {
        let refuse = |error: HandshakeError| (Refusal::from(error), error.into());
        let slot = self.connections.take_slot().ok_or_else(|| {
            let refusal = Refusal::new(503, "too many connections");
            let refusal = refusal.expect("503 is the status of a refusal");
            (refusal, Error::Refused { status: 503 })
        })?;
        let request = request.map_err(refuse)?;
        let (response, agreed) = decide(&self.server, &request, self.scheme, |acceptance| {
            (respond(acceptance), HandshakeResult::from(acceptance))
        })?;
        let opening = PendingWebSocket {
            request,
            slot,
            agreed,
        };
        Ok((response.map_err(refuse)?, opening))
    }

    /// Runs the handler on a stream that carries a WebSocket now.
    pub(super) fn open(&self, io: Transport, opening: PendingWebSocket) {
        let settings = &self.server.settings;
        let link = Link::new(io, Role::Server, settings, b"", opening.agreed);
        drive(link, opening.request, opening.slot, &*self.handler);
    }
}
