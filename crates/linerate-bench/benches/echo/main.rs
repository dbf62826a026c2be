//! Compares echo servers: linerate, other libraries, and a socket without WebSocket.
//!
//! Each server is a separate process with one thread on one core. The load comes from one thread on
//! another core. [`scenario`] defines what is measured, [`load`] how, and [`contender`] which
//! servers take part. The figures of one run belong together: the rounds of the contenders
//! alternate, so that other work on the machine affects all of them, and the ratio within a round
//! is what counts.
//!
//! `cargo bench -p linerate-bench --features contenders --bench echo` takes about 80 seconds,
//! or about ten with `LINERATE_BENCH_QUICK=1`, and requires Linux. Arguments select scenarios by a
//! part of their name.

#![forbid(unsafe_code)]

mod contender;
mod load;
mod process;
mod report;
mod scenario;

use std::env;
use std::time::Duration;

use linerate_harness::cores::pin;

use contender::Contender;
use load::Times;
use process::{Cores, Server};
use scenario::SCENARIOS;

/// All contenders share this allocator, because a binary can have only one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Some((process::SERVE, arguments)) = arguments.split_first().map(|(a, b)| (a.as_str(), b))
    {
        return process::serve(arguments);
    }
    compare(&arguments)
}

/// Measures every contender in each scenario whose name contains one of `arguments`, or in all
/// scenarios if there are no arguments.
fn compare(arguments: &[String]) -> anyhow::Result<()> {
    // Cargo adds options, which are ignored.
    let wanted: Vec<&String> = arguments
        .iter()
        .filter(|argument| !argument.starts_with('-'))
        .collect();
    let times = if env::var_os("LINERATE_BENCH_QUICK").is_some() {
        Times {
            rounds: 3,
            warm_up: Duration::from_millis(10),
            measured: Duration::from_millis(45),
        }
    } else {
        Times {
            rounds: 5,
            warm_up: Duration::from_millis(30),
            measured: Duration::from_millis(270),
        }
    };
    let cores = Cores::choose()?;
    pin(&[cores.client])?;
    report::print_method(&times, cores);
    let servers = Contender::ALL
        .into_iter()
        .map(|contender| Server::start(contender, cores.server))
        .collect::<anyhow::Result<Vec<_>>>()?;
    for scenario in &SCENARIOS {
        if wanted.is_empty() || wanted.iter().any(|part| scenario.name.contains(*part)) {
            let rounds = load::measure_rounds(&servers, scenario, &times);
            report::print_table(scenario, &servers, &rounds);
        }
    }
    Ok(())
}
