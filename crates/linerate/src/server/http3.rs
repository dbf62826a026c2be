//! WebSockets on the streams of HTTP/3 connections.

use std::{future::Future, io, net::UdpSocket, pin::pin, sync::Arc, time::Duration};

use linerate_h3::{Code, serve_connection, server_config};
use linerate_proto::handshake::{Request, Scheme};
use quinn::{Endpoint, EndpointConfig, TokioRuntime};
use tokio::time::timeout;

use super::{
    Incoming, Server,
    application::{AcceptAll, Application, Decide},
    channel::Channel,
    streams::Streams,
};
use crate::{
    Result, WebSocket,
    link::{Connections, Slot},
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
        self.run_http3(socket, AcceptAll(handler), shutdown).await
    }

    /// Serves HTTP/3 like [`serve_http3`](Self::serve_http3), but lets `handler` decide about each
    /// request, like [`serve_incoming`](Self::serve_incoming).
    ///
    /// # Errors
    /// Same as for [`serve_http3`](Self::serve_http3), which also describes the cancel safety.
    pub async fn serve_incoming_http3<H, F>(
        self,
        socket: UdpSocket,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.run_http3(socket, Decide(handler), shutdown).await
    }

    async fn run_http3<A: Application>(
        self,
        socket: UdpSocket,
        application: A,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let endpoint = self.endpoint(socket)?;
        let connections = Connections::new(self.connections_max, &self.runtime);
        let close_timeout = self.settings.config.close_timeout;
        let streams = Arc::new(Streams {
            server: Arc::new(self),
            scheme: Scheme::Https,
            application: Arc::new(application),
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
                    Some(incoming) => streams.begin(incoming, &beginning),
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
        if !self.runtime.is_tokio() {
            let needs = "HTTP/3 runs only on tokio; remove `with_runtime`";
            return Err(io::Error::new(io::ErrorKind::Unsupported, needs));
        }
        let tls = self.tls.as_ref().ok_or_else(|| {
            let missing = "HTTP/3 requires a TLS configuration";
            io::Error::new(io::ErrorKind::InvalidInput, missing)
        })?;
        let config = server_config(tls, &self.settings.options.http3)?;
        let runtime = Arc::new(TokioRuntime);
        Endpoint::new(EndpointConfig::default(), Some(config), socket, runtime)
    }
}

impl<A: Application> Streams<A> {
    /// Starts a task for a connection, unless there are too many.
    fn begin(self: &Arc<Self>, incoming: quinn::Incoming, beginning: &Arc<()>) {
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
        let (streams, begun) = (self.clone(), beginning.clone());
        tokio::spawn(async move {
            if let Err(error) = streams.serve_http3(incoming, slot, begun).await {
                tracing::debug!(%error, "HTTP/3 connection failed");
            }
        });
    }

    /// Opens WebSockets until the connection ends; `_slot` is the slot of the connection itself.
    async fn serve_http3(
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
        let goodbye = self.connections.shutdown();
        let start = |incoming| {
            let answered = self.clone().read(incoming);
            tokio::spawn(async move {
                if let Err(error) = answered.await {
                    tracing::debug!(%error, "opening handshake failed");
                }
            });
        };
        serve_connection(
            connection,
            &options.http3,
            options.handshake_timeout,
            goodbye,
            start,
        )
        .await
    }

    /// Reads one request and answers it.
    async fn read(self: Arc<Self>, incoming: linerate_h3::Incoming) -> io::Result<()> {
        let options = &self.server.settings.options;
        let budget = options.handshake_timeout;
        let (request, incoming) = incoming.read(budget, options.handshake).await?;
        self.attend(request, Channel::Http3(incoming)).await;
        Ok(())
    }
}
