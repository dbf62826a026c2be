//! A server: routes and options, then a thread for each core.

use std::{fmt, io, net::SocketAddr, os::fd::OwnedFd, sync::Arc};

use crate::{
    DriverKind, Handler, Options, Remote, TopicOptions,
    crew::{self, Routing},
    driver::socket,
    remote::Shared,
    tls,
    topics::options::TopicRules,
};

/// A server to be configured; see [`Server::builder`].
pub struct Builder {
    workers: usize,
    options: Options,
    tls: Option<Arc<tls::ServerConfig>>,
    topic_rules: TopicRules,
    routing: Routing,
}

impl Builder {
    /// Sets how many threads serve, 1 to 1,024. Default: one for each core.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = crew::clamp_workers(workers);
        self
    }

    /// Sets how the server behaves.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the options of the topic `name` or, if `name` ends in `*`, of all topics that begin like
    /// what is before it. A topic's own options go before those of a longer beginning, these before
    /// those of a shorter one, and last comes [`Options::topic`].
    ///
    /// ```
    /// use linerate_reactor::{Overflow, Server, TopicOptions};
    ///
    /// // Who is too slow for prices gets the newest; who misses a trade must know.
    /// let builder = Server::builder()
    ///     .topic("prices/*", TopicOptions::default().with_overflow(Overflow::DropOldest))
    ///     .topic("trades", TopicOptions::default().with_overflow(Overflow::Close));
    /// # _ = builder;
    /// ```
    pub fn topic(mut self, name: &str, options: TopicOptions) -> Self {
        self.topic_rules.set(name, options);
        self
    }

    /// Serves `wss://`, and nothing else.
    ///
    /// Of `config`, early data is not used, and no application protocol but HTTP/1.1. A server that
    /// is to get new certificates while it runs has them from the configuration's resolver.
    #[cfg(feature = "rustls")]
    pub fn tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(tls::prepare_server(&config));
        self
    }

    /// Serves `path` by `handler`; the query of a request does not count. A later route replaces an
    /// earlier one for the same path.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn route<H: Handler>(mut self, path: &str, handler: H) -> Self {
        let route = self.routing.add(handler);
        self.routing.by_path.insert(path.to_owned(), route);
        self
    }

    /// Serves all paths without a route of their own by `handler`. Without one, they are refused
    /// with 404.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn fallback<H: Handler>(mut self, handler: H) -> Self {
        self.routing.fallback = Some(self.routing.add(handler));
        self
    }

    /// Has connections that are opened by [`Remote::connect`] handled by `handler`. What a callback
    /// opens by [`Tx::connect`](crate::Tx::connect) belongs to its own handler.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn outbound<H: Handler>(mut self, handler: H) -> Self {
        self.routing.outbound = Some(self.routing.add(handler));
        self
    }

    /// Listens on `address`; port 0 picks a free one. Connections wait until
    /// [`run`](Server::run).
    ///
    /// # Errors
    /// The address can't be had, or the driver; see [`DriverKind::resolve`].
    pub fn listen(self, address: SocketAddr) -> io::Result<Server> {
        let shared = crew::share(
            self.options,
            self.topic_rules,
            self.workers,
            self.routing.outbound,
            self.tls,
        )?;
        let (address, listeners) = socket::listen_on(address, self.workers)?;
        Ok(Server {
            address,
            listeners,
            shared,
            routing: self.routing,
        })
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("options", &self.options)
            .field("paths", &self.routing.by_path.keys())
            .finish_non_exhaustive()
    }
}

/// A server that listens.
pub struct Server {
    address: SocketAddr,
    listeners: Vec<OwnedFd>,
    shared: Arc<Shared>,
    routing: Routing,
}

impl Server {
    /// Starts the configuration of a server, with safe defaults.
    pub fn builder() -> Builder {
        Builder {
            workers: crew::workers_default(),
            options: Options::default(),
            tls: None,
            topic_rules: TopicRules::default(),
            routing: Routing::default(),
        }
    }

    /// Returns the address, with the port that was picked.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the driver that the server uses, which is never [`DriverKind::Auto`].
    pub fn driver(&self) -> DriverKind {
        self.shared.options.driver
    }

    /// Returns a handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote(self.shared.clone())
    }

    /// Serves until [`Remote::shut_down`]: one worker on this thread, the others on their own.
    ///
    /// # Errors
    /// A worker failed or panicked; the others are shut down then.
    ///
    /// # Panics
    /// If a callback does, on this thread.
    pub fn run(self) -> io::Result<()> {
        let listeners = self.listeners.into_iter().map(Some).collect();
        crew::run(&self.shared, &self.routing, listeners)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("address", &self.address)
            .field("workers", &self.listeners.len())
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
