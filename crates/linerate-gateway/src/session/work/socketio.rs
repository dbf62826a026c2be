//! Asynchronous operations of the sessions of Socket.IO clients.

mod returning;

use std::sync::Arc;

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientId};

use super::{ActiveSubscription, ConnectedClient, Context, Wanted};
use crate::{
    auth::SubscriptionClaims,
    backend::{Backend, Question},
    protocol::{
        codes::ClientError,
        command::{Connect, Subscribe},
        private_id::PrivateId,
        socketio::namespace,
    },
    session::{Identity, Refusal},
};

pub(in crate::session) use returning::Returning;

/// Active subscriptions to rooms.
type Rooms = Vec<(ChannelName, ActiveSubscription)>;

/// The result of an operation. A client that has returned to its session has its private ID.
#[derive(Debug)]
pub(crate) enum SocketIoCompletion {
    /// The client has connected to its first namespace.
    Connected(
        String,
        Result<(ConnectedClient, Option<PrivateId>), Refusal>,
    ),
    /// The client has connected to a further namespace, and is in these rooms of it.
    Entered(String, Result<(Rooms, Option<PrivateId>), Refusal>),
    /// A backend has handled an event, and answers with this.
    Handled(OpenEvent, Result<Bytes, Refusal>),
}

/// An event that a backend handles.
#[derive(Debug)]
pub(crate) struct OpenEvent {
    pub(in crate::session) namespace: String,
    pub(in crate::session) name: String,
    /// The ID of its acknowledgement, if it is to be acknowledged.
    pub(in crate::session) id: Option<u64>,
}

impl Context {
    /// Returns the subscriptions that a client begins with, if its protocol has such. In a
    /// namespace of Socket.IO, these are the rooms of the namespace among those granted to the
    /// client, those of all clients, the room of its own ID, and with `socketio.redis` the channel
    /// of the namespace.
    pub(super) fn of_namespace(
        &self,
        connect: &Connect,
        granted: impl IntoIterator<Item = (ChannelName, SubscriptionClaims)>,
    ) -> Vec<(ChannelName, SubscriptionClaims)> {
        if !self.gate.dialect.has_server_subscriptions() {
            return Vec::new();
        }
        let mut granted: Vec<_> = granted.into_iter().collect();
        let Some(namespace) = connect.namespace.as_deref() else {
            return granted;
        };
        let is_inside = |channel: &ChannelName| namespace::split(channel.as_str()).0 == namespace;
        granted.retain(|(channel, _)| is_inside(channel));
        let settings = self.gate.shared.settings();
        let own = namespace::qualified(namespace, &self.connection.who.client);
        let rooms = settings.config.socketio.rooms.iter().map(String::as_str);
        // Events from Redis can be for all clients of a namespace.
        let is_fed = settings.config.socketio.redis.url.is_some();
        let everyone = is_fed.then(|| namespace::everyone(namespace));
        let rooms = rooms.chain([&*own]).chain(everyone.as_deref());
        let rooms = rooms.map(ChannelName::new);
        for room in rooms.flatten().filter(is_inside) {
            if granted.iter().all(|(channel, _)| *channel != room) {
                granted.push((room, SubscriptionClaims::default()));
            }
        }
        granted
    }

    /// Connects a client to a further namespace, and makes its subscriptions there.
    pub(in crate::session) async fn enter(
        &self,
        (identity, id): (&Identity, ClientId),
        connect: &Connect,
        returning: Option<Returning>,
        channels_left: usize,
    ) -> Result<(Rooms, Option<PrivateId>), Refusal> {
        let admitted = self.visitor().authenticate(connect).await?;
        let claims = admitted.map(|admitted| admitted.claims);
        let user = claims.as_ref().map_or("", |claims| &claims.user);
        if user != identity.user() {
            let message = "permission denied: connection has another user";
            return Err(ClientError::PERMISSION_DENIED
                .with_message(message.to_owned())
                .into());
        }
        let granted = claims.into_iter().flat_map(|claims| claims.subscriptions);
        let granted = self.of_namespace(connect, granted);
        if granted.len() > channels_left {
            let message = format!(
                "limit exceeded: namespace has {} rooms; the client can be in {channels_left} more",
                granted.len()
            );
            return Err(ClientError::LIMIT_EXCEEDED.with_message(message).into());
        }
        if let Some(returning) = returning {
            let namespace = connect.namespace.as_deref().unwrap_or_default();
            let who = (identity, id);
            let place = (namespace, &*granted);
            let returned = self.return_to_namespace(who, place, &returning, channels_left);
            if let Some(rooms) = returned.await? {
                return Ok((rooms, Some(returning.pid)));
            }
        }
        let channels: Vec<_> = granted.iter().map(|(channel, _)| channel.clone()).collect();
        let granted = granted.into_iter();
        let wanted = granted.map(|(channel, claims)| (channel, Subscribe::default(), Some(claims)));
        let entered = self.subscribe_all(identity, id, wanted).await;
        if entered.is_err() {
            self.leave_all(id, &channels);
        }
        entered.map(|rooms| (rooms, None))
    }

    /// Ends the subscriptions of a client that stays connected, of which some may be active.
    fn leave_all(&self, id: ClientId, channels: &[ChannelName]) {
        for channel in channels {
            self.gate.worker.unsubscribe(id, channel);
        }
    }

    /// Passes an event to the application.
    pub(in crate::session) async fn handle_event(
        self,
        backend: Arc<Backend>,
        identity: Arc<Identity>,
        (event, method, data): (OpenEvent, String, Bytes),
    ) -> SocketIoCompletion {
        let question = match event.id {
            Some(_) => Question::Rpc {
                method: &method,
                channel: None,
                data: &data,
            },
            None => Question::Send { data: &data },
        };
        let result = self.visitor().call(backend, &identity, &question).await;
        SocketIoCompletion::Handled(event, result)
    }
}
