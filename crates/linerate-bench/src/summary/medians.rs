//! A contender's figures in a cell, over the rounds.

use serde::Serialize;

use crate::record::{Figures, Latency};
use crate::summary::metric::grown;
use crate::summary::spread::Spread;

/// Each figure over the rounds; `None` if no round has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Medians {
    /// Messages per second.
    pub messages_per_second: Option<Spread>,
    /// Payload in one direction, in bytes per second.
    pub bytes_per_second: Option<Spread>,
    /// Bytes on the wire for each message that was echoed.
    pub wire_bytes: Option<Spread>,
    /// Ratio of the payload to its bytes on the wire.
    pub wire_ratio: Option<Spread>,
    /// Messages per second of the server's CPU time.
    pub messages_per_cpu_second: Option<Spread>,
    /// The server's CPU time in user mode for each message, in microseconds.
    pub user_us: Option<Spread>,
    /// The server's CPU time in the kernel for each message, in microseconds.
    pub system_us: Option<Spread>,
    /// Peak resident memory of the server, in bytes.
    pub resident_bytes_peak: Option<Spread>,
    /// Median of latency, in microseconds.
    pub p50_us: Option<Spread>,
    /// 90th percentile of latency, in microseconds.
    pub p90_us: Option<Spread>,
    /// 99th percentile of latency, in microseconds.
    pub p99_us: Option<Spread>,
    /// 99.9th percentile of latency, in microseconds.
    pub p999_us: Option<Spread>,
    /// Resident bytes per connection before the first message.
    pub idle_bytes_before: Option<Spread>,
}

impl Medians {
    /// Summarises rounds that count.
    pub(super) fn of(rounds: &[&Figures]) -> Self {
        let spread = |figure: &dyn Fn(&Figures) -> Option<f64>| {
            Spread::of(rounds.iter().filter_map(|figures| figure(figures)))
        };
        let latency = |percentile: fn(&Latency) -> f64| {
            spread(&|it: &Figures| it.latency.as_ref().map(percentile))
        };
        Self {
            messages_per_second: spread(&|it| Some(it.messages / it.elapsed_s)),
            bytes_per_second: spread(&|it| Some(it.payload_bytes / it.elapsed_s)),
            wire_bytes: spread(&|it| Some(it.wire_bytes? / it.messages)),
            wire_ratio: spread(&|it| Some(it.payload_bytes / it.wire_bytes?)),
            messages_per_cpu_second: spread(&|it| Some(it.messages / it.server?.cpu_s)),
            user_us: spread(&|it| Some(microseconds(it.server?.user_s, it.messages))),
            system_us: spread(&|it| Some(microseconds(it.server?.system_s, it.messages))),
            resident_bytes_peak: spread(&|it| Some(it.server?.resident_bytes_peak as f64)),
            p50_us: latency(|it| it.p50_us),
            p90_us: latency(|it| it.p90_us),
            p99_us: latency(|it| it.p99_us),
            p999_us: latency(|it| it.p999_us),
            idle_bytes_before: spread(&|it| {
                let idle = it.idle?;
                let bytes = grown(idle.resident_bytes_idle, idle.resident_bytes_before);
                Some(bytes / f64::from(idle.connections))
            }),
        }
    }
}

/// Returns the share of `seconds` for each of `messages`, in microseconds.
fn microseconds(seconds: f64, messages: f64) -> f64 {
    seconds * 1e6 / messages
}
