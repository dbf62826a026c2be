//! Opening WebSockets on HTTP/2 streams (RFC 8441).

use std::sync::Arc;

use linerate_proto::handshake::Scheme;

use super::{Client, Outcome};
use crate::{
    Result,
    describe::describe,
    dial::{Deadline, Phase, Target},
    transport::Transport,
};

const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// The choice of HTTP/2 or HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Http2Mode {
    /// Do not use HTTP/2.
    #[default]
    Disabled,
    /// Use HTTP/2 if the server selects it by ALPN.
    Negotiate,
    /// Use HTTP/2 without asking the server.
    PriorKnowledge,
}

impl Client {
    /// Opens WebSockets on HTTP/2 streams if the server selects HTTP/2 by ALPN and its settings
    /// allow WebSockets; otherwise, and always without TLS, over HTTP/1.1.
    pub fn with_http2(mut self) -> Self {
        self.http2 = Http2Mode::Negotiate;
        self
    }

    /// Speaks HTTP/2 without first asking whether the server supports it (RFC 9113 §3.3). If the
    /// server does not allow WebSockets on HTTP/2 streams, they are opened over HTTP/1.1.
    pub fn with_http2_prior_knowledge(mut self) -> Self {
        self.http2 = Http2Mode::PriorKnowledge;
        self
    }

    /// Opens the WebSocket over HTTP/2, or over HTTP/1.1 if the server does not allow that.
    pub(super) async fn connect_http2(
        &self,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let offered: &[&[u8]] = match self.http2 {
            Http2Mode::PriorKnowledge => &[HTTP2],
            _ => &[HTTP2, HTTP1],
        };
        let dialed = self.dialer.offering(offered).dial(target, deadline).await?;
        let is_http2 = match dialed.alpn.as_deref() {
            Some(protocol) => protocol == HTTP2,
            None => self.http2 == Http2Mode::PriorKnowledge,
        };
        if !is_http2 {
            return self.upgrade_dialed(dialed, target, deadline).await;
        }
        if let Some(outcome) = self.open_stream(dialed.io, target, deadline).await? {
            return Ok(outcome);
        }
        tracing::debug!("server does not allow WebSockets over HTTP/2; using HTTP/1.1");
        let dialed = self
            .dialer
            .offering(&[HTTP1])
            .dial(target, deadline)
            .await?;
        self.upgrade_dialed(dialed, target, deadline).await
    }

    /// Opens the WebSocket on the first stream of `io`; returns `None` if the server does not allow
    /// it.
    pub(super) async fn open_stream(
        &self,
        io: Transport,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Option<Outcome>> {
        let limit = self.settings.options.handshake_timeout;
        let opening = self.try_open_stream(io, target);
        deadline.keep(Phase::Handshake, limit, opening).await?
    }

    async fn try_open_stream(&self, io: Transport, target: &Target) -> Result<Option<Outcome>> {
        let options = &self.settings.options;
        let mut handshake = self.handshake(target)?;
        let info = Arc::new(describe(&io));
        let Some(connection) = linerate_h2::connect(io, &options.http2).await? else {
            return Ok(None);
        };
        let scheme = match target.is_secure {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let (authority, path) = (&target.authority, &target.path_and_query);
        let opened = connection
            .open(scheme, authority, path, &mut handshake)
            .await;
        let (negotiated, stream) = match opened {
            Ok(opened) => opened,
            Err(error) => return Outcome::refused(&handshake, error.into()).map(Some),
        };
        let io = Transport::http2(stream, Some(info));
        Ok(Some(self.open(io, b"", &negotiated)))
    }
}
