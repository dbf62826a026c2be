//! Passes the events of clients to backends.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    super::{Completion, Context, Identity, Refusal, Session, Work, work::OpenEvent},
    refused,
};
use crate::protocol::{
    codes::ClientError,
    command::SocketIoEvent,
    reply::SocketIoMessage,
    socketio::{describe, namespace},
};

impl Session {
    /// Starts to handle an event: one that is to be acknowledged is a call of the method with its
    /// name, and any other is a message to the application.
    ///
    /// # Errors
    /// The client is not connected to the namespace.
    pub(super) fn begin_event(
        &mut self,
        context: Context,
        identity: Arc<Identity>,
        event: SocketIoEvent,
    ) -> Result<Option<Work>, Refusal> {
        if !self.is_in(&event.namespace) {
            return Err(refused("event in a namespace that is not connected"));
        }
        let settings = context.gate.shared.settings_full();
        let method = namespace::qualified(&event.namespace, &event.name).into_owned();
        let (backend, data, missing) = match event.id {
            Some(id) => {
                if let Some(reply) = settings.config.socketio.replies.get(&method) {
                    self.say_socketio(SocketIoMessage::Ack {
                        namespace: event.namespace,
                        id,
                        data: Bytes::copy_from_slice(reply.as_bytes()),
                    });
                    return Ok(None);
                }
                let options = settings.namespaces.options_of_method(&method);
                let backend = settings.backends.find(&options.rpc_backend);
                (backend, event.arguments, ClientError::METHOD_NOT_FOUND)
            }
            None => {
                let backend = &settings.config.client.send_backend;
                let backend = settings.backends.find(backend);
                (backend, describe(&event), ClientError::NOT_AVAILABLE)
            }
        };
        let open = OpenEvent {
            namespace: event.namespace,
            name: event.name,
            id: event.id,
        };
        let Some(backend) = backend else {
            self.fail_event(open, missing);
            return Ok(None);
        };
        Ok(Some(Box::pin(async move {
            let handled = context.handle_event(backend, identity, (open, method, data));
            Completion::SocketIo(handled.await)
        })))
    }

    /// Acknowledges an event, or tells the client why it failed.
    pub(super) fn finish_event(&mut self, event: OpenEvent, result: Result<Bytes, Refusal>) {
        match (result, event.id) {
            (Ok(data), Some(id)) => self.say_socketio(SocketIoMessage::Ack {
                namespace: event.namespace,
                id,
                data,
            }),
            (Ok(_), None) => {}
            (Err(Refusal::Disconnect(disconnect)), _) => self.end(disconnect),
            // A client that repeats events must not take this for an acknowledgement.
            (Err(Refusal::Error(error)), Some(id)) if !error.is_temporary => {
                self.say_socketio(SocketIoMessage::AckError {
                    namespace: event.namespace,
                    id,
                    error,
                });
            }
            (Err(Refusal::Error(error)), _) => self.fail_event(event, error),
        }
    }

    fn fail_event(&mut self, event: OpenEvent, error: ClientError) {
        self.say_socketio(SocketIoMessage::Error {
            namespace: event.namespace,
            event: event.name,
            error,
        });
    }
}
