//! A server: routes and options, then a thread for each core.

use std::{collections::HashMap, fmt, io, net::SocketAddr, os::fd::OwnedFd, sync::Arc, thread};

use crate::{
    DriverKind, Handler, Options, Remote, TopicOptions,
    counters::Counters,
    mailbox::Mailbox,
    remote::Shared,
    route::{Route, Serve},
    socket,
    topic_options::TopicRules,
    worker::{Routes, Worker},
};

/// The most worker threads that a server can have.
const WORKERS_MAX: usize = 1_024;

/// Makes a route on the thread of the worker that it is for, since the data of its connections need
/// not be `Send`.
type MakeRoute = Box<dyn FnOnce() -> Box<dyn Serve> + Send>;

/// Makes such a function for one more worker.
type CloneRoute = Box<dyn Fn() -> MakeRoute + Send>;

/// A server to be configured; see [`Server::builder`].
pub struct Builder {
    workers: usize,
    options: Options,
    topic_rules: TopicRules,
    by_path: HashMap<String, u16>,
    fallback: Option<u16>,
    routes: Vec<CloneRoute>,
}

impl Builder {
    /// Sets how many threads serve, 1 to 1,024. Default: one for each core.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers.clamp(1, WORKERS_MAX);
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

    /// Serves `path` by `handler`; the query of a request does not count. A later route replaces an
    /// earlier one for the same path.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn route<H: Handler>(mut self, path: &str, handler: H) -> Self {
        let route = self.add(handler);
        self.by_path.insert(path.to_owned(), route);
        self
    }

    /// Serves all paths without a route of their own by `handler`. Without one, they are refused
    /// with 404.
    ///
    /// # Panics
    /// If there are more than 65,535 routes.
    pub fn fallback<H: Handler>(mut self, handler: H) -> Self {
        self.fallback = Some(self.add(handler));
        self
    }

    /// Listens on `address`; port 0 picks a free one. Connections wait until
    /// [`run`](Server::run).
    ///
    /// # Errors
    /// The address can't be had, or the driver; see [`DriverKind::resolve`].
    pub fn listen(mut self, address: SocketAddr) -> io::Result<Server> {
        self.options.driver = self.options.driver.resolve()?;
        let (address, listeners) = socket::listen_on(address, self.workers)?;
        let mailboxes = (0..self.workers).map(|_| Mailbox::new());
        let shared = Shared {
            config: Arc::new(self.options.config),
            options: self.options,
            topic_rules: self.topic_rules,
            counters: Counters::default(),
            mailboxes: mailboxes.collect::<io::Result<_>>()?,
        };
        Ok(Server {
            address,
            listeners,
            shared: Arc::new(shared),
            by_path: self.by_path,
            fallback: self.fallback,
            routes: self.routes,
        })
    }

    fn add<H: Handler>(&mut self, handler: H) -> u16 {
        let index = u16::try_from(self.routes.len()).expect("at most 65,535 routes");
        self.routes.push(Box::new(move || {
            let handler = handler.clone();
            Box::new(move || Box::new(Route::new(handler)))
        }));
        index
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("options", &self.options)
            .field("paths", &self.by_path.keys())
            .finish_non_exhaustive()
    }
}

/// A server that listens.
pub struct Server {
    address: SocketAddr,
    listeners: Vec<OwnedFd>,
    shared: Arc<Shared>,
    by_path: HashMap<String, u16>,
    fallback: Option<u16>,
    routes: Vec<CloneRoute>,
}

impl Server {
    /// Starts the configuration of a server, with safe defaults.
    pub fn builder() -> Builder {
        Builder {
            workers: thread::available_parallelism().map_or(1, usize::from),
            options: Options::default(),
            topic_rules: TopicRules::default(),
            by_path: HashMap::new(),
            fallback: None,
            routes: Vec::new(),
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
        let remote = self.remote();
        let Self {
            listeners,
            shared,
            by_path,
            fallback,
            routes,
            ..
        } = self;
        let mut workers = listeners.into_iter().enumerate().map(|(number, listener)| {
            let (shared, by_path) = (shared.clone(), by_path.clone());
            let make: Vec<_> = routes.iter().map(|route| route()).collect();
            let stop = StopOnDrop(remote.clone());
            move || {
                let _stop = stop;
                let routes = Routes {
                    by_path,
                    fallback,
                    handlers: make.into_iter().map(|make| make()).collect(),
                };
                Worker::new(number as u16, listener, shared, routes)?.run()
            }
        });
        let here = workers.next();
        let mut threads = Vec::new();
        for (number, worker) in workers.enumerate() {
            let thread = thread::Builder::new().name(format!("reactor-{}", number + 1));
            threads.push(thread.spawn(worker)?);
        }
        let mut outcome = here.map_or(Ok(()), |here| here());
        for thread in threads {
            let ended = thread.join();
            let ended = ended.unwrap_or_else(|_| Err(io::Error::other("a worker panicked")));
            outcome = outcome.and(ended);
        }
        outcome
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

/// Shuts the server down when a worker ends, however it does.
struct StopOnDrop(Remote);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}
