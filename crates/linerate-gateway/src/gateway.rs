//! A gateway as a whole: bound to its addresses, serving, reloading its configuration, draining.

mod access;
mod drain;
mod error;
mod limits;
mod reload;
mod worker;

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use linerate::Counters;
use linerate_broker::{
    Broker, BrokerError, BrokerOptions, ConnectError, Ingest, Publish, sequencer::SequencerLimits,
};
use linerate_budget::Budget;
use linerate_hub::ChannelName;
use tokio::{
    net::TcpListener,
    runtime::Handle,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use crate::{
    admin::{Admin, TailEncoding},
    config::Config,
    node::{Dispatcher, Node, NodeInfo, NodeOptions},
    operations::Operations,
    platform, protocol,
    server::{Certificate, Frontend, Hosts, Phase, Stop, Threads, Workers, listen},
    session::{SessionEnvironment, Settings},
};
pub use access::{Access, LogsAccess};
pub use error::BindError;
pub use reload::ReloadError;
use worker::WorkerService;

/// How long a channel remains subscribed at the broker after its last subscriber has left.
const LINGER: Duration = Duration::from_secs(5);

/// A gateway that is bound to its addresses and does not serve yet.
///
/// # Examples
/// ```
/// use linerate_gateway::{Gateway, config::Loader};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = Loader::new()
///     .with_text("gateway.toml", "[server]\nlisten = \"127.0.0.1:0\"\nworkers = 1")
///     .load()?;
/// let gateway = Gateway::bind(config)?;
/// println!("listening on {}", gateway.url());
/// let running = gateway.start()?;
/// running.drain().await;
/// running.shut_down().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Gateway {
    parts: Parts,
    guard: ShutdownGuard,
    workers: Workers,
    /// The listener for monitoring, if `server.operations_listen` is configured.
    operations: Option<std::net::TcpListener>,
}

/// The parts of a gateway that its threads share.
#[derive(Clone, Debug)]
struct Parts {
    node: Arc<Node>,
    shared: Arc<SessionEnvironment>,
    frontend: Arc<Frontend>,
    counters: Arc<Counters>,
}

/// A gateway that serves its clients. Dropping it closes all connections.
#[derive(Debug)]
pub struct Running {
    parts: Parts,
    guard: ShutdownGuard,
    threads: Threads,
}

/// Ends everything that belongs to a gateway when it is dropped.
#[derive(Debug)]
struct ShutdownGuard {
    node: Arc<Node>,
    stop: Stop,
}

impl Gateway {
    /// Connects to the broker that the configuration names, and binds the addresses. Must be called
    /// within a tokio runtime, which then serves what concerns all workers.
    ///
    /// # Errors
    /// Fails if an address cannot be bound, or if the broker's URL, a key or a certificate cannot
    /// be used. An unreachable broker is not an error: the gateway connects as soon as it can.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        let url = config.broker.url.read();
        let url = url.map_err(|source| BindError::BrokerUrl { source })?;
        let options = broker_options(&config)?;
        Self::bind_with_reader(config, |reader, ingest| {
            let options = BrokerOptions { reader, ..options };
            linerate_broker::connect(&url, options, ingest)
        })
    }

    /// Like [`bind`](Self::bind), with the broker that `connect` returns. This broker passes
    /// everything that it receives to the given [`Ingest`].
    ///
    /// # Errors
    /// The same as for [`bind`](Self::bind).
    pub fn bind_with(
        config: Config,
        connect: impl FnOnce(Arc<dyn Ingest>) -> Result<Arc<dyn Broker>, ConnectError>,
    ) -> Result<Self, BindError> {
        Self::bind_with_reader(config, |_, ingest| connect(ingest))
    }

    /// Gives `connect` also the runtime on which the broker should read, if there is one.
    fn bind_with_reader(
        config: Config,
        connect: impl FnOnce(Option<Handle>, Arc<dyn Ingest>) -> Result<Arc<dyn Broker>, ConnectError>,
    ) -> Result<Self, BindError> {
        let runtime = Handle::try_current()?;
        let listen_on = config.server.listen;
        let workers = Workers::bind(listen_on, config.server.workers)
            .map_err(|source| BindError::listen(listen_on, source))?;
        let operations = config.server.operations_listen.map(bind_operations);
        let operations = operations.transpose()?;
        let (stop, stopped) = Stop::new();
        let budget = Budget::new(config.server.memory_budget_bytes());
        linerate::deflate::Budget::global()
            .set_bytes_max(to_usize(config.compression_budget_bytes()));
        let hosts = Hosts::new(&config);
        let count = workers.count();
        let frontend = Frontend::within(
            budget.clone(),
            &config.server,
            hosts,
            usize::from(count),
            stopped,
        )?;
        let (dispatcher, control) = Dispatcher::within(budget, count);
        let broker = connect(workers.only_runtime().cloned(), dispatcher.clone())?;
        let settings = Settings::new(config, None)?;
        let options = NodeOptions {
            name: host_name(),
            encodings: protocol::encoders(),
            tail_encoding: Arc::new(TailEncoding),
            namespaces: settings.namespaces.clone(),
            seed: rand::random(),
            linger: LINGER,
            revocations_max: settings.config.auth.revocations_max,
            filter: settings.config.filter.clone(),
        };
        let parts = Parts {
            node: Node::start(options, (dispatcher, control), broker, runtime),
            shared: Arc::new(SessionEnvironment::new(settings)),
            frontend: Arc::new(frontend),
            counters: Arc::new(Counters::default()),
        };
        let node = parts.node.clone();
        Ok(Self {
            parts,
            guard: ShutdownGuard { node, stop },
            workers,
            operations,
        })
    }

    /// Reads the keys and certificates that a configuration names, and checks them as
    /// [`bind`](Self::bind) does.
    ///
    /// # Errors
    /// Fails if one of them cannot be used.
    pub fn check(config: &Config) -> Result<(), BindError> {
        Settings::new(config.clone(), None)?;
        let url = config.broker.url.read();
        url.map_err(|source| BindError::BrokerUrl { source })?;
        broker_options(config)?;
        if let Some(tls) = &config.server.tls {
            Certificate::load(tls)?;
        }
        Ok(())
    }

    /// Returns the address, with the actual port if port 0 was configured.
    pub const fn address(&self) -> SocketAddr {
        self.workers.address()
    }

    /// Returns the URL of the gateway for browsers.
    pub fn url(&self) -> String {
        let scheme = match self.parts.frontend.certificate {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}", self.address())
    }

    /// Returns what decides who may use the routes that the application adds.
    pub fn access(&self) -> Access {
        Access::new(self.parts.shared.clone())
    }

    /// Returns the memory budget of the process.
    pub fn budget(&self) -> &Budget {
        &self.parts.node.budget
    }

    /// Returns the counters of the traffic of all WebSockets, to which the application's own may be
    /// added.
    pub const fn counters(&self) -> &Arc<Counters> {
        &self.parts.counters
    }

    /// Starts serving on the threads of the workers.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub fn start(self) -> std::io::Result<Running> {
        self.start_with(|routes| routes)
    }

    /// Like [`start`](Self::start), with the routes that `extend` returns for each worker. It is
    /// given the gateway's routes of that worker.
    ///
    /// Each request has a [`Peer`](crate::Peer) and a [`ConnectionGuard`](crate::ConnectionGuard)
    /// among its extensions.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub fn start_with<R>(self, extend: R) -> std::io::Result<Running>
    where
        R: Fn(Router) -> Router + Clone + Send + 'static,
    {
        let Self {
            parts,
            guard,
            workers,
            operations: listener,
        } = self;
        let Parts {
            node,
            shared,
            frontend,
            ..
        } = &parts;
        let operations = Arc::new(Operations {
            node: node.clone(),
            frontend: frontend.clone(),
            shared: shared.clone(),
        });
        if let Some(listener) = listener {
            node.spawn_task(serve_operations(listener, operations.clone()));
        }
        if frontend.certificate.is_some() {
            node.spawn_task(reload::renew_certificate(frontend.clone()));
        }
        let admin = Admin::new(node.clone(), shared.clone());
        let service = WorkerService {
            parts: parts.clone(),
            admin,
            operations,
            extend,
        };
        let threads =
            workers.start(move |index, listener| service.clone().serve(index, listener))?;
        Ok(Running {
            parts,
            guard,
            threads,
        })
    }
}

impl Running {
    /// Publishes to a channel as an application does through the server API.
    ///
    /// # Errors
    /// Fails if the broker does not accept the publication.
    pub async fn publish(
        &self,
        channel: &ChannelName,
        payload: impl Into<bytes::Bytes>,
    ) -> Result<(), BrokerError> {
        let options = self.parts.shared.settings().channel(channel).stream();
        let publish = Publish {
            payload: payload.into(),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options,
        };
        self.parts.node.publisher.publish(channel, publish).await?;
        Ok(())
    }

    /// Returns what this node tells other nodes about itself: its ID and how much it serves.
    pub fn info(&self) -> NodeInfo {
        self.parts.node.status.info()
    }

    /// Waits until a worker has ended, which happens before a shutdown only if it failed.
    pub async fn failed(&self) {
        self.threads.one_ended().await;
    }

    /// Disconnects all clients gradually, as `[server.drain]` configures it. Returns once they have
    /// had all the time that they are given, or all connections are closed.
    pub async fn drain(&self) {
        tokio::select! {
            () = self.send_away() => {}
            () = self.threads.all_ended() => {}
        }
    }

    async fn send_away(&self) {
        let settings = self.parts.shared.settings_full();
        let options = &settings.config.server.drain;
        self.guard.stop.enter(Phase::Announced);
        sleep(options.delay).await;
        let admission = &self.parts.frontend.admission;
        let connections = admission.open();
        let window = options.window_of(connections);
        tracing::info!(connections, window_s = window.as_secs_f64(), "draining");
        let since = Instant::now();
        self.guard.stop.enter(Phase::Leaving { since, window });
        sleep(window + options.timeout).await;
        let connections = admission.open();
        tracing::warn!(
            connections,
            "drain timeout: closing the remaining connections"
        );
    }

    /// Closes the remaining connections, leaves the cluster and waits until all threads have ended.
    ///
    /// # Errors
    /// Fails if a worker failed or panicked.
    pub async fn shut_down(self) -> std::io::Result<()> {
        self.guard.stop.enter(Phase::Over);
        self.parts.node.shut_down().await;
        let threads = self.threads;
        spawn_blocking(move || threads.join()).await?
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.stop.enter(Phase::Over);
        self.node.abort_tasks();
    }
}

/// Serves monitoring on its own listener. It continues while the server drains, because monitoring
/// is especially useful at that time.
async fn serve_operations(listener: std::net::TcpListener, operations: Arc<Operations>) {
    let over = operations.frontend.stopped.clone();
    let serve = async {
        let (_stop, stopped) = Stop::new();
        let hosts = Hosts::of_operations(&operations.shared.settings().config);
        let frontend = Frontend::new(&Config::default().server, hosts, 1, stopped)?;
        let listener = TcpListener::from_std(listener)?;
        Arc::new(frontend)
            .serve(listener, operations.private_routes())
            .await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    tokio::select! {
        served = serve => if let Err(error) = served {
            tracing::error!(%error, "monitoring endpoint failed");
        },
        () = over.over() => {}
    }
}

fn bind_operations(address: SocketAddr) -> Result<std::net::TcpListener, BindError> {
    let listeners = listen(address, 1).map_err(|source| BindError::listen(address, source))?;
    let no_listener = || BindError::listen(address, std::io::ErrorKind::AddrNotAvailable.into());
    listeners.into_iter().next().ok_or_else(no_listener)
}

fn broker_options(config: &Config) -> Result<BrokerOptions, BindError> {
    let (broker, history) = (&config.broker, &config.history);
    let authorities = broker.tls_authorities.as_ref().map(|path| {
        fs::read(path).map_err(|source| BindError::Authorities {
            path: path.clone(),
            source,
        })
    });
    Ok(BrokerOptions {
        command_timeout: broker.request_timeout,
        prefix: broker.prefix.clone(),
        probe_interval: broker.probe_interval,
        probe_timeout: broker.probe_timeout,
        reconnect_delay_max: broker.reconnect_wait_max,
        sequencer: SequencerLimits {
            channel_bytes_max: history.channel_bytes_max,
            channel_messages_max: history.channel_messages_max,
            channels_max: history.channels_max,
            total_bytes_max: to_usize(config.history_budget_bytes()),
            ..SequencerLimits::default()
        },
        stream_bytes_max: broker.stream_bytes_max,
        stream_replicas: broker.stream_replicas,
        tls_authorities: authorities.transpose()?,
        ..BrokerOptions::default()
    })
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the host name of this machine, for display.
fn host_name() -> String {
    platform::host_name().unwrap_or_else(|| "linerate".to_owned())
}
