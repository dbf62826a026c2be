//! Very many subscribers of many nodes, on one machine: `make million`.
//!
//! The open files of a process are limited, so there are many nodes, and as many processes of
//! subscribers. All nodes have one real Redis. The subscribers connect, publications reach all
//! channels, and a part of the nodes is restarted meanwhile. In the end, every subscriber must have
//! received every publication of its channel, or have been told that it missed some.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `crowd` | a process of subscribers |
//! | `crowds` | all of these processes |
//! | `feed` | publishes |
//! | `nodes` | starts and restarts the nodes |
//! | `plan` | who subscribes to what, and where |
//! | `record` | the figures, as text and as JSON |
//! | `report` | what subscribers report |
//! | `seat` | what one subscriber has received |
//! | `usage` | memory and CPU time of everything |

pub(crate) mod crowd;
mod crowds;
mod feed;
mod nodes;
pub(crate) mod plan;
mod record;
mod report;
mod seat;
mod usage;

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use clap::Args;
use linerate_harness::machine::MachineMemory;
use linerate_testkit::server::RedisServer;

use self::{
    crowds::Crowds,
    feed::Feed,
    nodes::Nodes,
    plan::Plan,
    record::{Deliveries, Record},
    report::CrowdReport,
    usage::Usage,
};

/// The name of the command.
pub(crate) const MILLION: &str = "million";

/// Available memory of the machine at which no further subscribers connect.
const MEMORY_BYTES_MIN: u64 = 3 << 29;

/// Time between two reports.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Time between two lines about the progress.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// How long nothing may happen while something is awaited.
const STALLED_MAX: Duration = Duration::from_secs(60);

/// How long memory is left to settle, and how long idle connections are observed.
const IDLE_TIME: Duration = Duration::from_secs(5);

/// How many subscribers to connect, and what to do then.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    plan: Plan,
    /// Number of publications a second, in one channel after the other
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    rate: u32,
    /// Number of nodes to restart [default: a tenth of them]
    #[arg(long, value_name = "N")]
    restarts: Option<u32>,
    /// The linerate binary to run as the nodes [default: linerate next to this program]
    #[arg(long, value_name = "FILE", env = "LINERATE_BIN")]
    pub(crate) linerate: Option<PathBuf>,
    /// Write the figures to a file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs everything and prints the figures. Returns whether all subscribers have received
/// everything, or were told what they missed.
pub(crate) fn run(arguments: &Arguments, linerate: &Path, files_max: Option<u64>) -> Result<bool> {
    let plan = arguments.plan;
    plan.check(files_max.unwrap_or(u64::MAX))?;
    ensure!(arguments.rate > 0, "--rate must be at least 1");
    let restarts = arguments.restarts.unwrap_or(plan.nodes.div_ceil(10));
    ensure!(
        restarts <= plan.nodes,
        "--restarts {restarts}: there are only {} nodes",
        plan.nodes
    );
    let redis = RedisServer::start().context("Redis is not installed")?;
    let mut stage = Stage {
        start: Instant::now(),
        nodes: Nodes::start(plan, linerate, redis.url())?,
        crowds: Crowds::start(plan)?,
        redis,
    };
    let empty = stage.usage()?;
    let is_memory_short = stage.connect()?;
    let connected = stage.usage()?;
    thread::sleep(IDLE_TIME);
    let settled = stage.usage()?;
    thread::sleep(IDLE_TIME);
    let idle = stage.usage()?;
    let subscribers = stage.crowds.look()?.open;

    let feed = Feed::start(plan, stage.redis.port(), arguments.rate)?;
    let round = u64::from(plan.channels);
    let steady = stage.deliveries("steady", |stage| stage.wait_for_feed(&feed, round))?;
    let restarted = stage.deliveries("restarting", |stage| {
        for number in 0..restarts {
            stage.nodes.restart(number)?;
            stage.wait_for_subscribers(subscribers)?;
        }
        Ok(())
    })?;
    // Subscribers notice with the next publication what they missed, so all channels have one more.
    let last = feed.published() + round;
    let after = stage.deliveries("after", |stage| stage.wait_for_feed(&feed, last))?;
    let published = feed.stop()?;
    let seen = stage.wait_for_deliveries(published)?;
    let record = Record {
        plan,
        rate: arguments.rate,
        restarts,
        subscribers,
        is_memory_short,
        published,
        connecting: connected.since(&empty),
        connected: settled.since(&empty),
        idle: idle.since(&settled),
        deliveries: [steady, restarted, after],
        seen,
    };
    print!("{}", record.text());
    if let Some(path) = &arguments.json {
        fs::write(path, record.json()?).with_context(|| path.display().to_string())?;
    }
    let is_complete = record.is_complete();
    stage.end()?;
    Ok(is_complete)
}

/// Everything that runs.
struct Stage {
    start: Instant,
    nodes: Nodes,
    crowds: Crowds,
    redis: RedisServer,
}

impl Stage {
    fn usage(&self) -> Result<Usage> {
        Usage::now(self.start, &self.nodes, &self.crowds, &self.redis)
    }

    /// Connects the subscribers, as many as there is memory for. Returns whether it was short.
    fn connect(&mut self) -> Result<bool> {
        self.crowds.tell("connect")?;
        let mut progress = Progress::new();
        let mut is_short = false;
        loop {
            thread::sleep(LOOK_INTERVAL);
            let seen = self.crowds.look()?;
            let available = MachineMemory::now()?.available_bytes;
            progress.tell(seen.open, || {
                format!(
                    "connected {} of {}; {} MiB of memory available, {} attempts failed",
                    seen.open,
                    seen.wanted,
                    available >> 20,
                    self.crowds.seen.failed
                )
            });
            if seen.open == seen.wanted {
                return Ok(is_short);
            }
            if available < MEMORY_BYTES_MIN && !is_short {
                is_short = true;
                self.crowds.tell("hold")?;
            }
            progress.check(&self.crowds.seen)?;
        }
    }

    /// Measures the deliveries while `work` runs.
    fn deliveries(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Deliveries> {
        let before = self.usage()?;
        let seen_before = std::mem::take(&mut self.crowds.seen);
        work(self)?;
        self.crowds.look()?;
        let used = self.usage()?.since(&before);
        let seen = std::mem::replace(&mut self.crowds.seen, seen_before);
        self.crowds.seen.then(seen.clone());
        Ok(Deliveries { name, seen, used })
    }

    /// Waits until there are `published` publications.
    fn wait_for_feed(&mut self, feed: &Feed, published: u64) -> Result<()> {
        let mut progress = Progress::new();
        while feed.published() < published {
            thread::sleep(LOOK_INTERVAL);
            self.crowds.look()?;
            let received = self.crowds.seen.received;
            let so_far = feed.published();
            progress.tell(so_far, || {
                format!("published {so_far} of {published}, received {received}")
            });
            progress.check(&self.crowds.seen)?;
        }
        Ok(())
    }

    /// Waits until all subscribers are connected again.
    fn wait_for_subscribers(&mut self, subscribers: u64) -> Result<()> {
        let mut progress = Progress::new();
        loop {
            thread::sleep(LOOK_INTERVAL);
            let open = self.crowds.look()?.open;
            progress.tell(open, || format!("connected {open} of {subscribers}"));
            if open == subscribers {
                return Ok(());
            }
            progress.check(&self.crowds.seen)?;
        }
    }

    /// Waits until every subscriber has the last publication of its channel, or until nothing
    /// arrives any more. Returns everything that was seen.
    fn wait_for_deliveries(&mut self, published: u64) -> Result<CrowdReport> {
        let order = format!("final {published}");
        loop {
            thread::sleep(2 * LOOK_INTERVAL);
            let seen = self.crowds.tell(&order)?;
            if seen.behind == 0 || seen.received == 0 {
                return Ok(self.crowds.seen.clone());
            }
        }
    }

    fn end(self) -> Result<()> {
        self.crowds.end()?;
        self.nodes.end()
    }
}

/// Prints the progress, and notices when there is none.
struct Progress {
    told: Instant,
    /// The newest value, and since when it has been the same.
    value: u64,
    since: Instant,
}

impl Progress {
    fn new() -> Self {
        Self {
            told: Instant::now(),
            value: 0,
            since: Instant::now(),
        }
    }

    /// Takes a value that changes if something happens, and prints a line now and then.
    fn tell(&mut self, value: u64, line: impl FnOnce() -> String) {
        if value != self.value {
            (self.value, self.since) = (value, Instant::now());
        }
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            self.told = Instant::now();
            eprintln!("{}", line());
        }
    }

    /// # Errors
    /// Nothing has happened for too long.
    fn check(&self, seen: &CrowdReport) -> Result<()> {
        ensure!(
            self.since.elapsed() < STALLED_MAX,
            "nothing has changed for {} s with {} connections open; the last failed attempt: {}",
            STALLED_MAX.as_secs(),
            seen.open,
            seen.last_failure.as_deref().unwrap_or("none")
        );
        Ok(())
    }
}
