//! The cost of a measurement: elapsed time, the server's usage, and the CPU time of the calling
//! thread.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use super::{LoadError, Probe, Usage};
use crate::record::{Figures, Latency, ServerUsage};

/// Longest latency that can be told from longer ones. A server that takes this long for an answer
/// is considered silent.
const LATENCY_MAX: Duration = Duration::from_secs(600);

/// The readings at the start of a measurement.
#[derive(Debug)]
pub(crate) struct Meter {
    start: Instant,
    load_cpu: Duration,
    server: Option<Usage>,
}

impl Meter {
    /// Takes the readings at the start of a measurement.
    pub(crate) fn start(probe: &mut dyn Probe) -> Result<Self, LoadError> {
        Ok(Self {
            server: probe.usage().map_err(LoadError::Gone)?,
            load_cpu: thread_cpu(),
            start: Instant::now(),
        })
    }

    /// Returns what was spent since the start. Call it on the thread that called
    /// [`start`](Self::start). The caller fills in what was achieved.
    pub(crate) fn read(&self, probe: &mut dyn Probe) -> Result<Figures, LoadError> {
        let elapsed = self.start.elapsed();
        let load_cpu = thread_cpu() - self.load_cpu;
        let end = probe.usage().map_err(LoadError::Gone)?;
        let server = self.server.zip(end).map(|(start, end)| ServerUsage {
            cpu_s: (end.cpu - start.cpu).as_secs_f64(),
            user_s: (end.user - start.user).as_secs_f64(),
            system_s: (end.system - start.system).as_secs_f64(),
            resident_bytes_peak: end.resident_bytes_peak,
            cores: probe.cores(),
        });
        Ok(Figures {
            elapsed_s: elapsed.as_secs_f64(),
            server,
            load_cpu_s: load_cpu.as_secs_f64(),
            load_threads: 1,
            ..Figures::default()
        })
    }
}

/// A histogram of latencies in nanoseconds, with a precision of three digits.
#[derive(Debug)]
pub(crate) struct Latencies(Histogram<u64>);

impl Latencies {
    /// Creates an empty histogram.
    pub(crate) fn new() -> Self {
        let nanoseconds = LATENCY_MAX.as_nanos() as u64;
        Self(Histogram::new_with_max(nanoseconds, 3).expect("the range and precision are valid"))
    }

    /// Records an answer that took `latency`.
    pub(crate) fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_nanos() as u64);
    }

    /// Records `answers` answers that took `nanoseconds` each.
    pub(crate) fn record_n(&mut self, nanoseconds: u64, answers: u64) {
        self.0.saturating_record_n(nanoseconds, answers);
    }

    /// Adds the latencies that another histogram has recorded.
    pub(crate) fn add(&mut self, other: &Self) {
        self.0 += &other.0;
    }

    /// Removes all recorded latencies.
    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    /// Returns the percentiles, or `None` if nothing was recorded.
    pub(crate) fn percentiles(&self) -> Option<Latency> {
        let microseconds = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let at = |quantile| microseconds(self.0.value_at_quantile(quantile));
        (!self.0.is_empty()).then(|| Latency {
            count: self.0.len(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p999_us: at(0.999),
            max_us: microseconds(self.0.max()),
        })
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_what_was_recorded_since_it_was_cleared() {
        let mut latencies = Latencies::new();
        latencies.record(Duration::from_secs(7));
        latencies.clear();
        assert_eq!(latencies.percentiles(), None);
        for milliseconds in 1..=1000 {
            latencies.record(Duration::from_millis(milliseconds));
        }
        let latency = latencies.percentiles().unwrap();
        assert_eq!(latency.count, 1000);
        for (found, milliseconds) in [
            (latency.p50_us, 500.0),
            (latency.p90_us, 900.0),
            (latency.p99_us, 990.0),
            (latency.p999_us, 999.0),
            (latency.max_us, 1000.0),
        ] {
            let expected = milliseconds * 1e3;
            assert!((found - expected).abs() < expected * 1e-3, "{found} µs");
        }
    }
}
