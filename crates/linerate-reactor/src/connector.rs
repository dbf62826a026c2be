//! The connector: a client with many outbound connections and one thread for each core.

use std::{fmt, io, sync::Arc};

use crate::{
    handler::Handler,
    options::Options,
    outbound::{destination::Destination, error::ConnectError},
    reactor::Reactor,
    remote::Remote,
    topics::options::TopicRules,
    workers::{self, Routing},
};

/// A client with many connections on each of its threads, using the same [`Handler`] trait as a
/// server.
///
/// ```
/// use linerate_reactor::{Connector, Destination, Handler, Message, Opened, Context};
///
/// #[derive(Clone)]
/// struct Feed;
///
/// impl Handler for Feed {
///     /// The tag of the destination.
///     type Data = u64;
///
///     fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> u64 {
///         _ = cx.send_text("subscribe");
///         opened.destination().map_or(0, Destination::tag)
///     }
///
///     fn message(&mut self, tag: &mut u64, _cx: &mut Context<'_>, message: Message<'_>) {
///         println!("{tag}: {} bytes", message.as_bytes().len());
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connector = Connector::new().with_workers(1).prepare(Feed)?;
/// let feed = Destination::parse("ws://127.0.0.1:9001/feed")?;
/// for tag in 0..10 {
///     connector.connect(feed.clone().with_tag(tag))?;
/// }
/// # connector.remote().shut_down();
/// connector.run()?;
/// # Ok(())
/// # }
/// ```
///
/// A connection that has ended is not reopened automatically. The handler can reconnect with
/// [`Context::connect`](crate::Context::connect) in [`close`](Handler::close), and with
/// [`WorkerContext::connect`](crate::WorkerContext::connect) in [`failed`](Handler::failed). Use a
/// [delay](Destination::with_delay) that grows with each failure and differs between clients, so
/// that a server that restarts is not overwhelmed.
#[derive(Debug)]
pub struct Connector {
    workers: usize,
    options: Options,
}

impl Connector {
    /// Creates a connector. The defaults are safe.
    pub fn new() -> Self {
        Self {
            workers: workers::workers_default(),
            options: Options::default(),
        }
    }

    /// Sets the number of worker threads, 1 to 1,024. Default: one for each core.
    pub fn with_workers(mut self, workers: usize) -> Self {
        self.workers = workers::clamp_workers(workers);
        self
    }

    /// Sets the options of the connector. [`Options::origins`] has no effect.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the handler of all connections. Connections can be requested then, and are opened once
    /// the connector runs.
    ///
    /// # Errors
    /// If the driver is not available (see [`DriverKind::check`](crate::DriverKind::check)), or the
    /// process is out of file descriptors.
    pub fn prepare<H: Handler>(self, handler: H) -> io::Result<PreparedConnector> {
        let mut routing = Routing::default();
        routing.outbound = Some(routing.add(handler));
        Ok(PreparedConnector {
            reactor: Reactor::new(
                self.options,
                TopicRules::default(),
                self.workers,
                routing.outbound,
                None,
            )?,
            routing,
        })
    }
}

impl Default for Connector {
    fn default() -> Self {
        Self::new()
    }
}

/// A connector with its handler, which is ready to [run](Self::run).
pub struct PreparedConnector {
    reactor: Arc<Reactor>,
    routing: Routing,
}

impl PreparedConnector {
    /// Opens a connection once the connector runs; see [`Remote::connect`].
    ///
    /// # Errors
    /// If the name has no address, or the connection limit is reached.
    pub fn connect(&self, destination: Destination) -> Result<(), ConnectError> {
        self.remote().connect(destination)
    }

    /// Returns a handle that other threads can use.
    pub fn remote(&self) -> Remote {
        Remote(self.reactor.clone())
    }

    /// Runs until [`Remote::shut_down`] is called. One worker runs on this thread, the others on
    /// threads of their own.
    ///
    /// # Errors
    /// If a worker fails or panics; the other workers are then shut down.
    ///
    /// # Panics
    /// If a callback panics on this thread.
    pub fn run(self) -> io::Result<()> {
        let workers = self.reactor.mailboxes.iter().map(|_| None);
        workers::run(&self.reactor, &self.routing, workers.collect())
    }
}

impl fmt::Debug for PreparedConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedConnector")
            .field("workers", &self.reactor.mailboxes.len())
            .field("options", &self.reactor.options)
            .finish_non_exhaustive()
    }
}
