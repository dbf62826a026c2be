//! Asynchronous operations of the sessions of Phoenix clients.

use std::sync::Arc;

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo};

use super::{Candidate, Context, of_broker};
use crate::{
    backend::{Backend, Question},
    protocol::{codes::ClientError, command::PhoenixPlace},
    session::{Identity, Refusal},
};

/// The result of an operation.
#[derive(Debug)]
pub(crate) enum PhoenixCompletion {
    /// An event has been handled, and is answered with this.
    Handled(PhoenixPlace, Result<Bytes, Refusal>),
    /// A client can join a topic.
    Joined(PhoenixPlace, ChannelName, Result<Box<Candidate>, Refusal>),
    /// These clients are in a topic.
    Present(ChannelName, Result<Vec<ClientInfo>, ClientError>),
}

impl Context {
    /// Passes an event to the application, and returns its answer.
    pub(in crate::session) async fn handle_push(
        &self,
        backend: Arc<Backend>,
        identity: &Identity,
        channel: &ChannelName,
        (event, payload): (&str, &Bytes),
    ) -> Result<Bytes, Refusal> {
        let question = Question::Rpc {
            method: event,
            channel: Some(channel),
            data: payload,
        };
        self.visitor().call(backend, identity, &question).await
    }

    /// Returns the clients in a channel.
    pub(in crate::session) async fn clients_in(
        &self,
        channel: &ChannelName,
    ) -> Result<Vec<ClientInfo>, ClientError> {
        let clients = self.gate.worker.node().all_nodes.presence(channel).await;
        clients.map_err(of_broker)
    }
}
