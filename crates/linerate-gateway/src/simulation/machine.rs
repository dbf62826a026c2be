//! A simulated process of a node, on a runtime with a clock of its own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_broker::Publish;
use linerate_hub::{ChannelName, ClientInfo};
use tokio::{
    runtime::{Builder, Runtime},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, advance, sleep_until},
};

use super::{
    link::Link,
    network::SharedNetwork,
    pipe::{Commands, Pipe, ServerEnd},
};
use crate::{
    admin::TailEncoding,
    clock,
    node::{Connection, Dispatcher, Node, NodeOptions, Notice, Worker},
    protocol::{self, Dialect, codes::Disconnect, dialect::SessionKind},
    session::{Context, Gates, Session, SessionEnvironment},
    transport::{ClientOutlet, SessionRuntime},
};

/// The number of workers of a node.
pub(super) const WORKERS: u16 = 2;

/// The bytes of replies that may wait for a client.
const QUEUE_BYTES: usize = 1 << 20;

/// A process. Dropping it is a crash.
#[derive(Debug)]
pub(super) struct Machine {
    /// The number of the node in the network.
    pub(super) number: usize,
    pub(super) link: Arc<Link>,
    node: Arc<Node>,
    /// True if something has arrived that the process has not read.
    pub(super) is_due: bool,
    workers: Vec<Arc<Worker>>,
    environment: Arc<SessionEnvironment>,
    runtime: Runtime,
    /// When the process was started, in milliseconds and by its own clock.
    started: (u64, Instant),
    /// When the process ran last, in milliseconds.
    ran: u64,
    ended: Option<JoinHandle<()>>,
}

impl Machine {
    pub(super) fn start(
        number: usize,
        network: &SharedNetwork,
        environment: &Arc<SessionEnvironment>,
    ) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O needs no resources");
        let guard = runtime.enter();
        let parts = Dispatcher::new(WORKERS);
        let id = format!("node-{number}");
        let link = Link::new(number, id.clone(), network.clone(), parts.0.clone());
        let settings = environment.settings();
        let options = NodeOptions {
            name: id,
            encodings: protocol::encoders(),
            tail_encoding: Arc::new(TailEncoding),
            namespaces: settings.namespaces.clone(),
            seed: number as u64,
            linger: Duration::from_secs(5),
            revocations_max: 100,
            filter: settings.config.filter.clone(),
        };
        let node = Node::start(options, parts, link.clone(), runtime.handle().clone());
        link.start();
        let workers = (0..WORKERS).map(|index| Arc::new(node.worker(index)));
        let workers: Vec<_> = workers.collect();
        for worker in workers.clone() {
            tokio::spawn(async move { worker.run().await });
        }
        let started = (network.lock().now, Instant::now());
        drop(guard);
        Self {
            ran: started.0,
            number,
            link,
            node,
            is_due: true,
            workers,
            environment: environment.clone(),
            runtime,
            started,
            ended: None,
        }
    }

    /// Runs the process until `now`, unless writing has already taken it longer than that.
    pub(super) fn run_until(&mut self, now: u64) {
        let until = self.local(now);
        let has_run = self.runtime.block_on(async {
            let is_busy = Instant::now() >= until;
            if !is_busy {
                sleep_until(until).await;
            }
            !is_busy
        });
        self.is_due &= !has_run;
        self.ran = now;
    }

    /// Returns whether the process has not run for `ms` milliseconds.
    pub(super) fn has_slept(&self, now: u64, ms: u64) -> bool {
        now >= self.ran + ms
    }

    /// Returns the number of nodes that this one knows, itself included.
    pub(super) fn known_nodes(&self) -> usize {
        let _guard = self.runtime.enter();
        self.node.cluster.nodes_count()
    }

    /// Returns whether the node was told to end.
    pub(super) fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    /// Continues a process that was frozen until `now`.
    pub(super) fn thaw(&mut self, now: u64) {
        let until = self.local(now);
        self.runtime.block_on(async {
            let slept = until.saturating_duration_since(Instant::now());
            advance(slept).await;
        });
        self.is_due = true;
    }

    /// Accepts a connection. Returns where the client sends its commands.
    pub(super) fn accept(
        &mut self,
        worker: usize,
        dialect: &'static Dialect,
        client: String,
        pipe: Arc<Pipe>,
    ) -> mpsc::UnboundedSender<Bytes> {
        let _guard = self.runtime.enter();
        let SessionKind::Commands(commands) = &dialect.session else {
            panic!("the client sends commands");
        };
        let worker = self.workers[worker].clone();
        let connection = Connection {
            who: Arc::new(ClientInfo {
                client: client.into(),
                ..ClientInfo::default()
            }),
            dialect: &dialect.name,
            peer: None,
            agent: "".into(),
            since_ms: 0,
        };
        let backlogs = &worker.accounts().backlogs;
        let outlet = ClientOutlet::new(ServerEnd(pipe), &dialect.gaps, QUEUE_BYTES, backlogs);
        let outlet = Arc::new(outlet);
        let context = Context {
            gate: Gates::new(&worker, &self.environment).of(dialect),
            outlet: outlet.clone(),
            connection: Arc::new(connection),
            headers: None,
        };
        let session = Session::new(context, commands, None, clock::now(), 0.5);
        let runtime = SessionRuntime::new(session, outlet);
        let (sender, input) = mpsc::unbounded_channel();
        tokio::spawn(Box::new(runtime).run(Commands(input)));
        self.is_due = true;
        sender
    }

    /// Publishes through the node.
    pub(super) fn publish(&mut self, channel: &ChannelName) {
        let (node, channel) = (self.node.clone(), channel.clone());
        let options = self.environment.settings().channel(&channel).stream();
        let publish = Publish {
            payload: Bytes::new(),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options,
        };
        self.runtime.spawn(async move {
            // While the broker is unavailable, nothing is published.
            _ = node.publisher.publish(&channel, publish).await;
        });
        self.is_due = true;
    }

    /// Sends all clients away, and turns new ones away.
    pub(super) fn drain(&mut self) {
        let _guard = self.runtime.enter();
        for worker in &self.workers {
            worker.turn_away();
            for client in worker.shard().clients.values() {
                client
                    .outlet
                    .notify(Notice::Disconnect(Disconnect::SHUTDOWN));
            }
        }
        self.is_due = true;
    }

    /// Ends the node in an orderly way.
    pub(super) fn shut_down(&mut self) {
        let node = self.node.clone();
        let ended = self.runtime.spawn(async move { node.shut_down().await });
        self.ended = Some(ended);
        self.is_due = true;
    }

    /// Returns whether the node has ended in an orderly way.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.as_ref().is_some_and(JoinHandle::is_finished)
    }

    fn local(&self, now: u64) -> Instant {
        let (started, began) = self.started;
        began + Duration::from_millis(now - started)
    }
}
