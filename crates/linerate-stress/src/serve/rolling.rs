//! Nodes that are restarted one after another while clients are connected.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, ensure};
use linerate_harness::process::Process;
use linerate_testkit::server::{RedisServer, free_port};

use super::{process::ServerProcess, publisher::Publisher};
use crate::{
    Row,
    child::Child,
    figures::{Effort, Figures, Span},
    live::{Target, visit},
    outcome::{Bounds, Finding, Outcome},
    roam::{CHANNEL, ROAM, RoamReport},
    waits::median,
};

/// The number of clients of all nodes together.
const CLIENTS: usize = 10_000;

/// The number of nodes that are restarted, and how often each is. One more node is used to publish.
const NODES: usize = 3;
const ROUNDS: usize = 20;

/// The time between two publications.
const INTERVAL: Duration = Duration::from_millis(250);

/// The minimum pause after each restart.
const PAUSE: Duration = Duration::from_millis(500);

/// How soon a disconnected client must be subscribed again, and how soon publications must arrive,
/// both at the 99th percentile.
const RETURN_MAX: Duration = Duration::from_secs(2);

/// The memory that a client may cost a node, in bytes.
const BYTES_EACH: u64 = 48 << 10;

/// How long clients may take to subscribe at the start, and to reconnect.
const SETTLE_MAX: Duration = Duration::from_secs(60);

const KEY: &str = "of-no-use-elsewhere";

pub(super) fn row() -> Row {
    Row::new("serve/rolling-restart", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let (count, rounds) = (effort.scaled(CLIENTS), effort.scaled(ROUNDS));
    let redis = RedisServer::start().context("Redis is not installed")?;
    let mut nodes = Nodes::start(&effort.linerate, &redis.url())?;
    let files_before = nodes.nodes[0].process().open_files()?;
    let mut arguments = vec![ROAM.to_owned(), count.to_string()];
    arguments.extend(nodes.nodes.iter().map(|node| node.address.to_string()));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut clients = Child::start(&arguments)?;
    let publisher = PublisherThread::start(nodes.beside.address)?;
    settle(&mut clients, count, &mut RoamReport::default())?;
    let memory_before = nodes.nodes[0].process().resident_bytes()?;
    let alone = slices(&mut clients, effort.slices)?;

    let (mut all, mut with) = (RoamReport::default(), Vec::new());
    let used_before = CpuUse::now(&nodes, &clients, &redis)?;
    let started = Instant::now();
    for number in 0..rounds * NODES {
        nodes.restart(number % NODES)?;
        with.push(settle(&mut clients, count, &mut all)?);
    }
    let share = nodes.processor_time.as_secs_f64() / started.elapsed().as_secs_f64();
    publisher.stop()?;
    settle(&mut clients, count, &mut all)?;
    let used = CpuUse::now(&nodes, &clients, &redis)?;
    clients.end()?;
    thread::sleep(Duration::from_secs(1));
    let process = nodes.nodes[0].process();
    let figures = Figures {
        memory_bytes: Span {
            before: memory_before,
            peak: nodes.memory_peak,
            after: process.resident_bytes()?,
        },
        files: Span {
            before: files_before,
            peak: nodes.files_peak,
            after: process.open_files()?,
        },
        processor_share: share,
        p99_alone: median(alone),
        p99_with: median(with),
        ..Figures::default()
    };
    nodes.end()?;
    Ok(Outcome {
        abuse: format!(
            "{NODES} nodes restarted {rounds} times each with {count} clients and Redis"
        ),
        bounds: Bounds {
            memory_growth_max: (16 << 20) + count as u64 * BYTES_EACH,
            p99_free: RETURN_MAX,
        },
        figures,
        also: findings(&all, &used.since(&used_before)),
    })
}

fn findings(all: &RoamReport, used: &CpuUse) -> Vec<Finding> {
    let RoamReport {
        publications,
        lost,
        gaps,
        repeated,
        returns,
        return_p99,
        ..
    } = all;
    vec![
        Finding::new(
            format!(
                "{publications} publications: {lost} lost, {repeated} repeated, {gaps} gaps reported (0)"
            ),
            *publications > 0 && lost + repeated + gaps == 0,
        ),
        Finding::new(
            format!(
                "{returns} reconnections within {:.2} s at p99 ({} s), {} each",
                return_p99.as_secs_f64(),
                RETURN_MAX.as_secs(),
                used.each(*returns),
            ),
            *returns > 0 && *return_p99 <= RETURN_MAX,
        ),
    ]
}

/// CPU time used, including everything else that the processes do.
struct CpuUse {
    nodes: Duration,
    clients: Duration,
    redis: Duration,
}

impl CpuUse {
    fn now(nodes: &Nodes, clients: &Child, redis: &RedisServer) -> Result<Self> {
        let of_redis = redis.cli(&["INFO", "CPU"]);
        let seconds = of_redis.lines().filter_map(|line| {
            let (name, seconds) = line.trim().split_once(':')?;
            let is_own = matches!(name, "used_cpu_sys" | "used_cpu_user");
            seconds.parse::<f64>().ok().filter(|_| is_own)
        });
        Ok(Self {
            nodes: nodes.processor_time()?,
            clients: Process::new(clients.id()).cpu()?,
            redis: Duration::from_secs_f64(seconds.sum()),
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            nodes: self.nodes.saturating_sub(before.nodes),
            clients: self.clients.saturating_sub(before.clients),
            redis: self.redis.saturating_sub(before.redis),
        }
    }

    /// Describes the CPU time for each of `returns` reconnections.
    fn each(&self, returns: u64) -> String {
        let each = |time: Duration| time.as_micros() / u128::from(returns.max(1));
        let [nodes, clients, redis] = [self.nodes, self.clients, self.redis].map(each);
        format!("{nodes} µs of CPU time in nodes, {clients} µs in clients, {redis} µs in Redis")
    }
}

/// Asks the clients for a report, and adds it to the totals in `all`.
fn note(clients: &mut Child, all: &mut RoamReport) -> Result<RoamReport> {
    let seen: RoamReport = clients.ask_for("and?")?;
    all.subscribed = seen.subscribed;
    all.publications += seen.publications;
    all.lost += seen.lost;
    all.gaps += seen.gaps;
    all.repeated += seen.repeated;
    all.returns += seen.returns;
    all.return_p99 = seen.return_p99;
    Ok(seen)
}

/// Waits until all clients are subscribed, as an operator does before restarting the next
/// node. Returns the worst 99th percentile of the time that publications took to arrive meanwhile.
fn settle(clients: &mut Child, count: usize, all: &mut RoamReport) -> Result<Duration> {
    let deadline = Instant::now() + SETTLE_MAX;
    let mut worst = Duration::ZERO;
    loop {
        thread::sleep(PAUSE);
        worst = worst.max(note(clients, all)?.on_its_way_p99);
        if all.subscribed == count as u64 {
            return Ok(worst);
        }
        let subscribed = all.subscribed;
        ensure!(
            Instant::now() < deadline,
            "only {subscribed} of {count} clients subscribed in time"
        );
    }
}

fn slices(clients: &mut Child, count: usize) -> Result<Vec<Duration>> {
    let mut waits = Vec::new();
    for _ in 0..count {
        thread::sleep(4 * INTERVAL);
        waits.push(note(clients, &mut RoamReport::default())?.on_its_way_p99);
    }
    Ok(waits)
}

/// The running nodes, and the resources used so far.
struct Nodes {
    linerate: std::path::PathBuf,
    configurations: Vec<String>,
    nodes: Vec<ServerProcess>,
    /// The node that is used to publish.
    beside: ServerProcess,
    memory_peak: u64,
    files_peak: u64,
    processor_time: Duration,
}

impl Nodes {
    fn start(linerate: &Path, broker: &str) -> Result<Self> {
        let configurations: Vec<_> = (0..NODES).map(|_| configuration(broker)).collect();
        let nodes = configurations
            .iter()
            .map(|text| start(linerate, text))
            .collect::<Result<_>>()?;
        Ok(Self {
            beside: start(linerate, &configuration(broker))?,
            linerate: linerate.to_owned(),
            configurations,
            nodes,
            memory_peak: 0,
            files_peak: 0,
            processor_time: Duration::ZERO,
        })
    }

    /// Makes a node disconnect its clients and exit, and starts it again.
    fn restart(&mut self, number: usize) -> Result<()> {
        let node = self.nodes.remove(number);
        let process = node.process();
        self.memory_peak = self.memory_peak.max(process.resident_bytes_peak()?);
        self.files_peak = self.files_peak.max(process.open_files()?);
        self.processor_time += process.cpu()?;
        node.drain()?;
        let node = start(&self.linerate, &self.configurations[number])?;
        self.nodes.insert(number, node);
        Ok(())
    }

    /// Returns the CPU time of the nodes that are restarted, including their earlier processes.
    fn processor_time(&self) -> Result<Duration> {
        let mut sum = self.processor_time;
        for node in &self.nodes {
            sum += node.process().cpu()?;
        }
        Ok(sum)
    }

    fn end(self) -> Result<()> {
        self.nodes.into_iter().try_for_each(ServerProcess::end)?;
        self.beside.end()
    }
}

/// Starts a node, and checks that it serves clients.
fn start(linerate: &Path, configuration: &str) -> Result<ServerProcess> {
    let node = ServerProcess::start_node(linerate, configuration)?;
    visit(&Target {
        address: node.address,
        path: "/echo",
        tls: None,
    })?;
    Ok(node)
}

fn configuration(broker: &str) -> String {
    let port = free_port();
    format!(
        r#"
[server]
listen = "127.0.0.1:{port}"
accepts_per_second_max = 20_000
diagnostics = true
[server.drain]
window_s = 1
[broker]
url = "{broker}"
[auth]
anonymous = true
api_key = "{KEY}"
[channel]
history_size = 1_000
history_ttl_s = 300
recover = true
positioned = true
allow_subscribe = true
allow_anonymous = true
[[namespace]]
name = "kept"
durable = true
"#
    )
}

/// A thread that publishes at a steady rate.
struct PublisherThread {
    is_running: Arc<AtomicBool>,
    thread: JoinHandle<Result<()>>,
}

impl PublisherThread {
    fn start(server: SocketAddr) -> Result<Self> {
        let mut publisher = Publisher::connect(server, CHANNEL, KEY)?;
        let is_running = Arc::new(AtomicBool::new(true));
        let thread = thread::spawn({
            let is_running = is_running.clone();
            move || {
                let mut number = 0_u64;
                while is_running.load(Ordering::Relaxed) {
                    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
                    publisher.publish(&format!(r#"{{"n":{number},"at":{}}}"#, now.as_nanos()))?;
                    number += 1;
                    thread::sleep(INTERVAL);
                }
                Ok(())
            }
        });
        Ok(Self { is_running, thread })
    }

    fn stop(self) -> Result<()> {
        self.is_running.store(false, Ordering::Relaxed);
        let published = self.thread.join();
        published.map_err(|_| anyhow::anyhow!("the publisher panicked"))?
    }
}
