//! Sessions of Socket.IO clients: handles what only they request.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `assembly` | puts events together with their attachments |
//! | `event` | passes events to backends |
//! | `namespaces` | connects clients to namespaces |

mod assembly;
mod event;
mod namespaces;

use std::{sync::Arc, time::Instant};

use super::{Context, Identity, Refusal, Session, Work, work::SocketIoCompletion};
use crate::protocol::{
    codes::{ClientError, Disconnect},
    command::SocketIoRequest,
    reply::{ServerMessage, SocketIoMessage},
};
use assembly::Incomplete;

/// The state that only Socket.IO clients have.
#[derive(Debug, Default)]
pub(super) struct SocketIoState {
    /// The namespaces that the client is connected to.
    namespaces: Vec<String>,
    /// The request whose attachments are arriving.
    incomplete: Option<Incomplete>,
}

impl SocketIoState {
    /// Continues the state of another process.
    pub(super) const fn restored(namespaces: Vec<String>) -> Self {
        Self {
            namespaces,
            incomplete: None,
        }
    }

    /// Returns the namespaces that the client is connected to.
    pub(super) fn namespaces(&self) -> &[String] {
        &self.namespaces
    }
}

impl Session {
    /// Starts a request of a client that is not connected yet.
    ///
    /// # Errors
    /// The first request of a client connects it to a namespace.
    pub(super) fn begin_first_socketio(
        &mut self,
        request: SocketIoRequest,
    ) -> Result<Option<Work>, Refusal> {
        match request {
            SocketIoRequest::Connect { namespace, auth } => {
                Ok(self.begin_namespace(namespace, auth))
            }
            _ => Err(refused("client is not connected to a namespace")),
        }
    }

    /// Starts a request of a connected client. Returns the operation that completes it, if any.
    pub(super) fn begin_socketio(
        &mut self,
        context: Context,
        identity: Arc<Identity>,
        request: SocketIoRequest,
    ) -> Result<Option<Work>, Refusal> {
        match request {
            SocketIoRequest::Connect { namespace, auth } => {
                Ok(self.begin_namespace(namespace, auth))
            }
            SocketIoRequest::Disconnect { namespace } => {
                self.leave_namespace(&namespace);
                Ok(None)
            }
            SocketIoRequest::Event(event) => self.begin_event(context, identity, event),
            // The server does not ask for acknowledgements. Attachments and the end of the
            // connection are handled on arrival.
            SocketIoRequest::Ack { .. }
            | SocketIoRequest::Attachment(_)
            | SocketIoRequest::Close => Ok(None),
        }
    }

    /// Completes a request.
    pub(super) fn finish_socketio(&mut self, now: Instant, completion: SocketIoCompletion) {
        match completion {
            SocketIoCompletion::Connected(namespace, result) => {
                let connected = self.connected(now, result).map(drop);
                self.finish_namespace(namespace, connected);
            }
            SocketIoCompletion::Entered(namespace, result) => {
                let entered = result.map(|standings| {
                    for (channel, standing) in standings {
                        self.subscribed(&channel, standing, true);
                    }
                });
                self.finish_namespace(namespace, entered);
            }
            SocketIoCompletion::Handled(event, result) => self.finish_event(event, result),
        }
    }

    /// Refuses a request that exceeds the rate limit. Only events can be left out.
    pub(super) fn refuse_excess_socketio(&mut self, request: &SocketIoRequest) {
        match request {
            SocketIoRequest::Event(event) => self.say_socketio(SocketIoMessage::Error {
                namespace: event.namespace.clone(),
                event: event.name.clone(),
                error: ClientError::TOO_MANY_REQUESTS,
            }),
            _ => self.end(Disconnect::TOO_MANY_REQUESTS),
        }
    }

    fn say_socketio(&mut self, message: SocketIoMessage) {
        self.activity.say(ServerMessage::SocketIo(message));
    }
}

fn refused(reason: &str) -> Refusal {
    Refusal::Disconnect(Disconnect::BAD_REQUEST.with_reason(reason.to_owned()))
}
