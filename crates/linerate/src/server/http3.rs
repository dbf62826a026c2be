//! WebSockets on the streams of HTTP/3 connections.

use std::{future::Future, io, net::UdpSocket, pin::pin, sync::Arc, time::Duration};

use linerate_proto::{
    Role,
    handshake::{HandshakeError, Refusal, Request, Scheme},
};
use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::time::timeout;

use super::{Connections, Server, Slot, accept::decide, drive};
use crate::{
    Error, Result, WebSocket,
    http3::{self, Asked, Code, Incoming, serve_connection},
    link::{Agreed, Link, Transport},
};

/// How many connections may be in the handshake before further clients have to validate their
/// address, which costs them one round trip (RFC 9000 §8.1.2).
const UNVALIDATED_MAX: usize = 100;

/// How long sending the last packets may take at shutdown.
const LINGER: Duration = Duration::from_secs(1);

impl Server {
    /// Serves HTTP/3 (RFC 9220) until `shutdown` is ready, like [`serve`](Self::serve) for HTTP/1.1
    /// and HTTP/2.
    ///
    /// Both can run at the same time and on the same port, from clones of one server. The [maximum
    /// number of connections](Self::with_connections_max) then applies to each of them.
    ///
    /// ```no_run
    /// # async fn run(tls: linerate::tls::rustls::ServerConfig) -> std::io::Result<()> {
    /// let server = linerate::Server::new().with_tls(tls.into());
    /// let socket = std::net::UdpSocket::bind("[::]:443")?;
    /// let stop = async { _ = tokio::signal::ctrl_c().await };
    /// server.serve_http3(socket, |mut ws, _request| async move {
    ///     while let Some(message) = ws.recv().await? {
    ///         ws.send(message).await?;
    ///     }
    ///     Ok(())
    /// }, stop).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// The server has no [TLS configuration](Self::with_tls), or one without TLS 1.3, or the socket
    /// cannot be used.
    ///
    /// # Cancel safety
    /// Same as for [`serve`](crate::serve).
    pub async fn serve_http3<H, F>(
        self,
        socket: UdpSocket,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let endpoint = self.endpoint(socket)?;
        let connections = Connections::new(self.connections_max);
        let close_timeout = self.settings.config.close_timeout;
        let serving = Arc::new(Serving {
            server: Arc::new(self),
            handler: Arc::new(handler),
            connections: connections.clone(),
        });
        let mut shutdown = pin!(shutdown);
        // Each connection in the handshake holds a clone, so that the reference count tells their
        // number.
        let beginning = Arc::new(());
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => serving.start(incoming, &beginning),
                    None => break,
                },
            }
        }
        endpoint.set_server_config(None);
        connections
            .close_all(close_timeout + Duration::from_secs(1))
            .await;
        endpoint.close(Code::NO_ERROR.into(), b"");
        // Clients that have not received the close by then find out through a stateless reset.
        _ = timeout(LINGER, endpoint.wait_idle()).await;
        Ok(())
    }

    fn endpoint(&self, socket: UdpSocket) -> io::Result<Endpoint> {
        let tls = self.tls.as_ref().ok_or_else(|| {
            let missing = "HTTP/3 requires a TLS configuration";
            io::Error::new(io::ErrorKind::InvalidInput, missing)
        })?;
        let config = http3::server_config(tls, &self.settings.options.http3)?;
        let runtime = Arc::new(TokioRuntime);
        Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
    }
}

/// The data that the connections of a server share.
struct Serving<H> {
    server: Arc<Server>,
    handler: Arc<H>,
    connections: Connections,
}

impl<H, F> Serving<H>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    /// Starts a task for a connection, unless there are too many.
    fn start(self: &Arc<Self>, incoming: quinn::Incoming, beginning: &Arc<()>) {
        let is_crowded = Arc::strong_count(beginning) > UNVALIDATED_MAX;
        if is_crowded && !incoming.remote_address_validated() && incoming.may_retry() {
            if let Err(error) = incoming.retry() {
                tracing::debug!(%error, "cannot send a Retry packet to validate the client's address");
            }
            return;
        }
        let Some(slot) = self.connections.take_slot() else {
            let connections_max = self.server.connections_max;
            tracing::debug!(connections_max, "HTTP/3 connection refused");
            return incoming.refuse();
        };
        let (serving, begun) = (self.clone(), beginning.clone());
        tokio::spawn(async move {
            if let Err(error) = serving.serve(incoming, slot, begun).await {
                tracing::debug!(%error, "HTTP/3 connection failed");
            }
        });
    }

    /// Opens WebSockets until the connection ends; `_slot` is the slot of the connection itself.
    async fn serve(
        self: Arc<Self>,
        incoming: quinn::Incoming,
        _slot: Slot,
        begun: Arc<()>,
    ) -> io::Result<()> {
        let options = &self.server.settings.options;
        let connection = timeout(options.handshake_timeout, incoming)
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        drop(begun);
        let limits = Arc::new(options.http3.clone());
        let goodbye = self.connections.shutdown();
        let start = |incoming| {
            tokio::spawn(self.clone().attend(incoming));
        };
        serve_connection(
            connection,
            &limits,
            options.handshake_timeout,
            goodbye,
            start,
        )
        .await
    }

    /// Answers one request.
    async fn attend(self: Arc<Self>, mut incoming: Incoming) {
        let budget = self.server.settings.options.handshake_timeout;
        let asked = match timeout(budget, incoming.read()).await {
            Ok(Ok(asked)) => asked,
            Ok(Err(failure)) => return incoming.fail(&failure),
            Err(_) => return incoming.time_out(),
        };
        let opening = match self.judge(&asked) {
            Ok(opening) => opening,
            Err((refusal, error)) => {
                tracing::debug!(%error, "opening handshake failed");
                return incoming.refuse(&refusal).await;
            }
        };
        match incoming.accept(&opening.response, budget).await {
            Ok(stream) => {
                let io = Transport::Other(Box::new(stream));
                let settings = &self.server.settings;
                let link = Link::new(io, Role::Server, settings, b"", opening.agreed);
                drive(link, opening.request, opening.slot, &*self.handler);
            }
            Err(error) => tracing::debug!(%error, "opening handshake failed"),
        }
    }

    fn judge(&self, asked: &Asked) -> std::result::Result<Opening, (Refusal, Error)> {
        let Asked::Request(head) = asked else {
            return Err(refusal(431, "request header fields too large"));
        };
        let slot = self.connections.take_slot();
        let slot = slot.ok_or_else(|| refusal(503, "too many connections"))?;
        let limits = self.server.settings.options.handshake;
        let request = head.request(limits);
        let request = request.map_err(|error: HandshakeError| (error.into(), error.into()))?;
        let (response, agreed) = decide(&self.server, &request, Scheme::Https, |acceptance| {
            (http3::acceptance(acceptance), Agreed::from(acceptance))
        })?;
        Ok(Opening {
            request,
            response,
            slot,
            agreed,
        })
    }
}

fn refusal(status: u16, text: &str) -> (Refusal, Error) {
    let refusal = Refusal::new(status, text).expect("it is the status of a refusal");
    (refusal, Error::Refused { status })
}

/// A WebSocket that is about to be opened.
struct Opening {
    request: Request,
    /// The encoded header fields of the response.
    response: Vec<u8>,
    slot: Slot,
    agreed: Agreed,
}
