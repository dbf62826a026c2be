//! What everything uses.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use linerate_harness::machine::MachineMemory;
use linerate_testkit::server::RedisServer;

use super::{crowds::Crowds, nodes::Nodes};

/// What has been used since the start, or between two moments: the memory in bytes and the CPU time
/// of all processes, and the memory of the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) time: Duration,
    pub(super) nodes_bytes: u64,
    pub(super) crowds_bytes: u64,
    pub(super) redis_bytes: u64,
    pub(super) kernel_bytes: u64,
    pub(super) nodes_cpu: Duration,
    pub(super) crowds_cpu: Duration,
    pub(super) redis_cpu: Duration,
}

impl Usage {
    /// Returns what has been used since `start`.
    pub(super) fn now(
        start: Instant,
        nodes: &Nodes,
        crowds: &Crowds,
        redis: &RedisServer,
    ) -> Result<Self> {
        let info = redis.cli(&["INFO"]);
        let figure = |wanted: &str| -> Result<f64> {
            let mut fields = info.lines().filter_map(|line| line.trim().split_once(':'));
            let (_, value) = fields
                .find(|(name, _)| *name == wanted)
                .with_context(|| format!("Redis does not report {wanted}"))?;
            Ok(value.parse()?)
        };
        let redis_cpu = figure("used_cpu_sys")? + figure("used_cpu_user")?;
        Ok(Self {
            time: start.elapsed(),
            nodes_bytes: nodes.memory_bytes()?,
            crowds_bytes: crowds.memory_bytes()?,
            redis_bytes: figure("used_memory_rss")? as u64,
            kernel_bytes: MachineMemory::now()?.kernel_bytes,
            nodes_cpu: nodes.cpu()?,
            crowds_cpu: crowds.cpu()?,
            redis_cpu: Duration::from_secs_f64(redis_cpu),
        })
    }

    /// Returns what has been added since an earlier moment, and the CPU time in between.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            time: self.time.saturating_sub(before.time),
            nodes_bytes: self.nodes_bytes.saturating_sub(before.nodes_bytes),
            crowds_bytes: self.crowds_bytes.saturating_sub(before.crowds_bytes),
            redis_bytes: self.redis_bytes.saturating_sub(before.redis_bytes),
            kernel_bytes: self.kernel_bytes.saturating_sub(before.kernel_bytes),
            nodes_cpu: self.nodes_cpu.saturating_sub(before.nodes_cpu),
            crowds_cpu: self.crowds_cpu.saturating_sub(before.crowds_cpu),
            redis_cpu: self.redis_cpu.saturating_sub(before.redis_cpu),
        }
    }
}
