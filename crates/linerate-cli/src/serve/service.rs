//! Assembles the server: broker, node, workers, and routes.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use anyhow::Context;
use linerate_broker::{BrokerOptions, Ingest, sequencer::SequencerLimits};
use linerate_budget::Budget;
use linerate_gateway::{
    admin::Admin,
    api,
    config::{Config, ServerOptions},
    node::{Dispatcher, Node, NodeOptions, Worker},
    operations::Operations,
    protocol::Encoding,
    server::{Front, Hosts, Phase, Running, Seat, Stop, Workers, listen, send_away},
    session::{Settings, Shared},
    transport,
};
use tokio::{net::TcpListener, runtime::Handle};

use super::{
    routes,
    upload::{Gate, Sessions},
};

/// How long a channel remains subscribed at the broker after its last subscriber has left.
const LINGER: Duration = Duration::from_secs(5);

/// The server, bound to its address but not started.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) node: Arc<Node>,
    pub(super) shared: Arc<Shared>,
    pub(super) front: Arc<Front>,
    pub(super) stop: Stop,
    workers: Workers,
    /// The listener for monitoring, if `server.operations_listen` is configured.
    operations: Option<std::net::TcpListener>,
}

impl Service {
    /// Connects to the broker and binds the address. Requests are not served until
    /// [`start`](Self::start) is called.
    pub(super) fn bind(config: Config, runtime: &Handle) -> anyhow::Result<Self> {
        let listen = config.server.listen;
        let workers = Workers::bind(listen, config.server.workers)
            .with_context(|| format!("cannot listen on {listen}"))?;
        let operations = config.server.operations_listen.map(bind_operations);
        let operations = operations.transpose()?;
        let (stop, stopped) = Stop::new();
        let budget = Budget::new(config.server.memory_budget_bytes());
        let compression = usize::try_from(config.compression_budget_bytes())?;
        linerate::Budget::global().set_bytes_max(compression);
        let hosts = Hosts::new(&config);
        let count = workers.count();
        let front = Front::within(budget.clone(), &config.server, hosts, count, stopped)?;
        let front = Arc::new(front);
        let (dispatcher, control) = Dispatcher::within(budget, u16::try_from(workers.count())?);
        let ingest: Arc<dyn Ingest> = dispatcher.clone();
        let url = config.broker.url.read().context("broker.url")?;
        let broker = linerate_broker::connect(&url, broker_options(&config)?, ingest)?;
        let settings = Settings::new(config, None)?;
        let options = NodeOptions {
            name: host_name(),
            encodings: Encoding::encoders(),
            namespaces: settings.namespaces.clone(),
            linger: LINGER,
            revocations_max: settings.config.auth.revocations_max,
            filter: settings.config.filter.clone(),
        };
        let node = Node::start(options, (dispatcher, control), broker, runtime.clone());
        Ok(Self {
            node,
            shared: Arc::new(Shared::new(settings)),
            front,
            stop,
            workers,
            operations,
        })
    }

    /// Starts serving on the threads of the workers.
    pub(super) fn start(self) -> anyhow::Result<(Running, Started)> {
        let Self {
            node,
            shared,
            front,
            stop,
            workers,
            operations: listener,
        } = self;
        let operations = Arc::new(Operations {
            node: node.clone(),
            front: front.clone(),
            shared: shared.clone(),
        });
        let memory = node.budget().clone();
        let settings = shared.settings();
        let tails_bytes_max = settings.config.tails_budget_bytes();
        let sessions = Sessions::new(&settings.config.logs, tails_bytes_max, memory)?;
        drop(settings);
        let gate = Gate::new(shared.clone());
        let pages = Arc::new(routes::Shared::new(sessions, gate));
        let admin = Admin::new(node.clone(), shared.clone());
        let started = Started {
            node: node.clone(),
            shared: shared.clone(),
            front: front.clone(),
            stop,
            operations: listener.map(|listener| (listener, operations.clone())),
        };
        let running = workers.start(move |seat| {
            let desk = Desk {
                node: node.clone(),
                shared: shared.clone(),
                front: front.clone(),
                pages: pages.clone(),
                admin: admin.clone(),
                operations: operations.clone(),
            };
            desk.serve(seat)
        })?;
        Ok((running, started))
    }

    /// Returns the address, with the actual port if port 0 was configured.
    pub(super) const fn address(&self) -> SocketAddr {
        self.workers.address()
    }

    /// Returns the URL of the server for browsers.
    pub(super) fn url(&self) -> String {
        let scheme = match self.front.certificate {
            Some(_) => "https",
            None => "http",
        };
        format!("{scheme}://{}", self.address())
    }
}

/// The parts of the running server, except its threads.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) node: Arc<Node>,
    pub(super) shared: Arc<Shared>,
    pub(super) front: Arc<Front>,
    pub(super) stop: Stop,
    pub(super) operations: Option<(std::net::TcpListener, Arc<Operations>)>,
}

/// Serves monitoring on its own listener. It continues while the server drains, because monitoring
/// is especially useful at that time.
pub(super) async fn serve_operations(listener: std::net::TcpListener, operations: Arc<Operations>) {
    let serve = async {
        let (_stop, stopped) = Stop::new();
        let hosts = Hosts::of_operations(&operations.shared.settings().config);
        let front = Arc::new(Front::new(&ServerOptions::default(), hosts, 1, stopped)?);
        let listener = TcpListener::from_std(listener)?;
        front.serve(listener, operations.private_routes()).await?;
        anyhow::Ok(())
    };
    if let Err(error) = serve.await {
        tracing::error!(error = format!("{error:#}"), "monitoring endpoint failed");
    }
}

/// Everything that a worker needs.
struct Desk {
    node: Arc<Node>,
    shared: Arc<Shared>,
    front: Arc<Front>,
    pages: Arc<routes::Shared>,
    admin: Arc<Admin>,
    operations: Arc<Operations>,
}

impl Desk {
    async fn serve(self, seat: Seat) -> std::io::Result<()> {
        // The configuration allows at most 1024 workers.
        let index = u16::try_from(seat.index).unwrap_or(u16::MAX);
        let worker = Arc::new(self.node.worker(index));
        let counters = Some(self.pages.counters.clone());
        let clients = transport::routes(worker.clone(), self.shared.clone(), counters);
        let applications = api::routes(self.node.clone(), self.shared.clone());
        let administrators = self.admin.routes(worker.clone());
        let mut clients = clients.merge(applications).merge(administrators);
        if self
            .shared
            .settings()
            .config
            .server
            .operations_listen
            .is_none()
        {
            clients = clients.merge(self.operations.public_routes());
        }
        let app = routes::routes(self.pages.clone(), self.shared.clone(), clients);
        tokio::spawn(send_away_when_told(
            worker.clone(),
            self.front.clone(),
            self.shared.clone(),
        ));
        tokio::select! {
            served = self.front.serve(seat.listener, app) => served,
            () = worker.run() => Ok(()),
        }
    }
}

/// Disconnects the clients of a worker when the server stops, or while an administrator has
/// draining switched on.
async fn send_away_when_told(worker: Arc<Worker>, front: Arc<Front>, shared: Arc<Shared>) {
    let mut draining = worker.node().draining();
    loop {
        tokio::select! {
            () = front.stopped.leaving() => break,
            told = draining.wait_for(|is_draining| *is_draining) => if told.is_err() {
                break;
            }
        }
        let options = &shared.settings_full().config.server.drain;
        let window = options.window_of(front.admission.open());
        tokio::select! {
            () = front.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => continue,
            () = send_away(worker.clone(), window) => {}
        }
        // Clients that connect after this may stay until the server stops.
        tokio::select! {
            () = front.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => {}
        }
    }
    front.stopped.leaving().await;
    let window = match front.stopped.phase() {
        Phase::Leaving { window, .. } => window,
        _ => Duration::ZERO,
    };
    // No new connections arrive, but some that are already open have not been authenticated yet.
    worker.turn_away();
    send_away(worker, window).await;
}

fn bind_operations(address: SocketAddr) -> anyhow::Result<std::net::TcpListener> {
    let listeners = listen(address, 1).with_context(|| format!("cannot listen on {address}"))?;
    listeners.into_iter().next().context("no listener")
}

fn broker_options(config: &Config) -> anyhow::Result<BrokerOptions> {
    let (broker, history) = (&config.broker, &config.history);
    let authorities = broker.tls_authorities.as_ref();
    let authorities =
        authorities.map(|path| fs::read(path).with_context(|| path.display().to_string()));
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
            total_bytes_max: usize::try_from(config.history_budget_bytes())?,
            ..SequencerLimits::default()
        },
        stream_bytes_max: broker.stream_bytes_max,
        stream_replicas: broker.stream_replicas,
        tls_authorities: authorities.transpose()?,
        ..BrokerOptions::default()
    })
}

/// Returns the host name of this machine, for display.
fn host_name() -> String {
    let name = nix::unistd::gethostname().ok();
    let name = name.and_then(|name| name.into_string().ok());
    name.unwrap_or_else(|| "linerate".to_owned())
}
