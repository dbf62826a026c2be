//! A request about which the application decides.

use std::{fmt, net::SocketAddr};

use linerate_proto::handshake::{Refusal, Request};
use tokio::sync::oneshot;

use super::pending::{Choice, Decision, Pending};
use crate::{Error, Result, WebSocket, info::ConnectionInfo, link::Answer};

/// A valid request to open a WebSocket that waits for the application's decision; see
/// [`Server::serve_incoming`](crate::Server::serve_incoming).
///
/// The application may take as long as [`handshake_timeout`](crate::Options::handshake_timeout)
/// allows; then the client is refused with 503. If an `Incoming` is dropped without a decision, the
/// client is refused with 500.
#[must_use = "dropping the request refuses it with 500"]
pub struct Incoming {
    request: Request,
    info: ConnectionInfo,
    choice: Choice,
    decision: oneshot::Sender<Decision>,
}

impl Incoming {
    /// Creates the request, and what answers it once the application has decided.
    pub(super) fn new(request: Request, pending: Pending) -> (Self, Answer) {
        let (decision, decided) = oneshot::channel();
        let incoming = Self {
            request,
            info: pending.channel.info(),
            choice: Choice::default(),
            decision,
        };
        (incoming, Box::pin(pending.answer(decided)))
    }

    /// Selects the first of `subprotocols` that the client offers, if any.
    pub fn with_subprotocols(mut self, subprotocols: &[&str]) -> Self {
        self.choice.subprotocol = self
            .request
            .websocket()
            .ok()
            .and_then(|upgrade| upgrade.choose_subprotocol(subprotocols).map(Into::into));
        self
    }

    /// Adds a header to the response that accepts the request, for example `Set-Cookie`.
    ///
    /// A header that is invalid or that the handshake sets itself causes an error in
    /// [`accept`](Self::accept).
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.choice.headers.push((name.into(), value.into()));
        self
    }

    /// Returns the request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Returns what is known about the connection: addresses, HTTP version and TLS.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// Returns the address of the client; behind a proxy, that of the proxy. `None` if the
    /// connection does not use the Internet Protocol.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.info.peer_addr
    }

    /// Returns the subprotocol that was [selected](Self::with_subprotocols).
    pub fn subprotocol(&self) -> Option<&str> {
        self.choice.subprotocol.as_deref()
    }

    /// Accepts the request and opens the WebSocket.
    ///
    /// # Errors
    /// An added header is invalid, in which case the client is refused with 500, or the client is
    /// gone or takes too long.
    ///
    /// # Cancel safety
    /// If the future is dropped after its first poll, the connection opens and is closed with code
    /// 1001.
    pub async fn accept(self) -> Result<WebSocket> {
        let (ws, _) = self.accept_with_request().await?;
        Ok(ws)
    }

    /// Like [`accept`](Self::accept); also returns the request.
    pub(super) async fn accept_with_request(self) -> Result<(WebSocket, Request)> {
        let (outcome, opened) = oneshot::channel();
        let decision = Decision::Accept(self.request, self.choice, outcome);
        // Both fail if there is no longer a client to answer.
        self.decision.send(decision).map_err(|_| Error::Abnormal)?;
        opened.await.map_err(|_| Error::Abnormal)?
    }

    /// Refuses the request, and waits for a moment until the client has read the refusal.
    ///
    /// # Errors
    /// The client is gone, or was already told that the decision took too long.
    ///
    /// # Cancel safety
    /// If the future is dropped after its first poll, the client is still refused.
    pub async fn refuse(self, refusal: Refusal) -> Result<()> {
        let (outcome, refused) = oneshot::channel();
        let decision = Decision::Refuse(self.request, refusal, outcome);
        self.decision.send(decision).map_err(|_| Error::Abnormal)?;
        refused.await.map_err(|_| Error::Abnormal)
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}
