//! The server: routes and options, then one thread for each core.

use std::{fmt, io, net::SocketAddr, sync::Arc};

use linerate_proto::handshake::{BuildError, HttpResponse, Request};

use crate::{
    driver::socket,
    handler::Handler,
    options::Options,
    platform::Socket,
    reactor::Reactor,
    remote::Remote,
    tls,
    topics::options::{TopicOptions, TopicRules},
    workers::{self, Routing},
};

/// A server: its routes and options. The defaults are safe.
pub struct Server {
    workers: usize,
    options: Options,
    tls: Option<Arc<tls::ServerConfig>>,
    topic_rules: TopicRules,
    routing: Routing,
}

impl Server {
    /// Creates a server without routes.
    pub fn new() -> Self {
        Self {
            workers: workers::workers_default(),
            options: Options::default(),
            tls: None,
            topic_rules: TopicRules::default(),
            routing: Routing::default(),
        }
    }

    /// Sets the number of worker threads, 1 to 1,024. Default: one for each core.
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers::clamp_workers(workers);
        self
    }

    /// Sets the options of the server.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the options of the topic `name` or, if `name` ends in `*`, of all topics that start
    /// with the part before the `*`. Exact names take precedence over prefixes, longer prefixes
    /// over shorter ones, and [`Options::topic`] applies where nothing matches.
    ///
    /// ```
    /// use linerate_reactor::{Overflow, Server, TopicOptions};
    ///
    /// // A client that is too slow for prices gets the newest; one that misses a trade must know.
    /// let server = Server::new()
    ///     .with_topic("prices/*", TopicOptions::default().with_overflow(Overflow::DropOldest))
    ///     .with_topic("trades", TopicOptions::default().with_overflow(Overflow::Close));
    /// # _ = server;
    /// ```
    pub fn with_topic(mut self, name: &str, options: TopicOptions) -> Self {
        self.topic_rules.set(name, options);
        self
    }

    /// Serves `wss://` only.
    ///
    /// The reactor turns off early data in `config` and allows no application protocol except
    /// HTTP/1.1. To change certificates while the server runs, use a certificate resolver in
    /// `config`.
    #[cfg(feature = "rustls")]
    pub fn with_tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(tls::prepare_server(&config));
        self
    }

    /// Serves `path` with `handler`; the query of the request is ignored. A later route replaces an
    /// earlier one for the same path.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn with_route<H: Handler>(mut self, path: &str, handler: H) -> Self {
        let route = self.routing.add(handler);
        self.routing.by_path.insert(path.to_owned(), route);
        self
    }

    /// Serves all paths that have no route of their own with `handler`. Without a fallback,
    /// requests for such paths are refused with 404.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn with_fallback<H: Handler>(mut self, handler: H) -> Self {
        self.routing.fallback = Some(self.routing.add(handler));
        self
    }

    /// Answers plain HTTP requests for `path` with `answer`, for example health checks. The query
    /// is ignored. A later call replaces an earlier one for the same path. Requests for a WebSocket
    /// still belong to the [route](Self::with_route) of the path or to the fallback.
    ///
    /// `answer` is called for GET and HEAD on the thread of a worker, which has its own clone, and
    /// must not block. Requests with a body are refused with 413, and other methods with 405. The
    /// connection ends with the response, and the client must read it within
    /// [`HandshakeLimits::time_max`](crate::handshake::HandshakeLimits). An error that `answer`
    /// returns is sent with status 500.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
    ///
    /// use linerate_reactor::{Server, handshake::HttpResponse};
    ///
    /// let is_ready = Arc::new(AtomicBool::new(false));
    /// let server = Server::new()
    ///     .with_http("/live", |_| Ok(HttpResponse::text("ok\n")))
    ///     .with_http("/ready", move |_| match is_ready.load(Ordering::Relaxed) {
    ///         true => Ok(HttpResponse::text("ready\n")),
    ///         false => HttpResponse::text("starting\n").with_status(503),
    ///     });
    /// # _ = server;
    /// ```
    pub fn with_http<F>(mut self, path: &str, answer: F) -> Self
    where
        F: FnMut(&Request) -> Result<HttpResponse, BuildError> + Clone + Send + 'static,
    {
        self.routing.set_page(path, answer);
        self
    }

    /// Handles the connections opened by [`Remote::connect`] with `handler`. Connections that a
    /// callback opens with [`Context::connect`](crate::Context::connect) belong to the handler that
    /// opened them.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn with_outbound<H: Handler>(mut self, handler: H) -> Self {
        self.routing.outbound = Some(self.routing.add(handler));
        self
    }

    /// Listens on `address`; port 0 picks a free port. Connections wait until
    /// [`run`](ListeningServer::run) is called.
    ///
    /// # Errors
    /// If the address cannot be bound, or the driver is not available; see
    /// [`DriverKind::check`](crate::DriverKind::check).
    pub fn listen(self, address: SocketAddr) -> io::Result<ListeningServer> {
        let workers = self.workers;
        self.listening(|| socket::listen_on(address, workers))
    }

    /// Serves the connections of a listener that was opened elsewhere: a
    /// [`TcpListener`](std::net::TcpListener), a
    /// [`UnixListener`](std::os::unix::net::UnixListener), or a descriptor that a service manager
    /// has passed. It becomes non-blocking. A Unix domain socket in the file system is not removed
    /// at the end.
    ///
    /// All workers share the listener, and a connection goes to the worker that accepts it first.
    /// [`listen`](Self::listen) distributes connections more evenly and at less cost.
    ///
    /// ```
    /// # use linerate_reactor::{Context, Handler, Message, Opened};
    /// use std::{net::TcpListener, os::unix::net::UnixListener};
    ///
    /// use linerate_reactor::Server;
    ///
    /// # #[derive(Clone)]
    /// # struct Chat;
    /// # impl Handler for Chat {
    /// #     type Data = ();
    /// #     fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) {}
    /// #     fn message(&mut self, (): &mut (), _cx: &mut Context<'_>, _message: Message<'_>) {}
    /// # }
    /// # fn main() -> std::io::Result<()> {
    /// let listener = TcpListener::bind("127.0.0.1:0")?;
    /// let server = Server::new().with_fallback(Chat).listen_on(listener)?;
    /// # let path = std::env::temp_dir().join(format!("reactor-{}", std::process::id()));
    /// let listener = UnixListener::bind(&path)?;
    /// let local = Server::new().with_fallback(Chat).listen_on(listener)?;
    /// # std::fs::remove_file(path)?;
    /// # _ = (server, local);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the socket is not a stream socket that listens, or the driver is not available.
    pub fn listen_on(self, listener: impl Into<Socket>) -> io::Result<ListeningServer> {
        let (listener, workers) = (listener.into(), self.workers);
        self.listening(|| {
            let address = socket::local_addr(&listener);
            let unspecified = SocketAddr::from(([0; 4], 0));
            let listeners = socket::share(listener, workers)?;
            Ok((address.unwrap_or(unspecified), listeners))
        })
    }

    fn listening(
        self,
        listen: impl FnOnce() -> io::Result<(SocketAddr, Vec<Socket>)>,
    ) -> io::Result<ListeningServer> {
        let reactor = Reactor::new(
            self.options,
            self.topic_rules,
            self.workers,
            self.routing.outbound,
            self.tls,
        )?;
        let (address, listeners) = listen()?;
        Ok(ListeningServer {
            address,
            listeners,
            reactor,
            routing: self.routing,
        })
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
            .field("workers", &self.workers)
            .field("options", &self.options)
            .field("paths", &self.routing.by_path.keys())
            .finish_non_exhaustive()
    }
}

/// A server that listens and is ready to [run](Self::run).
pub struct ListeningServer {
    address: SocketAddr,
    listeners: Vec<Socket>,
    reactor: Arc<Reactor>,
    routing: Routing,
}

impl ListeningServer {
    /// Returns the address that the server listens on, including the port that was picked;
    /// `0.0.0.0:0` if it listens on a Unix domain socket, which has no such address.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns a handle that other threads can use.
    pub fn remote(&self) -> Remote {
        Remote(self.reactor.clone())
    }

    /// Serves until [`Remote::shut_down`] is called. One worker runs on this thread, the others on
    /// threads of their own.
    ///
    /// # Errors
    /// If a worker fails or panics; the other workers are then shut down.
    ///
    /// # Panics
    /// If a callback panics on this thread.
    pub fn run(self) -> io::Result<()> {
        let listeners = self.listeners.into_iter().map(Some).collect();
        workers::run(&self.reactor, &self.routing, listeners)
    }
}

impl fmt::Debug for ListeningServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListeningServer")
            .field("address", &self.address)
            .field("workers", &self.listeners.len())
            .field("options", &self.reactor.options)
            .finish_non_exhaustive()
    }
}
