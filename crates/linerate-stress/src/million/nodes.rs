//! The nodes, all of which have the same Redis.

use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use linerate_harness::process::Process;

use super::plan::Plan;
use crate::serve::process::ServerProcess;

/// The memory budget of a node, in bytes.
const MEMORY_BYTES_MAX: u64 = 4 << 30;

/// How long a node may take to disconnect its clients and exit, while all others are busy.
const DRAIN_MAX: Duration = Duration::from_secs(120);

/// The running nodes, and the CPU time of those that have ended, without what they needed to
/// disconnect their clients.
pub(super) struct Nodes {
    plan: Plan,
    linerate: PathBuf,
    redis: String,
    nodes: Vec<ServerProcess>,
    cpu_of_ended: Duration,
}

impl Nodes {
    /// Starts all nodes.
    pub(super) fn start(plan: Plan, linerate: &Path, redis: String) -> Result<Self> {
        let mut nodes = Self {
            plan,
            linerate: linerate.to_owned(),
            redis,
            nodes: Vec::new(),
            cpu_of_ended: Duration::ZERO,
        };
        for number in 0..plan.nodes {
            let node = nodes.start_one(number)?;
            nodes.nodes.push(node);
        }
        Ok(nodes)
    }

    /// Makes a node disconnect its clients and exit, and starts it again.
    pub(super) fn restart(&mut self, number: u32) -> Result<()> {
        let node = self.nodes.remove(number as usize);
        self.cpu_of_ended += node.process().cpu()?;
        node.drain_within(DRAIN_MAX)?;
        let node = self.start_one(number)?;
        self.nodes.insert(number as usize, node);
        Ok(())
    }

    /// Returns the CPU time of all nodes since they were started first.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let mut sum = self.cpu_of_ended;
        for node in &self.nodes {
            sum += node.process().cpu()?;
        }
        Ok(sum)
    }

    /// Returns the memory of all nodes that belongs to them alone, in bytes.
    pub(super) fn memory_bytes(&self) -> Result<u64> {
        let mut sum = 0;
        for node in &self.nodes {
            sum += anonymous_bytes(node.process())?;
        }
        Ok(sum)
    }

    pub(super) fn end(self) -> Result<()> {
        self.nodes.into_iter().try_for_each(ServerProcess::end)
    }

    fn start_one(&self, number: u32) -> Result<ServerProcess> {
        let address = self.plan.address(number);
        let text = configuration(self.plan, *address.ip(), &self.redis);
        let node = ServerProcess::start_equal_node(&self.linerate, &text);
        node.with_context(|| format!("cannot start the node on {address}"))
    }
}

/// Returns the memory of a process that it shares with no other, in bytes.
pub(super) fn anonymous_bytes(process: Process) -> Result<u64> {
    let bytes = process.status()?.bytes("RssAnon:");
    bytes.context("a process has no memory figures")
}

fn configuration(plan: Plan, address: Ipv4Addr, redis: &str) -> String {
    let (port, connections_max) = (plan.port, plan.connections_max());
    // A million idle clients cause 40,000 pings a second with the usual interval of 25 s, and
    // without these 30,000 TCP probes. Many of the probes are due at the same tick of the kernel,
    // which drops those that do not fit into the queue of the loopback interface
    // (net.core.netdev_max_backlog).
    format!(
        r#"
[server]
listen = "{address}:{port}"
workers = 1
connections_max = {connections_max}
accepts_per_second_max = 20_000
dead_peer_timeout_s = 3_600
memory_bytes_max = {MEMORY_BYTES_MAX}
[server.drain]
window_s = 2
[broker]
url = "{redis}"
[auth]
anonymous = true
[client]
ping_interval_s = 300
[channel]
allow_subscribe = true
allow_anonymous = true
"#
    )
}
