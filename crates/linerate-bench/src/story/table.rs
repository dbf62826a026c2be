//! Formats the results as a table in Markdown.

use linerate_harness::table::{Align, Table, grouped};

use super::audience::Received;
use super::ladder::SustainedRate;
use super::trial::Trial;

/// The columns; the first two hold words.
const COLUMNS: [&str; 11] = [
    "server",
    "protocol",
    "subscribers",
    "batch",
    "sustained, messages/s",
    "delivered/s",
    "delivered per CPU-s",
    "p50 / p99 at peak, ms",
    "at the common rate: delivered per CPU-s",
    "p50 / p99, ms",
    "memory, MiB",
];

/// A row: the results of a server in a cell.
#[derive(Clone, Debug)]
pub struct Row {
    /// The highest rate that was sustained.
    pub peak: SustainedRate,
    /// The trial at a rate that is the same for all servers.
    pub calm: Trial,
}

/// Formats the rows as a Markdown table, in their order.
pub fn markdown(rows: &[Row]) -> String {
    let columns = COLUMNS.into_iter().enumerate();
    let columns = columns.map(|(at, head)| match at {
        0 | 1 => (head, Align::Left),
        _ => (head, Align::Right),
    });
    Table::new(columns, rows.iter().map(cells)).markdown()
}

fn cells(row: &Row) -> Vec<String> {
    let calm = &row.calm;
    let [sustained, delivered, per_cpu_s, at_peak] = peak(&row.peak);
    vec![
        calm.peer.clone(),
        calm.dialect.into(),
        match calm.stalled {
            0 => calm.subscribers.to_string(),
            stalled => format!("{} + {stalled} stalled", calm.subscribers),
        },
        match calm.batch_ms {
            0 => "–".into(),
            batch_ms => format!("{batch_ms} ms"),
        },
        sustained,
        delivered,
        per_cpu_s,
        at_peak,
        match calm.is_sustained() {
            true => thousands(calm.delivered_per_cpu_s),
            false => failed(calm),
        },
        latency(calm),
        (calm.resident_bytes_peak >> 20).to_string(),
    ]
}

fn peak(peak: &SustainedRate) -> [String; 4] {
    let Some(best) = &peak.best else {
        return ["none", "–", "–", "–"].map(String::from);
    };
    let at_least = if peak.is_bound_by_load { "≥ " } else { "" };
    [
        format!("{at_least}{}", thousands(best.rate)),
        thousands(best.received.delivered as f64 / best.seconds),
        thousands(best.delivered_per_cpu_s),
        latency(best),
    ]
}

fn failed(trial: &Trial) -> String {
    let Received { lost, ended, .. } = trial.received;
    format!("fails: {lost} lost, {ended} ended")
}

fn latency(trial: &Trial) -> String {
    match &trial.latency {
        Some(latency) => format!("{:.1} / {:.1}", latency.p50_us / 1e3, latency.p99_us / 1e3),
        None => "–".into(),
    }
}

fn thousands(number: f64) -> String {
    grouped(number.round_ties_even() as u64)
}
