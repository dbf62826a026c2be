//! Echo servers beside one another: linerate, other libraries, and a socket without WebSocket.
//!
//! Each server is a process of its own with one thread on one core; the load comes from one thread
//! on another. What is measured is laid out in [`scenario`], how in [`load`], by whom in
//! [`contender`]. The figures of one run belong together: the rounds of the contenders alternate, so
//! that whatever else the machine does meets all of them, and what counts is the ratio within a
//! round.
//!
//! `cargo bench -p linerate-microbench --features contenders --bench echo` takes about 80 seconds,
//! with `LINERATE_BENCH_QUICK=1` about ten, and needs Linux; arguments select scenarios by a part of their name.

#![forbid(unsafe_code)]

mod contender;
mod load;
mod process;
mod report;
mod scenario;

use std::env;
use std::time::Duration;

use contender::Contender;
use load::Times;
use process::{Cores, Server};
use scenario::SCENARIOS;

/// One allocator for all contenders, since one binary has but one.
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

/// Measures every contender in every scenario whose name one of `arguments` is a part of; without
/// any, in all of them.
fn compare(arguments: &[String]) -> anyhow::Result<()> {
    // Cargo adds options of its own.
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
    process::pin(cores.client)?;
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
