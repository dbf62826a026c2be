//! Decides whether figures are about the server or about the load.

use crate::cell::Load;
use crate::record::{Figures, Outcome};

/// Share of its threads' time above which a load is busy: it had no time left to wait for the
/// server. Even if the server is faster, the load waits a little whenever both finish at once.
const LOAD_BUSY: f64 = 0.9;

/// Share of its cores' time below which a server is idle: it waited for the load. A server that is
/// busy all the time may still lose a tenth of it to whatever else runs on its cores.
const SERVER_BUSY: f64 = 0.85;

/// Decides whether figures count.
///
/// If the server's process cannot be inspected, a busy load is considered the bottleneck.
pub(super) fn judge(load: &Load, figures: Figures) -> Outcome {
    let load_share = figures.load_cpu_s / (figures.elapsed_s * f64::from(figures.load_threads));
    let server_share = figures.server.map_or(0.0, |spent| {
        spent.cpu_s / (figures.elapsed_s * f64::from(spent.cores))
    });
    if !is_slow_on_purpose(load) && load_share > LOAD_BUSY && server_share < SERVER_BUSY {
        Outcome::LoadBound(figures)
    } else {
        Outcome::Measured(figures)
    }
}

/// Returns whether a load leaves the server, or keeps the clients busy, by design. Such a load says
/// nothing about throughput.
fn is_slow_on_purpose(load: &Load) -> bool {
    match load {
        Load::Echo(echo) => echo.rate.is_some() || echo.write_bytes_max.is_some(),
        Load::Fanout(_) | Load::Upload(_) => false,
        Load::Idle(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ServerUsage;
    use crate::scenario::Scenario;

    fn load(field: &str) -> Load {
        let text = format!(
            "title = 'a'\nabout = 'b'\n[[cells]]\nkind = 'echo'\nconnections = 1\n\
            payload-bytes = 8\n{field}\n"
        );
        Scenario::parse("a", &text).unwrap().cells.remove(0).load
    }

    /// Returns the figures of one second with two threads of load and two cores for the server.
    fn figures(load_share: f64, server_share: Option<f64>) -> Figures {
        Figures {
            elapsed_s: 1.0,
            load_cpu_s: 2.0 * load_share,
            load_threads: 2,
            server: server_share.map(|share| ServerUsage {
                cpu_s: 2.0 * share,
                cores: 2,
                ..ServerUsage::default()
            }),
            ..Figures::default()
        }
    }

    fn counts(load: &Load, load_share: f64, server_share: Option<f64>) -> bool {
        matches!(
            judge(load, figures(load_share, server_share)),
            Outcome::Measured(_)
        )
    }

    #[test]
    fn a_busy_load_before_an_idle_server_does_not_count() {
        let load = load("");
        assert!(!counts(&load, 0.91, Some(0.84)));
        assert!(counts(&load, 0.89, Some(0.84)), "the load had time");
        assert!(counts(&load, 0.91, Some(0.86)), "the server had none");
    }

    #[test]
    fn a_server_that_nobody_looks_into_is_taken_for_idle() {
        assert!(!counts(&load(""), 0.91, None));
        assert!(counts(&load(""), 0.89, None));
    }

    #[test]
    fn loads_that_are_slow_on_purpose_count() {
        for field in ["rate = 1000.0", "write-bytes-max = 10"] {
            assert!(counts(&load(field), 1.0, Some(0.1)), "{field}");
        }
    }
}
