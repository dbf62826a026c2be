//! Accepting connections: the accept loop, the opening handshake and graceful shutdown.

mod accept;
mod application;
mod channel;
#[cfg(feature = "http2")]
mod http2;
#[cfg(feature = "http3")]
mod http3;
mod incoming;
mod listener;
mod pending;
#[cfg(any(feature = "http2", feature = "http3"))]
mod streams;

use std::{
    fmt,
    future::Future,
    io,
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use linerate_proto::handshake::{OriginPolicy, Request};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::yield_now,
    time::Instant as Deadline,
};

use crate::{
    Options, Result, WebSocket,
    link::{Alarm, Connections, OpeningDriver},
    options::Settings,
    runtime::{Runtime, RuntimeHandle},
    transport::Transport,
};

use accept::Accepted;
use application::{AcceptAll, Application, Decide};
use channel::Channel;
pub use incoming::Incoming;
pub use listener::Listener;
use pending::Pending;

/// Serves WebSocket connections with the default settings until `shutdown` is ready.
///
/// `handler` is called for each connection with the request that opened it. When the future that it
/// returns completes, the connection is closed. After `shutdown`, the server accepts no more
/// connections and closes the open ones with code 1001. The call returns when all connections are
/// gone, at the latest one second after the timeout of the closing handshake.
///
/// # Errors
/// The listener failed permanently. If the process runs out of file descriptors, the server logs a
/// warning and keeps trying.
///
/// # Cancel safety
/// Dropping the future only stops accepting: open connections continue until their handlers
/// complete.
pub async fn serve<H, F>(
    listener: impl Listener,
    handler: H,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()>
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    Server::new().serve(listener, handler, shutdown).await
}

/// Opens a WebSocket on a stream of any type with the default settings, from the server's side, and
/// returns it with the request that opened it.
///
/// [`Server::accept`] lets the application decide about the request.
///
/// # Errors
/// Same as for [`Server::accept`].
///
/// # Cancel safety
/// Dropping the future drops the stream, or closes the connection.
pub async fn accept<S>(stream: S) -> Result<(WebSocket, Request)>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let incoming = Server::new().accept(stream).await?;
    incoming.accept_with_request().await
}

/// A WebSocket server and its configuration.
///
/// ```
/// use linerate::Server;
/// use tokio::{net::TcpListener, sync::oneshot};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let url = format!("ws://{}/attic", listener.local_addr()?);
/// let (stop, stopped) = oneshot::channel::<()>();
/// let serving = Server::new().with_connections_max(100).serve(
///     listener,
///     |mut ws, request| async move { ws.send(request.path()).await },
///     async { _ = stopped.await },
/// );
/// let serving = tokio::spawn(serving);
///
/// let mut ws = linerate::connect(&url).await?;
/// assert_eq!(ws.recv().await?, Some("/attic".into()));
///
/// drop(stop);
/// serving.await.expect("the task does not panic")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Server {
    settings: Settings,
    origins: Arc<OriginPolicy>,
    connections_max: usize,
    runtime: RuntimeHandle,
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
            connections_max: 100_000,
            runtime: RuntimeHandle::default(),
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

    /// Sets which web pages may connect. Default: only those of the same origin.
    pub fn with_origins(mut self, origins: OriginPolicy) -> Self {
        self.origins = Arc::new(origins);
        self
    }

    /// Sets how many connections may be open at a time, including those in the opening handshake;
    /// further connections are refused with 503.
    ///
    /// Over HTTP/2, each WebSocket counts as one connection, and so does the HTTP/2 connection that
    /// they share. Default: 100,000.
    pub fn with_connections_max(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max;
        self
    }

    /// Starts tasks and timers on `runtime` instead of tokio; see [`runtime`](crate::runtime).
    ///
    /// The server speaks only HTTP/1.1 then. Listeners are an implementation of [`Listener`] for
    /// those of the runtime; the example `smol_echo` has one.
    pub fn with_runtime(mut self, runtime: impl Runtime) -> Self {
        self.runtime = RuntimeHandle::new(runtime);
        self
    }

    /// Disables HTTP/2, so that the server speaks only HTTP/1.1. Without this, the client decides:
    /// with ALPN over TLS, or with its first bytes over plain TCP.
    #[cfg(feature = "http2")]
    pub fn without_http2(mut self) -> Self {
        self.is_http2 = false;
        self
    }

    /// Serves `wss://` with this TLS configuration. If `config` has no ALPN protocols, the server
    /// adds those that it speaks.
    ///
    /// If you build `config` yourself instead of with [`tls`](crate::tls), we recommend
    /// [`tls::provider`](crate::tls::provider()) as its crypto provider.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Serves until `shutdown` is ready; see [`serve`].
    ///
    /// # Errors
    /// The listener failed permanently.
    ///
    /// # Cancel safety
    /// Same as for [`serve`].
    pub async fn serve<H, F>(
        self,
        listener: impl Listener,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.run(listener, AcceptAll(handler), shutdown).await
    }

    /// Serves until `shutdown` is ready, and lets `handler` decide about each request: it may wait
    /// for a session store or a database, [accept](Incoming::accept) or
    /// [refuse](Incoming::refuse) the request, and then continue with the connection.
    ///
    /// `handler` is called for requests that are well-formed and come from an allowed origin. When
    /// the future that it returns completes, the connection is closed. If the client disconnects
    /// before there is an answer, the future is dropped. The same happens if the decision takes
    /// longer than [`handshake_timeout`](Options::handshake_timeout) or the server shuts down; the
    /// client is then refused with 503.
    ///
    /// ```
    /// use linerate::{Incoming, Result, Server, handshake::Refusal};
    /// # async fn find(session: &str) -> Option<String> { (session == "7f3a").then(|| "ann".into()) }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<()> {
    /// async fn chat(incoming: Incoming) -> Result<()> {
    ///     let session = incoming.request().header("X-Session").unwrap_or_default();
    ///     let Some(user) = find(&String::from_utf8_lossy(session)).await else {
    ///         return incoming.refuse(Refusal::new(401, "log in first")?).await;
    ///     };
    ///     let mut ws = incoming.with_subprotocols(&["chat.v1"]).accept().await?;
    ///     ws.send(format!("hello {user}")).await
    /// }
    ///
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// let url = format!("ws://{}/", listener.local_addr()?);
    /// tokio::spawn(Server::new().serve_incoming(listener, chat, std::future::pending()));
    ///
    /// assert!(linerate::connect(&url).await.is_err());
    /// let client = linerate::Client::new().with_header("X-Session", "7f3a");
    /// assert_eq!(client.connect(&url).await?.recv().await?, Some("hello ann".into()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The listener failed permanently.
    ///
    /// # Cancel safety
    /// Same as for [`serve`].
    pub async fn serve_incoming<H, F>(
        self,
        listener: impl Listener,
        handler: H,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()>
    where
        H: Fn(Incoming) -> F + Send + Sync + 'static,
        F: Future<Output = Result<()>> + Send + 'static,
    {
        self.run(listener, Decide(handler), shutdown).await
    }

    /// Reads the request of a client from a stream of any type, for applications that accept
    /// connections themselves. A task in the background answers the client and drives the
    /// connection.
    ///
    /// The server's settings apply, except for the maximum number of connections. There is only
    /// HTTP/1.1 on the stream. If the server has a [TLS configuration](Self::with_tls), the stream
    /// carries TLS; do not offer HTTP/2 by ALPN then.
    ///
    /// ```
    /// use linerate::{Client, Server};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> linerate::Result<()> {
    /// let (ours, theirs) = tokio::io::duplex(4096);
    /// let serving = tokio::spawn(async move {
    ///     let incoming = Server::new().accept(theirs).await?;
    ///     assert_eq!(incoming.request().path(), "/chat");
    ///     incoming.accept().await?.send("hello").await
    /// });
    /// let mut ws = Client::new().connect_over(ours, "ws://localhost/chat").await?;
    /// assert_eq!(ws.recv().await?, Some("hello".into()));
    /// # serving.await.expect("the task does not panic")
    /// # }
    /// ```
    ///
    /// # Errors
    /// The client's request is not a valid request for a WebSocket or comes from an origin that is
    /// not allowed, in which case it was refused; or the client is gone or takes too long.
    ///
    /// # Cancel safety
    /// Dropping the future drops the stream.
    pub async fn accept<S>(&self, stream: S) -> Result<Incoming>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let deadline = Deadline::now() + self.settings.options.handshake_timeout;
        let io = Transport::new(stream);
        let (request, http1, scheme) = accept::accept_http1(self, io, deadline).await?;
        let pending = Pending {
            server: Arc::new(self.clone()),
            channel: Channel::Http1(http1),
            scheme,
            alarm: Alarm::own(&self.runtime),
            deadline,
        };
        if let Err(error) = pending.check(&request) {
            pending.refuse(&request, error.into()).await;
            return Err(error.into());
        }
        let (incoming, answer) = Incoming::new(request, pending);
        self.runtime.spawn(OpeningDriver::without_handler(answer));
        Ok(incoming)
    }

    async fn run<A: Application>(
        self,
        mut listener: impl Listener,
        application: A,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let connections = Connections::new(self.connections_max, &self.runtime);
        let close_timeout = self.settings.config.close_timeout;
        let server = Arc::new(self.with_alpn());
        let application = Arc::new(application);
        let mut shutdown = pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok(stream) => {
                        let (server, application) = (server.clone(), application.clone());
                        server.start(Transport::new(stream), application, &connections);
                        // Handshakes of many clients that connect at once must not be one long
                        // turn.
                        yield_now().await;
                    }
                    Err(error) => wait_after(error, &server.runtime).await?,
                },
            }
        }
        drop(listener);
        connections
            .close_all(close_timeout + Duration::from_secs(1))
            .await;
        Ok(())
    }

    /// Starts a task for an accepted connection.
    fn start<A: Application>(
        self: Arc<Self>,
        io: Transport,
        application: Arc<A>,
        connections: &Connections,
    ) {
        let Some(slot) = connections.take_slot() else {
            tracing::debug!(
                connections_max = self.connections_max,
                "connection refused with 503"
            );
            let refused = accept::refuse_overload(io, self.runtime.clone());
            self.runtime.spawn(refused);
            return;
        };
        #[cfg(feature = "http2")]
        let connections = connections.clone();
        let runtime = self.runtime.clone();
        runtime.spawn(async move {
            let deadline = Deadline::now() + self.settings.options.handshake_timeout;
            match accept::accept(&self, io, deadline).await {
                Ok(Accepted::Http1(request, http1, scheme)) => {
                    let pending = Pending {
                        server: self,
                        channel: Channel::Http1(http1),
                        scheme,
                        alarm: Alarm::Shared(slot),
                        deadline,
                    };
                    application.attend(request, pending).await;
                }
                #[cfg(feature = "http2")]
                Ok(Accepted::Http2(io, scheme)) => {
                    let streams = streams::Streams {
                        server: self,
                        scheme,
                        application,
                        connections,
                    };
                    // This runs in its own task, so that the memory of the handshake is freed.
                    tokio::spawn(streams.serve_http2(io, slot));
                }
                Err(error) => tracing::debug!(%error, "opening handshake failed"),
            }
        });
    }

    /// Returns whether clients may speak HTTP/2, whose connections need tokio.
    #[cfg(feature = "http2")]
    fn speaks_http2(&self) -> bool {
        self.is_http2 && self.runtime.is_tokio()
    }

    /// Offers HTTP/2 and HTTP/1.1 by ALPN, unless the application has configured ALPN itself.
    fn with_alpn(self) -> Self {
        #[cfg(all(feature = "http2", feature = "rustls"))]
        if let Some(config) = &self.tls
            && config.alpn_protocols.is_empty()
            && self.speaks_http2()
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

/// When a server of this process last logged that it cannot accept connections.
static LAST_WARNING: Mutex<Option<Instant>> = Mutex::new(None);

/// Returns `true` at most once every ten seconds. A shortage of file descriptors can last, and
/// clients that cause one must not be able to fill the log.
fn may_warn(last: &Mutex<Option<Instant>>, now: Instant) -> bool {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let is_recent = last.is_some_and(|last| now.duration_since(last) < Duration::from_secs(10));
    if !is_recent {
        *last = Some(now);
    }
    !is_recent
}

/// Waits after a failed `accept` if the cause may be temporary, such as a shortage of file
/// descriptors; returns permanent errors.
async fn wait_after(error: io::Error, runtime: &RuntimeHandle) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::NotConnected => Err(error),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset => Ok(()),
        _ => {
            if may_warn(&LAST_WARNING, Instant::now()) {
                tracing::warn!(%error, "cannot accept connections");
            }
            runtime.sleep(Duration::from_millis(100)).await;
            Ok(())
        }
    }
}
