//! Common handling of the server's WebSocket endpoints: admission, closing, and shutdown.

use axum::response::Response;
use linerate::{CloseCode, Receiver, Result, Sender, axum::WebSocketUpgrade};
use linerate_gateway::ConnectionGuard;

/// The purpose of a connection.
pub(super) trait Endpoint: Send + 'static {
    /// Runs the conversation until it is finished; returns how to close the connection. At
    /// shutdown, the future is dropped at an await point.
    fn talk(
        self,
        sender: &Sender,
        receiver: &mut Receiver,
    ) -> impl Future<Output = Result<CloseMessage>> + Send;
}

/// How to close a connection, unless the client has already begun to close it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct CloseMessage {
    pub(super) code: CloseCode,
    pub(super) reason: &'static str,
}

impl CloseMessage {
    /// The conversation is finished.
    pub(super) const DONE: Self = Self {
        code: CloseCode::NORMAL,
        reason: "",
    };
    const SHUTDOWN: Self = Self {
        code: CloseCode::GOING_AWAY,
        reason: "server shutting down",
    };
}

/// `/echo`: echoes each message.
#[derive(Debug)]
pub(super) struct Echo;

impl Endpoint for Echo {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<CloseMessage> {
        while let Some(message) = receiver.recv().await? {
            sender.send(message).await?;
        }
        Ok(CloseMessage::DONE)
    }
}

/// Responds to the upgrade request and runs `endpoint` on the connection.
///
/// `guard` counts the connection as open until both sides have closed it.
pub(super) fn attend(
    upgrade: WebSocketUpgrade,
    guard: ConnectionGuard,
    endpoint: impl Endpoint,
) -> Response {
    upgrade.on_upgrade(|ws| async move {
        let (sender, mut receiver) = ws.split();
        let close = tokio::select! {
            biased;
            () = guard.goodbye() => CloseMessage::SHUTDOWN,
            close = endpoint.talk(&sender, &mut receiver) => close?,
        };
        sender.close(close.code, close.reason).await?;
        Ok(())
    })
}
