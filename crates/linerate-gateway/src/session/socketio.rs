//! Sessions of Socket.IO clients: handles what only they request.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `assembly` | puts events together with their attachments |
//! | `event` | passes events to backends |
//! | `journaling` | notes what is handed to a client that may return |
//! | `namespaces` | connects clients to namespaces |
//! | `recovery` | lets clients return to their sessions |

mod assembly;
mod event;
mod journaling;
mod namespaces;
mod recovery;

use std::{sync::Arc, time::Instant};

use super::{Context, Identity, Refusal, Session, Work, work::SocketIoCompletion};
use crate::protocol::{
    codes::{ClientError, Disconnect},
    command::SocketIoRequest,
    reply::{ServerMessage, SocketIoMessage},
};
use assembly::Incomplete;
pub(super) use recovery::PortableRecovery;
use recovery::Recovery;

/// The state that only Socket.IO clients have.
#[derive(Debug, Default)]
pub(super) struct SocketIoState {
    /// The namespaces that the client is connected to.
    namespaces: Vec<String>,
    /// The request whose attachments are arriving.
    incomplete: Option<Incomplete>,
    /// What lets the client return; `None` if it cannot.
    recovery: Option<Box<Recovery>>,
}

impl SocketIoState {
    /// Continues the state of another process.
    pub(super) fn restored(
        context: &mut Context,
        namespaces: Vec<String>,
        recovery: Option<PortableRecovery>,
    ) -> Self {
        Self {
            namespaces,
            incomplete: None,
            recovery: recovery.map(|recovery| Recovery::restored(context, recovery)),
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
                let (client, returned) = match result {
                    Ok((client, returned)) => (Ok(client), returned),
                    Err(refusal) => (Err(refusal), None),
                };
                let connected = self.connected(now, client).map(|_| returned);
                self.finish_namespace(namespace, connected);
            }
            SocketIoCompletion::Entered(namespace, result) => {
                let entered = result.map(|(standings, returned)| {
                    for (channel, standing) in standings {
                        self.subscribed(&channel, standing, true);
                    }
                    returned
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
