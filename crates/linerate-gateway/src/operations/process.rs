//! Metrics of the process from the operating system, with the names that Prometheus's own clients
//! use.

use std::{fmt, fs};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Clock ticks per second in which Linux reports processor time to programs, on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Metrics of the process. Values that cannot be read are omitted.
#[derive(Debug)]
pub(super) struct Process {
    processor_seconds: Option<f64>,
    resident_bytes: Option<u64>,
}

impl Process {
    pub(super) fn look() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        Self {
            processor_seconds: stat.as_deref().and_then(processor_seconds),
            resident_bytes: resident_bytes(),
        }
    }
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        if let Some(seconds) = self.processor_seconds {
            let (name, help) = (
                "process_cpu_seconds",
                "Processor time in user and system mode",
            );
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(seconds).encode(metric)?;
        }
        if let Some(bytes) = self.resident_bytes {
            let (name, help) = ("process_resident_memory_bytes", "Resident memory size");
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(bytes as f64).encode(metric)?;
        }
        Ok(())
    }
}

/// Adds the 14th and 15th field, user and system time. The second field is a name that can contain
/// anything.
fn processor_seconds(stat: &str) -> Option<f64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    let mut fields = behind_name.split_ascii_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS_PER_SECOND)
}

/// Returns the resident memory of the process; `None` if it cannot be read.
pub(crate) fn resident_bytes() -> Option<u64> {
    resident_bytes_in(&fs::read_to_string("/proc/self/status").ok()?)
}

fn resident_bytes_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1_024)
}

#[cfg(test)]
mod tests {
    use super::{processor_seconds, resident_bytes_in};

    #[test]
    fn figures_are_found_behind_any_name() {
        let stat = "1 (a) b (c) S 2 3 4 5 6 7 8 9 10 11 150 50 14";
        assert_eq!(processor_seconds(stat), Some(2.0));
        assert_eq!(processor_seconds("1 (a"), None);
        assert_eq!(
            resident_bytes_in("Name:\ta\nVmRSS:\t    4 kB\n"),
            Some(4_096)
        );
    }
}
