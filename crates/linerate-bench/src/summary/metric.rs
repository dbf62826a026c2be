//! The figure by which a cell compares its contenders.

use serde::Serialize;

use crate::cell::Load;
use crate::record::Figures;

/// A figure by which contenders are ranked: a cell's headline figure, or its substitute.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Resident bytes per idle connection, after each has had one message echoed. Less is better.
    BytesPerConnection,
    /// The 99th percentile of latency, in microseconds. Less is better.
    LatencyP99,
    /// Messages per second of the server's CPU time. More is better.
    PerServerCpuSecond,
    /// Messages per second, for servers whose CPU time is not known. More is better.
    PerSecond,
}

impl Metric {
    /// Returns the metric of cells with this load. `cpu_known` is false if none of the cell's
    /// figures includes the CPU time of a server.
    pub(super) fn new(load: &Load, cpu_known: bool) -> Self {
        match load {
            Load::Echo(echo) if echo.rate.is_some() => Self::LatencyP99,
            Load::Idle(_) => Self::BytesPerConnection,
            Load::Echo(_) | Load::Fanout(_) | Load::Upload(_) => match cpu_known {
                true => Self::PerServerCpuSecond,
                false => Self::PerSecond,
            },
        }
    }

    /// Returns the figure of a round, which is finite and above 0. Returns `None` if a clock or a
    /// memory size did not change, because it cannot be divided by.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        let figure = match self {
            Self::BytesPerConnection => {
                let idle = figures.idle?;
                grown(idle.resident_bytes_after, idle.resident_bytes_before)
                    / f64::from(idle.connections)
            }
            Self::LatencyP99 => figures.latency?.p99_us,
            Self::PerServerCpuSecond => figures.messages / figures.server?.cpu_s,
            Self::PerSecond => figures.messages / figures.elapsed_s,
        };
        (figure.is_finite() && figure > 0.0).then_some(figure)
    }

    /// Returns whether a larger figure is better.
    pub fn more_is_better(self) -> bool {
        matches!(self, Self::PerServerCpuSecond | Self::PerSecond)
    }

    /// Returns how many times as good `figure` is as `other`. Both must be above 0.
    pub fn ratio(self, figure: f64, other: f64) -> f64 {
        if self.more_is_better() {
            figure / other
        } else {
            other / figure
        }
    }
}

/// Returns by how many bytes a memory size has grown. Below 0 if it has shrunk.
pub(super) fn grown(now: u64, before: u64) -> f64 {
    now as f64 - before as f64
}

#[cfg(test)]
mod tests {
    use super::Metric;
    use crate::record::{Figures, IdleMemory, ServerUsage};
    use crate::summary::tests::sample::{echo, scheduled};

    #[test]
    fn without_cpu_time_messages_per_second_stand_in() {
        let metric = |known| Metric::new(&echo("", "").load, known);
        assert_eq!(metric(true), Metric::PerServerCpuSecond);
        assert_eq!(metric(false), Metric::PerSecond);
        let load = scheduled("", "").load;
        assert_eq!(Metric::new(&load, false), Metric::LatencyP99);
    }

    #[test]
    fn nothing_is_divided_by_a_clock_or_a_memory_that_did_not_move() {
        let figures = Figures {
            messages: 10.0,
            server: Some(ServerUsage::default()),
            idle: Some(IdleMemory::default()),
            ..Figures::default()
        };
        assert_eq!(Metric::PerServerCpuSecond.of(&figures), None);
        assert_eq!(Metric::PerSecond.of(&figures), None);
        assert_eq!(Metric::BytesPerConnection.of(&figures), None);
        assert_eq!(Metric::LatencyP99.of(&figures), None);
    }

    #[test]
    fn memory_per_connection_is_what_the_process_grew_by() {
        let idle = IdleMemory {
            connections: 1_000,
            resident_bytes_before: 5_000_000,
            resident_bytes_idle: 6_000_000,
            resident_bytes_after: 7_000_000,
        };
        let figures = Figures {
            idle: Some(idle),
            ..Figures::default()
        };
        assert_eq!(Metric::BytesPerConnection.of(&figures), Some(2_000.0));
    }

    #[test]
    fn a_ratio_above_one_is_better_in_both_directions() {
        assert_eq!(Metric::PerServerCpuSecond.ratio(6.0, 3.0), 2.0);
        assert_eq!(Metric::LatencyP99.ratio(3.0, 6.0), 2.0);
    }
}
