//! Opening WebSockets on HTTP/2 streams (RFC 8441).

use std::sync::Arc;

use linerate_h2::Stream;
use linerate_http::OpenError;
use linerate_proto::handshake::{ClientHandshake, Negotiated, Scheme};
use tokio::time::Instant;

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
        let begun = Instant::now();
        let limit = self.settings.options.handshake_timeout;
        let mut handshake = self.handshake(target)?;
        let info = Arc::new(describe(&io));
        let opening = self.try_open_stream(io, target, &mut handshake);
        let opened = deadline.keep(Phase::Handshake, limit, opening).await?;
        let Some(opened) = opened.transpose() else {
            return Ok(None);
        };
        let outcome = match opened {
            Ok((negotiated, stream)) => {
                let io = Transport::http2(stream, Some(info));
                self.open(io, b"", negotiated)
            }
            Err(OpenError::Refused { status, stream }) => {
                let refusal = self.refusal_on_stream(status, handshake);
                self.read_refusal(refusal, stream, deadline, begun).await
            }
            Err(OpenError::Handshake(error)) => return Err(error.into()),
            Err(OpenError::Io(error)) => return Err(error.into()),
        };
        Ok(Some(outcome))
    }

    async fn try_open_stream(
        &self,
        io: Transport,
        target: &Target,
        handshake: &mut ClientHandshake,
    ) -> Result<Option<(Negotiated, Stream)>, OpenError<Stream>> {
        let options = &self.settings.options;
        let Some(connection) = linerate_h2::connect(io, &options.http2).await? else {
            return Ok(None);
        };
        let scheme = match target.is_secure {
            true => Scheme::Https,
            false => Scheme::Http,
        };
        let (authority, path) = (&target.authority, &target.path_and_query);
        let opening = connection.open(scheme, authority, path, handshake);
        opening.await.map(Some)
    }
}
