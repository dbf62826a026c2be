//! Requests for a WebSocket on the streams of HTTP/2 and HTTP/3 connections.

use std::sync::Arc;

use linerate_proto::handshake::{HandshakeError, Request, Scheme};
use tokio::time::Instant;

use super::{
    Server,
    application::Application,
    channel::Channel,
    pending::{Pending, unavailable},
};
use crate::link::{Alarm, Connections};

/// The data that the streams of a connection share.
pub(super) struct Streams<A> {
    pub(super) server: Arc<Server>,
    pub(super) scheme: Scheme,
    pub(super) application: Arc<A>,
    pub(super) connections: Connections,
}

impl<A: Application> Streams<A> {
    /// Answers a request. Each stream counts as a connection.
    pub(super) async fn attend(&self, request: Result<Request, HandshakeError>, channel: Channel) {
        let Some(slot) = self.connections.take_slot() else {
            tracing::debug!("request refused with 503: too many connections");
            let refusal = unavailable("too many connections");
            return channel.refuse(&refusal, &self.server.runtime).await;
        };
        let request = match request {
            Ok(request) => request,
            Err(error) => {
                tracing::debug!(%error, "opening handshake failed");
                return channel.refuse(&error.into(), &self.server.runtime).await;
            }
        };
        let pending = Pending {
            server: self.server.clone(),
            channel,
            scheme: self.scheme,
            alarm: Alarm::Shared(slot),
            deadline: Instant::now() + self.server.settings.options.handshake_timeout,
        };
        self.application.attend(request, pending).await;
    }
}
