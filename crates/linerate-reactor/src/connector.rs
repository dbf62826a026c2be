//! A client: many outbound connections on a thread for each core.

use std::{fmt, io, sync::Arc};

use crate::{
    ConnectError, Destination, DriverKind, Handler, Options, Remote,
    crew::{self, Routing},
    remote::Shared,
    topics::options::TopicRules,
};

/// A connector to be configured; see [`Connector::builder`].
#[derive(Debug)]
pub struct ConnectorBuilder {
    workers: usize,
    options: Options,
}

impl ConnectorBuilder {
    /// Sets how many threads there are, 1 to 1,024. Default: one for each core.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = crew::clamp_workers(workers);
        self
    }

    /// Sets how the connector behaves. [`Options::origins`] means nothing to it.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Takes the handler of all connections.
    ///
    /// # Errors
    /// The driver can't be had, see [`DriverKind::resolve`], or files are short.
    pub fn handler<H: Handler>(self, handler: H) -> io::Result<Connector> {
        let mut routing = Routing::default();
        routing.outbound = Some(routing.add(handler));
        Ok(Connector {
            shared: crew::share(
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

/// A client with many connections on each of its threads, by the same [`Handler`] as a server's.
///
/// ```
/// use linerate_reactor::{Connector, Destination, Handler, Message, Opened, Tx};
///
/// #[derive(Clone)]
/// struct Feed;
///
/// impl Handler for Feed {
///     /// The tag of the destination.
///     type Data = u64;
///
///     fn open(&mut self, tx: &mut Tx<'_>, opened: Opened<'_>) -> u64 {
///         _ = tx.send_text("subscribe");
///         opened.destination().map_or(0, Destination::tag)
///     }
///
///     fn message(&mut self, tag: &mut u64, _tx: &mut Tx<'_>, message: Message<'_>) {
///         println!("{tag}: {} bytes", message.as_bytes().len());
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let connector = Connector::builder().workers(1).handler(Feed)?;
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
/// Connections that end stay ended: to connect again is up to the handler, in
/// [`close`](Handler::close) by [`Tx::connect`](crate::Tx::connect), and in
/// [`failed`](Handler::failed), with a [delay](Destination::with_delay) that grows from failure to
/// failure and is not the same for all clients, so that a server that comes back is not overrun.
pub struct Connector {
    shared: Arc<Shared>,
    routing: Routing,
}

impl Connector {
    /// Starts the configuration of a connector, with safe defaults.
    pub fn builder() -> ConnectorBuilder {
        ConnectorBuilder {
            workers: crew::workers_default(),
            options: Options::default(),
        }
    }

    /// Opens a connection once the connector runs; see [`Remote::connect`].
    ///
    /// # Errors
    /// The name has no address, or there are as many connections as there may be.
    pub fn connect(&self, destination: Destination) -> Result<(), ConnectError> {
        self.remote().connect(destination)
    }

    /// Returns the driver that the connector uses, which is never [`DriverKind::Auto`].
    pub fn driver(&self) -> DriverKind {
        self.shared.options.driver
    }

    /// Returns a handle for other threads.
    pub fn remote(&self) -> Remote {
        Remote(self.shared.clone())
    }

    /// Runs until [`Remote::shut_down`]: one worker on this thread, the others on their own.
    ///
    /// # Errors
    /// A worker failed or panicked; the others are shut down then.
    ///
    /// # Panics
    /// If a callback does, on this thread.
    pub fn run(self) -> io::Result<()> {
        let workers = self.shared.mailboxes.iter().map(|_| None);
        crew::run(&self.shared, &self.routing, workers.collect())
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("workers", &self.shared.mailboxes.len())
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}
