//! A gateway as a whole: bound to its addresses, serving, reloading its configuration, draining.

mod access;
mod broker;
mod drain;
mod endpoints;
mod error;
mod limits;
mod paths;
mod reload;
mod worker;

use std::{future::pending, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use futures_util::future::try_join_all;
use linerate::Counters;
use linerate_broker::{Broker, BrokerOptions, ConnectError, Ingest, LinkState, Publish};
use linerate_budget::Budget;
use linerate_hub::ChannelName;
use tokio::{
    net::TcpListener,
    runtime::Handle,
    sync::watch,
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep, timeout},
};

use crate::{
    admin::{Admin, TailEncoding},
    config::Config,
    metrics::TakeoverResult,
    node::{Dispatcher, Node, NodeInfo, NodeOptions, PublishError, intake::Intake},
    operations::Operations,
    platform,
    producer::Author,
    protocol,
    relocation::{Fleet, Relocation},
    server::{Certificate, Endpoint, Frontend, Hosts, Phase, Stop, Stopped, Threads, Workers},
    session::{SessionEnvironment, Settings},
    source::Sources,
    takeover::{Continuation, Handover, Joining, TakenOver, TakeoverError, TakeoverSocket},
};
pub use access::{Access, ClientAccess, LogsAccess};
use endpoints::Endpoints;
pub use error::BindError;
pub use reload::ReloadError;
use worker::WorkerService;

/// How long a channel remains subscribed at the broker after its last subscriber has left.
const LINGER: Duration = Duration::from_secs(5);

/// How long a process that takes over waits for its broker.
const BROKER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often it looks.
const BROKER_INTERVAL: Duration = Duration::from_millis(20);

/// How long a gateway that ends waits until its webhooks have been told everything, and until
/// publications are written to Kafka.
const FLUSH_MAX: Duration = Duration::from_secs(5);

/// After a takeover, how long to wait until the broker has stored who is present.
const PRESENCE_MAX: Duration = Duration::from_secs(10);

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
    endpoints: Endpoints,
    /// The observer of the listener for monitoring.
    operations_stopped: Stopped,
    takeover: Takeover,
}

/// What a gateway has to do with other processes.
#[derive(Debug)]
enum Takeover {
    /// It takes over from a running process.
    By(Box<Joining>),
    /// It can be taken over.
    Of(TakeoverSocket),
    /// `server.takeover_socket` is not configured.
    None,
}

/// The parts of a gateway that its threads share.
#[derive(Clone, Debug)]
struct Parts {
    node: Arc<Node>,
    shared: Arc<SessionEnvironment>,
    frontend: Arc<Frontend>,
    counters: Arc<Counters>,
    intake: Arc<Intake>,
    fleet: Arc<Fleet>,
    sources: Arc<Sources>,
}

/// A gateway that serves its clients. Dropping it closes all connections.
#[derive(Debug)]
pub struct Running {
    parts: Parts,
    guard: ShutdownGuard,
    threads: Threads,
    /// The number of workers.
    workers: usize,
    /// The listeners once more, for a process that takes over; empty if there can be none, and when
    /// the gateway waits for one.
    endpoints: Vec<Endpoint>,
    /// The takeover by this process that is under way.
    joining: Option<Box<Joining>>,
    /// Waits for a process that takes over, and holds the socket for it.
    handover: JoinSet<()>,
    successor: watch::Sender<Option<TakenOver>>,
}

/// Ends everything that belongs to a gateway when it is dropped.
#[derive(Debug)]
struct ShutdownGuard {
    node: Arc<Node>,
    sources: Arc<Sources>,
    stop: Arc<Stop>,
    /// Controls the listener for monitoring, which serves while the gateway drains.
    operations: Arc<Stop>,
}

impl Gateway {
    /// Connects to the broker that the configuration names, and binds the addresses. Must be called
    /// within a tokio runtime, which then serves what concerns all workers.
    ///
    /// # Errors
    /// Fails if an address cannot be bound, or if the broker's URL, a key or a certificate cannot
    /// be used. An unreachable broker is not an error: the gateway connects as soon as it can.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        Self::bind_and_assemble(config, Self::assemble_with_broker)
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
        Self::bind_and_assemble(config, |config, workers, endpoints, phase| {
            Self::assemble(config, workers, endpoints, phase, connect)
        })
    }

    /// Like [`bind`](Self::bind), but takes over the listeners and clients of the process that
    /// listens on `server.takeover_socket`, if one does. That process serves until
    /// [`Running::take_over`].
    ///
    /// # Errors
    /// The same as for [`bind`](Self::bind), and if `server.takeover_socket` is not configured, the
    /// broker cannot be reached, or the other process refuses. That process continues to serve.
    ///
    /// # Examples
    /// ```no_run
    /// use linerate_gateway::{Gateway, config::Loader};
    ///
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = Loader::new().with_file("/etc/linerate.toml").load()?;
    /// let gateway = Gateway::take_over(config).await?;
    /// let mut running = gateway.start()?;
    /// running.take_over().await?;
    /// println!("serving");
    /// let process = running.taken_over().await;
    /// println!("process {process} serves; disconnecting the remaining clients");
    /// running.drain().await;
    /// running.shut_down().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn take_over(config: Config) -> Result<Self, BindError> {
        let socket = config.server.takeover_socket.as_deref();
        let Some(mut joining) = Joining::begin(socket).await? else {
            return Self::bind(config);
        };
        match Self::join(config, &mut joining).await {
            Ok(gateway) => Ok(Self {
                takeover: Takeover::By(Box::new(joining)),
                ..gateway
            }),
            Err(error) => {
                joining.give_up(&error).await;
                Err(error)
            }
        }
    }

    /// Prepares everything for a takeover, and receives the listeners.
    async fn join(config: Config, joining: &mut Joining) -> Result<Self, BindError> {
        let workers = Workers::new(config.server.workers).map_err(BindError::Workers)?;
        let timeout = config.server.dead_peer_timeout;
        let elsewhere = |kind, address| joining.endpoint(kind, address, timeout);
        let endpoints = Endpoints::bind(&config.server, workers.count(), elsewhere)?;
        let mut gateway = Self::assemble_with_broker(config, workers, endpoints, Phase::Paused)?;
        gateway.wait_for_broker().await?;
        match joining.receive(gateway.endpoints.all_mut()).await? {
            Continuation::Together => {}
            Continuation::Alone => gateway.endpoints.bind_missing(gateway.workers.count())?,
        }
        Ok(gateway)
    }

    /// Waits until publications arrive and revoked tokens are known.
    async fn wait_for_broker(&self) -> Result<(), TakeoverError> {
        let node = &self.parts.node;
        let is_ready = || node.broker.link() != LinkState::Deaf && node.revocations.are_known();
        let waiting = async {
            while !is_ready() {
                sleep(BROKER_INTERVAL).await;
            }
        };
        let waited = BROKER_TIMEOUT;
        let ready = timeout(waited, waiting).await;
        ready.map_err(|_| TakeoverError::Broker { waited })
    }

    /// Binds the addresses, and assembles a gateway that serves as soon as it is started.
    fn bind_and_assemble(
        config: Config,
        assemble: impl FnOnce(Config, Workers, Endpoints, Phase) -> Result<Self, BindError>,
    ) -> Result<Self, BindError> {
        Handle::try_current()?;
        let workers = Workers::new(config.server.workers).map_err(BindError::Workers)?;
        let endpoints = Endpoints::bind(&config.server, workers.count(), |_, _| None)?;
        let socket = config.server.takeover_socket.as_deref();
        let socket = socket.map(TakeoverSocket::bind).transpose()?;
        let gateway = assemble(config, workers, endpoints, Phase::Serving)?;
        Ok(Self {
            takeover: socket.map_or(Takeover::None, Takeover::Of),
            ..gateway
        })
    }

    /// Assembles a gateway with the broker that the configuration names.
    fn assemble_with_broker(
        config: Config,
        workers: Workers,
        endpoints: Endpoints,
        phase: Phase,
    ) -> Result<Self, BindError> {
        let url = config.broker.url.read();
        let url = url.map_err(|source| BindError::BrokerUrl { source })?;
        let options = broker::options(&config)?;
        let reader = workers.only_runtime().cloned();
        Self::assemble(config, workers, endpoints, phase, |ingest| {
            let options = BrokerOptions { reader, ..options };
            linerate_broker::connect(&url, options, ingest)
        })
    }

    fn assemble(
        config: Config,
        workers: Workers,
        endpoints: Endpoints,
        phase: Phase,
        connect: impl FnOnce(Arc<dyn Ingest>) -> Result<Arc<dyn Broker>, ConnectError>,
    ) -> Result<Self, BindError> {
        let runtime = Handle::try_current()?;
        let (stop, stopped) = Stop::in_phase(phase);
        let (operations, operations_stopped) = Stop::in_phase(phase);
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
        let intake = Arc::new(Intake::new(dispatcher.clone()));
        let broker = connect(intake.clone())?;
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
        let node = Node::start(options, (dispatcher, control), broker, runtime);
        let parts = Parts {
            sources: Arc::new(Sources::new(node.clone())),
            node,
            shared: Arc::new(SessionEnvironment::new(settings)),
            frontend: Arc::new(frontend),
            counters: Arc::new(Counters::default()),
            fleet: Arc::default(),
            intake,
        };
        reload::apply(&parts.node, &parts.shared.settings_full());
        let guard = ShutdownGuard {
            node: parts.node.clone(),
            sources: parts.sources.clone(),
            stop: Arc::new(stop),
            operations: Arc::new(operations),
        };
        Ok(Self {
            parts,
            guard,
            workers,
            endpoints,
            operations_stopped,
            takeover: Takeover::None,
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
        broker::options(config)?;
        if let Some(tls) = &config.server.tls {
            Certificate::load(tls)?;
        }
        Ok(())
    }

    /// Returns the address, with the actual port if port 0 was configured.
    pub fn address(&self) -> SocketAddr {
        self.endpoints.address()
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

    /// Returns the broker of this node.
    pub fn broker(&self) -> &Arc<dyn Broker> {
        &self.parts.node.broker
    }

    /// Returns the memory budget of the process.
    pub fn budget(&self) -> &Budget {
        &self.parts.node.budget
    }

    /// Returns the counters of the traffic of all WebSockets, and of streaming responses over
    /// HTTP/1.1, to which the application's own may be added.
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
            endpoints,
            operations_stopped,
            takeover,
        } = self;
        let Parts {
            node,
            shared,
            frontend,
            sources,
            ..
        } = &parts;
        let operations = Arc::new(Operations {
            node: node.clone(),
            frontend: frontend.clone(),
            shared: shared.clone(),
            sources: sources.clone(),
        });
        sources.replace(&shared.settings().sources);
        sources.replace_feeds(shared.settings().socketio_redis.as_ref());
        let clones = match &takeover {
            Takeover::None => Vec::new(),
            _ => {
                let endpoints = endpoints.all().iter().map(Endpoint::try_clone);
                endpoints.collect::<std::io::Result<_>>()?
            }
        };
        let (clients, monitoring) = endpoints.into_sockets();
        frontend.set_loops(clients.len().max(usize::from(workers.count())));
        if !monitoring.is_empty() {
            let operations = operations.clone();
            node.spawn_task(serve_operations(monitoring, operations, operations_stopped));
        }
        if frontend.certificate.is_some() {
            node.spawn_task(reload::renew_certificate(frontend.clone()));
        }
        let admin = Admin::new(node.clone(), shared.clone());
        admin.start_recording();
        let service = WorkerService {
            parts: parts.clone(),
            admin,
            operations,
            extend,
        };
        let serve = move |index, listeners| service.clone().serve(index, listeners);
        let count = usize::from(workers.count());
        let threads = workers.start(clients, serve)?;
        let mut running = Running {
            parts,
            guard,
            threads,
            workers: count,
            endpoints: clones,
            joining: None,
            handover: JoinSet::new(),
            successor: watch::Sender::new(None),
        };
        match takeover {
            Takeover::By(joining) => running.joining = Some(joining),
            Takeover::Of(socket) => running.wait_for_takeover(socket),
            Takeover::None => {}
        }
        Ok(running)
    }
}

impl Running {
    /// Publishes to a channel as an application does through the server API.
    ///
    /// # Errors
    /// Fails if the broker does not accept the publication, or if it waits for Kafka, which does
    /// not store it.
    pub async fn publish(
        &self,
        channel: &ChannelName,
        payload: impl Into<bytes::Bytes>,
    ) -> Result<(), PublishError> {
        let options = self.parts.shared.settings().channel(channel).stream();
        let publish = Publish {
            payload: payload.into(),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options,
        };
        let node = &self.parts.node;
        node.publish(channel, publish, Author::Application).await?;
        Ok(())
    }

    /// Returns what this node tells other nodes about itself: its ID and how much it serves.
    pub fn info(&self) -> NodeInfo {
        self.parts.node.status.info()
    }

    /// Returns what takes part when clients move to another process, or come from one.
    pub(crate) fn relocation(&self) -> Relocation {
        let Parts {
            fleet,
            intake,
            shared,
            node,
            ..
        } = self.parts.clone();
        Relocation {
            fleet,
            workers: self.workers,
            intake,
            environment: shared,
            node,
        }
    }

    /// Completes the takeover that [`Gateway::take_over`] has begun: from then on, this process is
    /// responsible and accepts connections. Returns at once if no takeover is under way.
    ///
    /// # Errors
    /// Fails if the other process does not hand over. It continues to serve, and this process must
    /// end.
    pub async fn take_over(&mut self) -> Result<(), TakeoverError> {
        let Some(mut joining) = self.joining.take() else {
            return Ok(());
        };
        let metrics = self.parts.shared.metrics();
        metrics.count_takeover(TakeoverResult::Started);
        joining.complete(self.relocation()).await?;
        self.guard.stop.resume();
        self.guard.operations.resume();
        metrics.count_takeover(TakeoverResult::Succeeded);
        if let Some(socket) = joining.take_socket() {
            self.wait_for_takeover(socket);
        }
        joining.confirm().await;
        let node = self.parts.node.clone();
        self.parts.node.spawn_task(async move {
            node.presence.stored(PRESENCE_MAX).await;
            // The old process removes its entries then.
            drop(joining);
        });
        Ok(())
    }

    /// Waits until another process has taken over, and returns its process ID. Then
    /// [drain](Self::drain) this gateway: it no longer accepts connections.
    pub async fn taken_over(&self) -> u32 {
        match self.successor(Option::is_some).await {
            Some(taken_over) => taken_over.process,
            None => pending().await,
        }
    }

    /// Waits for what is known of the process that has taken over.
    async fn successor(
        &self,
        is_reached: impl FnMut(&Option<TakenOver>) -> bool,
    ) -> Option<TakenOver> {
        let mut successor = self.successor.subscribe();
        let reached = successor.wait_for(is_reached).await;
        reached.ok().and_then(|taken_over| *taken_over)
    }

    /// Lets other processes take over.
    fn wait_for_takeover(&mut self, socket: TakeoverSocket) {
        let handover = Handover {
            socket,
            endpoints: std::mem::take(&mut self.endpoints),
            clients: self.guard.stop.clone(),
            operations: self.guard.operations.clone(),
            stopped: self.parts.frontend.stopped.clone(),
            shared: self.parts.shared.clone(),
            relocation: self.relocation(),
            successor: self.successor.clone(),
        };
        self.handover
            .spawn_on(handover.run(), self.parts.node.runtime());
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
        if self.guard.stop.announce() {
            sleep(options.delay).await;
        } else {
            // Load balancers need not react, but the other process must serve.
            let is_decided = |it: &Option<TakenOver>| it.is_some_and(|it| it.is_decided);
            self.successor(is_decided).await;
        }
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
    pub async fn shut_down(mut self) -> std::io::Result<()> {
        self.guard.stop.enter(Phase::Over);
        // The socket is removed before this returns.
        self.handover.shutdown().await;
        self.parts.sources.leave().await;
        self.parts.node.shut_down().await;
        let threads = self.threads;
        let ended = spawn_blocking(move || threads.join()).await?;
        // The last clients have left with the threads.
        self.parts.node.occupancy.end();
        let Node {
            producers,
            webhooks,
            ..
        } = &*self.parts.node;
        tokio::join!(producers.flush(FLUSH_MAX), webhooks.flush(FLUSH_MAX));
        ended
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.stop.enter(Phase::Over);
        self.sources.end();
        self.node.abort_tasks();
    }
}

/// Serves monitoring on its own listeners. It continues while the server drains, because monitoring
/// is especially useful at that time.
async fn serve_operations(
    listeners: Vec<std::net::TcpListener>,
    operations: Arc<Operations>,
    stopped: Stopped,
) {
    let over = operations.frontend.stopped.clone();
    let serve = async {
        let hosts = Hosts::of_operations(&operations.shared.settings().config);
        let frontend = Frontend::new(&Config::default().server, hosts, listeners.len(), stopped)?;
        let frontend = Arc::new(frontend);
        let listeners = listeners.into_iter().map(TcpListener::from_std);
        let listeners = listeners.collect::<std::io::Result<Vec<_>>>()?;
        let routes = operations.private_routes();
        let serving = listeners
            .into_iter()
            .map(|listener| frontend.clone().serve(listener, routes.clone()));
        try_join_all(serving).await?;
        Ok::<_, Box<dyn std::error::Error>>(())
    };
    tokio::select! {
        served = serve => if let Err(error) = served {
            tracing::error!(%error, "monitoring endpoint failed");
        },
        () = over.over() => {}
    }
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns the host name of this machine, for display.
fn host_name() -> String {
    platform::host_name().unwrap_or_else(|| "linerate".to_owned())
}
