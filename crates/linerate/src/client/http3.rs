//! Opening WebSockets on HTTP/3 streams (RFC 9220).

use linerate_h3::Stream;
use linerate_http::OpenError;
use linerate_proto::handshake::{ClientHandshake, Negotiated};
use tokio::time::Instant;

use super::{Client, Outcome};
use crate::{
    Result,
    dial::{Deadline, DialError, Http3Error, Phase, Target},
    transport::Transport,
};

impl Client {
    /// Opens WebSockets only on HTTP/3 streams, without first asking whether the server supports
    /// HTTP/3. URLs must start with `wss://`, and no proxy may be configured.
    ///
    /// Each WebSocket has its own HTTP/3 connection and its own UDP socket.
    pub fn with_http3(mut self) -> Self {
        self.is_http3 = true;
        self
    }

    /// Opens the WebSocket over HTTP/3.
    pub(super) async fn connect_http3(
        &self,
        target: &Target,
        deadline: &Deadline,
    ) -> Result<Outcome> {
        let limits = &self.settings.options.http3;
        let config = linerate_h3::client_config(&self.dialer.tls_config(), limits)?;
        let connection = self.dialer.dial_quic(target, config, deadline).await?;
        let begun = Instant::now();
        let limit = self.settings.options.handshake_timeout;
        let mut handshake = self.handshake(target)?;
        let opening = self.try_open_http3(connection, target, &mut handshake);
        let opened = deadline.keep(Phase::Handshake, limit, opening).await??;
        match opened {
            Ok((negotiated, stream)) => {
                let io = Transport::Other(Box::new(stream));
                Ok(self.open(io, b"", negotiated))
            }
            Err(OpenError::Refused { status, stream }) => {
                let refusal = self.refusal_on_stream(status, handshake);
                Ok(self.read_refusal(refusal, stream, deadline, begun).await)
            }
            Err(OpenError::Handshake(error)) => Err(error.into()),
            Err(OpenError::Io(error)) => Err(error.into()),
        }
    }

    async fn try_open_http3(
        &self,
        connection: quinn::Connection,
        target: &Target,
        handshake: &mut ClientHandshake,
    ) -> Result<Result<(Negotiated, Stream), OpenError<Stream>>> {
        let options = &self.settings.options;
        let outgoing = linerate_h3::connect(connection, &options.http3).await?;
        let outgoing = outgoing.ok_or(DialError::Http3(Http3Error::WebSocketsMissing))?;
        let (authority, path) = (&target.authority, &target.path_and_query);
        let opening = outgoing.open(authority, path, handshake, options.handshake);
        Ok(opening.await)
    }
}
