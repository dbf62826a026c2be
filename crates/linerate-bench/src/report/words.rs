//! The terms that a report uses.

use std::collections::HashMap;

use crate::record::{ContenderNote, Record};
use crate::report::number::{bytes, counted, duration_us, percent, si};
use crate::summary::{Metric, REFERENCE, Status, is_ours};

/// The contenders' titles and colours.
#[derive(Debug)]
pub(super) struct Names<'a>(HashMap<&'a str, &'a ContenderNote>);

impl<'a> Names<'a> {
    pub(super) fn new(record: &'a Record) -> Self {
        let notes = record.run.contenders.iter();
        Self(notes.map(|note| (note.name.as_str(), note)).collect())
    }

    /// Returns the title of a contender, or its name if it has none.
    pub(super) fn title<'b>(&'b self, contender: &'b str) -> &'b str {
        self.0.get(contender).map_or(contender, |note| &note.title)
    }

    /// Returns the CSS class that colours a contender. It depends on the language, except for
    /// linerate and the reference.
    pub(super) fn class(&self, contender: &str) -> &'static str {
        match contender {
            REFERENCE => "raw",
            _ if is_ours(contender) => "us",
            _ => language_class(self.0.get(contender).map_or("", |note| &note.language)),
        }
    }
}

/// Returns the CSS class that colours a language.
fn language_class(language: &str) -> &'static str {
    match language {
        "Rust" => "rust",
        "C" | "C++" => "cpp",
        "Go" => "go",
        "Java" | "Kotlin" | "Scala" => "java",
        "JavaScript" | "TypeScript" => "js",
        "Python" => "py",
        _ => "other",
    }
}

/// Formats a figure with the prefix and unit that its metric has in a chart.
pub(crate) fn figure(metric: Metric, figure: f64) -> String {
    match metric {
        Metric::BytesPerConnection => bytes(figure),
        Metric::LatencyP99 => duration_us(figure),
        Metric::PerServerCpuSecond | Metric::PerSecond => si(figure),
    }
}

/// Returns what a metric counts, and whether more or less of it is better.
pub(super) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::BytesPerConnection => {
            "resident memory per connection after one message; less is better"
        }
        Metric::LatencyP99 => "99th percentile of latency; less is better",
        Metric::PerServerCpuSecond => "messages per second of server CPU time; more is better",
        Metric::PerSecond => "messages per second; more is better",
    }
}

/// Returns the head of a metric's column.
pub(crate) fn metric_short(metric: Metric) -> &'static str {
    match metric {
        Metric::BytesPerConnection => "memory/connection",
        Metric::LatencyP99 => "p99",
        Metric::PerServerCpuSecond => "messages/CPU-s",
        Metric::PerSecond => "messages/s",
    }
}

/// Returns why figures are not shown, or what is special about them; `None` if there is nothing to
/// say.
pub(super) fn status(status: &Status) -> Option<String> {
    match status {
        Status::Failed {
            reason,
            failed,
            rounds,
        } => Some(format!(
            "failed in {failed} of {}: {reason}",
            counted(*rounds, "round")
        )),
        Status::LoadBound { load_busy } => {
            let busy = load_busy.map_or(String::new(), |busy| {
                format!(" (busy {} of the time)", percent(busy))
            });
            Some(format!(
                "not published: the load generator was the bottleneck{busy}"
            ))
        }
        Status::Measured { load_bound: 0, .. } => None,
        Status::Measured { rounds, load_bound } => Some(format!(
            "{load_bound} of {} left out, because the load generator was the bottleneck",
            counted(rounds + load_bound, "round")
        )),
        Status::Unsupported { reason } => Some(format!("cannot take part: {reason}")),
    }
}

/// Explains why a contender that has figures has no headline figure.
pub(super) const NO_HEADLINE: &str = "the compared figure is not known";
