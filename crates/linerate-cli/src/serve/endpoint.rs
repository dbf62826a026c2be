//! What the WebSockets of the server have in common: a place, a farewell, an end at shutdown.

use axum::response::Response;
use linerate::{CloseCode, Receiver, Result, Sender, axum::WebSocketUpgrade};
use linerate_gateway::server::Visit;

/// What a connection is for.
pub(super) trait Endpoint: Send + 'static {
    /// Talks until there is nothing left to say. Is dropped at an await point at shutdown.
    fn talk(
        self,
        sender: &Sender,
        receiver: &mut Receiver,
    ) -> impl Future<Output = Result<Farewell>> + Send;
}

/// How a connection is to be closed, unless the client has begun to close it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Farewell {
    pub(super) code: CloseCode,
    pub(super) reason: &'static str,
}

impl Farewell {
    /// All is said.
    pub(super) const DONE: Self = Self {
        code: CloseCode::NORMAL,
        reason: "",
    };
    const SHUTDOWN: Self = Self {
        code: CloseCode::GOING_AWAY,
        reason: "server shuts down",
    };
}

/// Answers the request and lets `endpoint` talk.
///
/// The connection keeps its place until both sides have closed.
pub(super) fn attend(upgrade: WebSocketUpgrade, visit: Visit, endpoint: impl Endpoint) -> Response {
    upgrade.on_upgrade(|ws| async move {
        let (sender, mut receiver) = ws.split();
        let farewell = tokio::select! {
            biased;
            () = visit.goodbye() => Farewell::SHUTDOWN,
            farewell = endpoint.talk(&sender, &mut receiver) => farewell?,
        };
        sender.close(farewell.code, farewell.reason).await?;
        Ok(())
    })
}
