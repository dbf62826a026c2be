//! Connects clients to namespaces.

use bytes::Bytes;
use linerate_hub::ChannelName;
use serde::Deserialize;

use super::super::{
    Completion, Refusal, Session, Stage, Work,
    work::{Returning, SocketIoCompletion},
};
use crate::protocol::{
    codes::{ClientError, Disconnect},
    command::Connect,
    private_id::PrivateId,
    reply::SocketIoMessage,
    socketio::namespace,
};

/// What a client sends to authenticate, as far as the gateway knows it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Auth {
    token: String,
}

impl Session {
    /// Starts to connect the client to a namespace, or tells it why it may not. The first time, the
    /// connection becomes that of a user.
    pub(super) fn begin_namespace(
        &mut self,
        namespace: String,
        auth: Option<Bytes>,
    ) -> Option<Work> {
        let settings = self.context.gate.shared.settings_full();
        if !settings.config.socketio.namespaces.contains(&namespace) {
            // Socket.IO's own words, which applications may look for.
            let error = ClientError::NOT_AVAILABLE.with_message("Invalid namespace".to_owned());
            self.say_socketio(SocketIoMessage::ConnectError { namespace, error });
            return None;
        }
        // `socket.connect()` sends a second packet if the answer to the first has not arrived yet.
        if self.is_in(&namespace) {
            let pid = self.known_private_id(&namespace);
            self.say_connected(namespace, pid);
            return None;
        }
        let returning = auth.as_deref().and_then(Returning::read);
        let connect = connect(namespace.clone(), auth);
        if let Stage::Connected { identity, member } = &self.stage {
            let context = self.context.clone();
            let (identity, id) = (identity.clone(), member.id());
            let channels_max = settings.config.client.channels_max;
            let channels_left = channels_max.saturating_sub(self.channels());
            return Some(Box::pin(async move {
                let entered = context.enter((&identity, id), &connect, returning, channels_left);
                let entered = SocketIoCompletion::Entered(namespace, entered.await);
                Completion::SocketIo(entered)
            }));
        }
        self.stage = Stage::Connecting;
        self.begin_recovery();
        let context = self.context.clone();
        Some(Box::pin(async move {
            let connected = context.connect_or_return(connect, returning).await;
            Completion::SocketIo(SocketIoCompletion::Connected(namespace, connected))
        }))
    }

    /// Tells the client that it is connected to a namespace, or why it is not. A client that has
    /// returned has the private ID of its session.
    pub(super) fn finish_namespace(
        &mut self,
        namespace: String,
        result: Result<Option<PrivateId>, Refusal>,
    ) {
        match result {
            Ok(returned) => {
                let state = self.protocol_state.begin_socketio();
                state.namespaces.push(namespace.clone());
                let pid = self.private_id(&namespace, returned);
                self.say_connected(namespace, pid);
            }
            Err(refusal) => {
                self.forget_namespace(&namespace);
                match lasting(refusal) {
                    Ok(error) => {
                        self.say_socketio(SocketIoMessage::ConnectError { namespace, error });
                    }
                    Err(disconnect) => self.end(disconnect),
                }
            }
        }
    }

    fn say_connected(&mut self, namespace: String, pid: Option<PrivateId>) {
        let sid = self.context.connection.who.client.to_string();
        self.say_socketio(SocketIoMessage::Connected {
            namespace,
            sid,
            pid,
        });
    }

    /// Disconnects the client from a namespace, at its request.
    pub(super) fn leave_namespace(&mut self, namespace: &str) {
        let Some(state) = self.protocol_state.socketio_mut() else {
            return;
        };
        state.namespaces.retain(|one| one != namespace);
        let is_of = |channel: &ChannelName| namespace::split(channel.as_str()).0 == namespace;
        let channels = self.subscriptions.iter().map(|(channel, _)| channel);
        let channels: Vec<ChannelName> = channels.filter(|one| is_of(one)).cloned().collect();
        for channel in channels {
            self.leave(&channel);
        }
        self.forget_namespace(namespace);
    }

    /// Disconnects the client from a namespace, at the request of the application.
    pub(in crate::session) fn remove_from_namespace(&mut self, namespace: String) {
        if self.is_in(&namespace) {
            self.leave_namespace(&namespace);
            self.say_socketio(SocketIoMessage::Disconnected { namespace });
        }
    }

    /// Disconnects the client from its namespaces if it must not reconnect on its own: clients do
    /// not look at close codes.
    pub(in crate::session) fn leave_namespaces(&mut self, disconnect: &Disconnect) {
        self.forget_unless_lost(disconnect);
        let Some(state) = self.protocol_state.socketio_mut() else {
            return;
        };
        if disconnect.is_reconnect() {
            return;
        }
        for namespace in std::mem::take(&mut state.namespaces) {
            self.say_socketio(SocketIoMessage::Disconnected { namespace });
        }
    }

    /// Returns whether the client is connected to a namespace.
    pub(super) fn is_in(&self, namespace: &str) -> bool {
        let state = self.protocol_state.socketio();
        state.is_some_and(|state| state.namespaces.iter().any(|one| one == namespace))
    }

    /// Returns whether the client can receive the publications of a channel: Socket.IO clients
    /// ignore events in namespaces that they are not connected to.
    pub(in crate::session) fn serves_namespace_of(&self, channel: &ChannelName) -> bool {
        self.protocol_state.socketio().is_none() || self.is_in(namespace::split(channel.as_str()).0)
    }
}

fn connect(namespace: String, auth: Option<Bytes>) -> Connect {
    let known = auth.as_deref().map(serde_json::from_slice::<Auth>);
    let Auth { token } = known.and_then(Result::ok).unwrap_or_default();
    Connect {
        token,
        data: auth,
        namespace: Some(namespace),
        ..Connect::default()
    }
}

/// Returns the error that a client is told, which then does not connect again on its own. For a
/// reason that passes, the connection is closed instead, so that the client reconnects.
fn lasting(refusal: Refusal) -> Result<ClientError, Disconnect> {
    match refusal {
        Refusal::Disconnect(disconnect) if disconnect.is_reconnect() => Err(disconnect),
        Refusal::Disconnect(disconnect) => Ok(ClientError {
            code: disconnect.code.into(),
            message: disconnect.reason,
            is_temporary: false,
        }),
        Refusal::Error(error) if error.is_temporary => {
            Err(Disconnect::SERVER_ERROR.with_reason(error.message.into_owned()))
        }
        Refusal::Error(error) => Ok(error),
    }
}
