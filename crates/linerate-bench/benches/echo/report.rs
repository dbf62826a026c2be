//! Prints the method and the tables of results.

use linerate_harness::table::grouped;

use crate::contender::Contender;
use crate::load::{Measurement, Times};
use crate::process::{Cores, Server};
use crate::scenario::Scenario;

/// A figure that is compared.
type Figure = fn(&Measurement) -> f64;

const FIGURES: [Figure; 2] = [
    |measurement| measurement.messages_per_second,
    |measurement| measurement.messages_per_cpu_second,
];

/// Prints what is measured and how, as far as the figures depend on it.
pub(crate) fn print_method(times: &Times, cores: Cores) {
    println!(
        "Echo servers, each one process with one thread (tokio current_thread) on core {}; load from \
         one thread on core {}.",
        cores.server, cores.client
    );
    println!(
        "{} rounds of {} ms for each; the contenders alternate. mimalloc, TCP_NODELAY and each \
         library's default settings for all.",
        times.rounds,
        times.measured.as_millis()
    );
    println!(
        "All validate the UTF-8 of text messages, as they do by default. Echoes are compared byte \
         for byte."
    );
    println!("Contenders:");
    for contender in Contender::ALL {
        println!("  {:<26} {}", contender.name(), contender.description());
    }
    println!(
        "Columns: the median of the rounds ± half their range; then how many times as much linerate \
         does, as the\nmedian of the ratios within the rounds, and their range. CPU-seconds are those of \
         the server, in user mode and in the kernel."
    );
}

/// Prints the results of a scenario. `results` are in the order of `servers`.
pub(crate) fn print_table(
    scenario: &Scenario,
    servers: &[Server],
    results: &[anyhow::Result<Vec<Measurement>>],
) {
    println!("\n{}", scenario.name);
    println!(
        "  {:<26} {:>11} {:>5}  {:<19} {:>11} {:>5}  linerate ×",
        "", "messages/s", "±", "linerate ×", "…/CPU-s", "±"
    );
    let linerate = servers
        .iter()
        .zip(results)
        .find(|(server, _)| server.contender == Contender::Linerate)
        .and_then(|(_, result)| result.as_ref().ok());
    for (server, result) in servers.iter().zip(results) {
        let name = server.contender.name();
        match result {
            Ok(rounds) => {
                let cells = FIGURES.map(|figure| cells(rounds, linerate, figure));
                println!("  {name:<26} {}", cells.join(" ").trim_end());
            }
            Err(error) => println!("  {name:<26} not counted: {error:#}"),
        }
    }
}

/// Formats a figure, its spread, and how many times as much linerate does.
fn cells(rounds: &[Measurement], linerate: Option<&Vec<Measurement>>, figure: Figure) -> String {
    let own = Summary::of(rounds.iter().map(figure));
    let spread = (own.max - own.min) / 2.0 / own.median * 100.0;
    let ratio = linerate.map_or(String::from("–"), |linerate| {
        let pairs = linerate.iter().zip(rounds);
        let ratio = Summary::of(pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)));
        format!("{:.2} ({:.2}–{:.2})", ratio.median, ratio.min, ratio.max)
    });
    format!(
        "{:>11} {spread:>4.0}%  {ratio:<19}",
        grouped(own.median.round_ties_even() as u64)
    )
}

/// The median and the range of some figures.
struct Summary {
    min: f64,
    median: f64,
    max: f64,
}

impl Summary {
    /// Summarises at least one figure. For an even number of figures, the upper middle one is the
    /// median.
    fn of(figures: impl Iterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.collect();
        figures.sort_by(f64::total_cmp);
        Self {
            min: figures[0],
            median: figures[figures.len() / 2],
            max: figures[figures.len() - 1],
        }
    }
}
