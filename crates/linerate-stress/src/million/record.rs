//! The figures of a run, as text and as JSON.

use std::{fmt::Write as _, time::Duration};

use anyhow::Result;
use serde_json::{Value, json};

use super::{plan::Plan, report::CrowdReport, usage::Usage};

/// Everything that was measured.
pub(super) struct Record {
    pub(super) plan: Plan,
    pub(super) rate: u32,
    pub(super) restarts: u32,
    /// The number of subscribers that were connected.
    pub(super) subscribers: u64,
    /// True if the machine had no memory for more subscribers.
    pub(super) is_memory_short: bool,
    pub(super) published: u64,
    pub(super) connecting: Usage,
    /// What was added from no subscriber to all of them, once memory has settled.
    pub(super) connected: Usage,
    /// What is used while nothing happens.
    pub(super) idle: Usage,
    pub(super) deliveries: [Deliveries; 3],
    /// Everything that subscribers have seen.
    pub(super) seen: CrowdReport,
}

/// What happened while publications were delivered.
pub(super) struct Deliveries {
    pub(super) name: &'static str,
    pub(super) seen: CrowdReport,
    pub(super) used: Usage,
}

impl Record {
    /// Returns whether all wanted subscribers were connected, and have received everything or were
    /// told what they missed.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_memory_short && self.seen.is_complete() && self.seen.received > 0
    }

    /// Returns the figures as lines of text.
    pub(super) fn text(&self) -> String {
        let Self {
            plan,
            connecting,
            connected,
            idle,
            seen,
            ..
        } = self;
        let each = |bytes: u64| bytes / self.subscribers.max(1);
        let mut text = format!(
            "{} subscribers of {} channels on {} nodes with one Redis\n",
            self.subscribers, plan.channels, plan.nodes
        );
        let mut line = |what: &str, figure: String| {
            // Writing to a string cannot fail.
            _ = writeln!(text, "  {what:24} {figure}");
        };
        if self.is_memory_short {
            let wanted = plan.subscribers;
            line("memory", format!("short: {wanted} subscribers were wanted"));
        }
        line(
            "connecting",
            format!(
                "{:.0} s, {:.0} a second; CPU time of each: {} in nodes, {} in clients, {} in Redis",
                connecting.time.as_secs_f64(),
                self.subscribers as f64 / connecting.time.as_secs_f64(),
                micros(connecting.nodes_cpu, self.subscribers),
                micros(connecting.crowds_cpu, self.subscribers),
                micros(connecting.redis_cpu, self.subscribers),
            ),
        );
        line(
            "memory of a subscriber",
            format!(
                "{} B in the node, {} B in the kernel (both ends), {} B in Redis, {} B in the client",
                each(connected.nodes_bytes),
                each(connected.kernel_bytes),
                each(connected.redis_bytes),
                each(connected.crowds_bytes),
            ),
        );
        line(
            "idle",
            format!(
                "{:.1} % of a core in nodes, {:.1} % in clients, {:.1} % in Redis",
                share(idle.nodes_cpu, idle),
                share(idle.crowds_cpu, idle),
                share(idle.redis_cpu, idle),
            ),
        );
        for part in &self.deliveries {
            let Deliveries { name, seen, used } = part;
            let [p50, p99] = seen.delays([0.5, 0.99]).map(|it| it as f64 / 1e3);
            line(
                name,
                format!(
                    "{} delivered in {:.0} s; {:.0} per CPU-second of the nodes; Redis {:.0} % of the servers' CPU time; p50 {p50:.1} ms, p99 {p99:.1} ms",
                    seen.received,
                    used.time.as_secs_f64(),
                    seen.received as f64 / used.nodes_cpu.as_secs_f64().max(1e-9),
                    part.redis_share() * 100.0,
                ),
            );
        }
        line(
            "restarts",
            format!(
                "{} nodes; connections ended: {} {:?}; attempts that failed: {}",
                self.restarts,
                seen.interruptions(),
                seen.closed,
                seen.failed
            ),
        );
        line(
            "proof",
            format!(
                "{} published, {} received; lost untold {}, repeated {}, misrouted {}, without the last publication {}; missed and told {}",
                self.published,
                seen.received,
                seen.lost_untold,
                seen.repeated,
                seen.misrouted,
                seen.behind,
                seen.missed_told,
            ),
        );
        line(
            "verdict",
            match self.is_complete() {
                true => "good: nothing was lost untold".to_owned(),
                false => "BROKEN".to_owned(),
            },
        );
        text
    }

    /// Returns the figures as JSON.
    pub(super) fn json(&self) -> Result<String> {
        let value = json!({
            "subscribers": self.subscribers,
            "channels": self.plan.channels,
            "nodes": self.plan.nodes,
            "rate": self.rate,
            "restarts": self.restarts,
            "is_memory_short": self.is_memory_short,
            "published": self.published,
            "connecting": used(&self.connecting),
            "connected": used(&self.connected),
            "idle": used(&self.idle),
            "deliveries": self.deliveries.iter().map(Deliveries::json).collect::<Vec<_>>(),
            "seen": serde_json::to_value(&self.seen)?,
            "is_complete": self.is_complete(),
        });
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

impl Deliveries {
    /// Returns Redis' share of the CPU time of all servers.
    fn redis_share(&self) -> f64 {
        let redis = self.used.redis_cpu.as_secs_f64();
        redis / (redis + self.used.nodes_cpu.as_secs_f64()).max(1e-9)
    }

    fn json(&self) -> Value {
        let [p50, p99, max] = self.seen.delays([0.5, 0.99, 1.0]);
        json!({
            "name": self.name,
            "received": self.seen.received,
            "p50_us": p50,
            "p99_us": p99,
            "max_us": max,
            "used": used(&self.used),
        })
    }
}

fn used(used: &Usage) -> Value {
    json!({
        "seconds": used.time.as_secs_f64(),
        "nodes_bytes": used.nodes_bytes,
        "clients_bytes": used.crowds_bytes,
        "redis_bytes": used.redis_bytes,
        "kernel_bytes": used.kernel_bytes,
        "nodes_cpu_s": used.nodes_cpu.as_secs_f64(),
        "clients_cpu_s": used.crowds_cpu.as_secs_f64(),
        "redis_cpu_s": used.redis_cpu.as_secs_f64(),
    })
}

fn micros(time: Duration, count: u64) -> String {
    format!("{} µs", time.as_micros() / u128::from(count.max(1)))
}

fn share(cpu: Duration, used: &Usage) -> f64 {
    cpu.as_secs_f64() / used.time.as_secs_f64() * 100.0
}
