//! Accepting connections: the listener's loop, the opening handshake, graceful shutdown.

mod accept;
mod connections;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http3")]
mod http3;

use std::{
    fmt,
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use linerate_proto::handshake::{Acceptance, OriginPolicy, Refusal, Request, Upgrade};
use tokio::net::{TcpListener, TcpStream};

use crate::{
    Error, Options, Result, WebSocket,
    link::{Alarm, Driver, Link},
    options::Settings,
};

use accept::Accepted;
use connections::Connections;
pub(crate) use connections::Slot;

/// Serves WebSocket connections with the default settings until `shutdown` is ready.
///
/// `handler` is called for each connection with the request that opened it; when the future it
/// returns is done, the connection is closed. After `shutdown` no connection is accepted, the open
/// ones are closed with 1001, and the call returns when they are gone, at the latest after the
/// budget of the closing handshake.
///
/// # Errors
/// The listener failed for good. A shortage of file descriptors is waited out.
///
/// # Cancel safety
/// Dropping the future ends the accepting, and nothing else: connections that are open go on until their handlers
/// are done.
pub async fn serve<H, F>(
    listener: TcpListener,
    handler: H,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Server::new().serve(listener, handler, shutdown).await
}

/// Decides about a request to open a WebSocket.
type Decide =
    dyn for<'u> Fn(&'u Upgrade<'_>) -> std::result::Result<Acceptance<'u>, Refusal> + Send + Sync;

/// A server, to be configured.
#[derive(Clone)]
pub struct Server {
    settings: Settings,
    origins: Arc<OriginPolicy>,
    decide: Option<Arc<Decide>>,
    connections_max: usize,
    #[cfg(feature = "http2")]
    is_http2: bool,
    #[cfg(feature = "rustls")]
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl Server {
    /// Creates a server with the default settings.
    pub fn new() -> Self {
        Self {
            settings: Settings::default(),
            origins: Arc::default(),
            decide: None,
            connections_max: 100_000,
            #[cfg(feature = "http2")]
            is_http2: true,
            #[cfg(feature = "rustls")]
            tls: None,
        }
    }

    /// Sets the options of each connection.
    pub fn with_options(mut self, options: Options) -> Self {
        self.settings = options.into();
        self
    }

    /// Sets which pages may connect; by default those of the same origin.
    pub fn with_origins(mut self, origins: OriginPolicy) -> Self {
        self.origins = Arc::new(origins);
        self
    }

    /// Sets how many connections may be open at a time, those in the opening handshake included; more
    /// are refused with 503. Over HTTP/2 each WebSocket counts, and so does the connection that they
    /// share. Default: 100,000.
    pub fn with_connections_max(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max;
        self
    }

    /// Sets the function that decides about requests that are well-formed and of an allowed origin:
    /// it may refuse them, choose a subprotocol and add headers. By default all are accepted.
    pub fn with_decision<D>(mut self, decide: D) -> Self
    where
        D: for<'u> Fn(&'u Upgrade<'_>) -> std::result::Result<Acceptance<'u>, Refusal>
            + Send
            + Sync
            + 'static,
    {
        self.decide = Some(Arc::new(decide));
        self
    }

    /// Speaks HTTP/1.1 only. Otherwise the client decides: by ALPN over TLS, by its first bytes
    /// in the clear.
    #[cfg(feature = "http2")]
    pub fn without_http2(mut self) -> Self {
        self.is_http2 = false;
        self
    }

    /// Serves `wss://`. Protocols to choose from by ALPN are added unless `config` has some. One that is
    /// not from [`tls`](crate::tls) does best with [`tls::provider`](crate::tls::provider()).
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Serves until `shutdown` is ready; see [`serve`].
    ///
    /// # Errors
    /// The listener failed for good.
    ///
    /// # Cancel safety
    /// As of [`serve`].
    pub async fn serve<H, F>(
        self,
        listener: TcpListener,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let connections = Connections::new(self.connections_max);
        let close_timeout = self.settings.config.close_timeout;
        let server = Arc::new(self.with_alpn());
        let handler = Arc::new(handler);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        let (server, handler) = (server.clone(), handler.clone());
                        server.start(stream, handler, &connections);
                    }
                    Err(error) => wait_out(error).await?,
                },
            }
        }
        drop(listener);
        connections
            .close_all(close_timeout + Duration::from_secs(1))
            .await;
        Ok(())
    }

    /// Starts a task for a connection that was accepted.
    fn start<H, F>(self: Arc<Self>, stream: TcpStream, handler: Arc<H>, connections: &Connections)
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let Some(slot) = connections.take_slot() else {
            tracing::debug!(
                connections_max = self.connections_max,
                "connection refused with 503"
            );
            tokio::spawn(accept::refuse_overload(stream));
            return;
        };
        #[cfg(feature = "http2")]
        let connections = connections.clone();
        tokio::spawn(async move {
            match accept::accept(&self, stream).await {
                Ok(Accepted::WebSocket(link, request)) => drive(link, request, slot, &*handler),
                #[cfg(feature = "http2")]
                Ok(Accepted::Http2(io, scheme)) => {
                    let connection = http2::Connection {
                        server: self,
                        scheme,
                        handler,
                        connections,
                    };
                    // A task of its own, so that the memory of the handshake is not kept.
                    tokio::spawn(connection.serve(io, slot));
                }
                Err(error) => tracing::debug!(%error, "opening handshake failed"),
            }
        });
    }

    /// Lets clients choose the protocol by ALPN, unless the application has set how.
    fn with_alpn(self) -> Self {
        #[cfg(all(feature = "http2", feature = "rustls"))]
        if let Some(config) = &self.tls
            && config.alpn_protocols.is_empty()
            && self.is_http2
        {
            let mut config = rustls::ServerConfig::clone(config);
            config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
            return Self {
                tls: Some(Arc::new(config)),
                ..self
            };
        }
        self
    }
}

/// Starts the task that runs the handler of an open connection.
fn drive<H, F>(link: Arc<Link>, request: Request, slot: Slot, handler: &H)
where
    H: Fn(WebSocket, Request) -> F,
    F: Future<Output = Result<()>> + Send + 'static,
{
    slot.enter(&link);
    let ws = WebSocket::new(link.clone());
    let alarm = Alarm::Shared(slot);
    match catch_unwind(AssertUnwindSafe(|| handler(ws, request))) {
        Ok(handler) => tokio::spawn(Driver::new(link, handler, alarm)),
        Err(_) => {
            tracing::error!("connection handler panicked");
            let failed = std::future::ready(Err(Error::Abnormal));
            tokio::spawn(Driver::new(link, failed, alarm))
        }
    };
}

impl Default for Server {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("options", &self.settings.options)
            .field("origins", &self.origins)
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}

/// When it was last said that connections can't be accepted, by whichever server of the process.
static SHORTAGE_SAID: Mutex<Option<Instant>> = Mutex::new(None);

/// Returns true at most once in ten seconds: a shortage lasts, and those who cause it must not fill the log.
fn may_say(said: &Mutex<Option<Instant>>, now: Instant) -> bool {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let is_recent = said.is_some_and(|said| now.duration_since(said) < Duration::from_secs(10));
    if !is_recent {
        *said = Some(now);
    }
    !is_recent
}

/// Waits after a failed accept if that can pass, as a shortage of file descriptors does.
async fn wait_out(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected => Err(error),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => Ok(()),
        _ => {
            if may_say(&SHORTAGE_SAID, Instant::now()) {
                tracing::warn!(%error, "cannot accept connections");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            Ok(())
        }
    }
}
