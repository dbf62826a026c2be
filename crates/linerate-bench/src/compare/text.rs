//! Formats a comparison as text for a terminal.

use std::fmt;

use linerate_harness::table::{Align, Table};

use crate::compare::{Change, Comparison, Verdict};
use crate::report::words::{figure, metric_short};
use crate::summary::Metric;

impl fmt::Display for Comparison {
    /// Writes the cautions, then the changes (worse, better, within noise), then the contenders
    /// that are in only one record, then the totals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for caution in &self.cautions {
            writeln!(f, "caution: {caution}")?;
        }
        if !self.cautions.is_empty() {
            writeln!(f)?;
        }
        self.write_changes(f)?;
        for it in &self.one_sided {
            let which = if it.in_first { "first" } else { "second" };
            writeln!(
                f,
                "{} {}: measured only in the {which} record; in the other: {}",
                it.cell, it.contender, it.reason
            )?;
        }
        if !self.one_sided.is_empty() {
            writeln!(f)?;
        }
        let totals = self.totals;
        writeln!(
            f,
            "{} better, {} worse, {} within noise",
            totals.better, totals.worse, totals.within_noise
        )
    }
}

impl Comparison {
    fn write_changes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.changes.is_empty() {
            return Ok(());
        }
        let verdicts = [Verdict::Worse, Verdict::Better, Verdict::WithinNoise];
        let rows = verdicts.into_iter().flat_map(|verdict| {
            let of_verdict = self.changes.iter().filter(move |it| it.verdict == verdict);
            of_verdict.map(cells)
        });
        writeln!(f, "{}", Table::new([("", Align::Left); 4], rows).text())
    }
}

fn cells(change: &Change) -> Vec<String> {
    vec![
        change.cell.clone(),
        change.contender.clone(),
        format!(
            "{:>9} ±{:<5} → {:>9} ±{:<5} {:<16} {:>8}",
            figure(change.metric, change.before.median),
            half_range(change.before.relative()),
            figure(change.metric, change.after.median),
            half_range(change.after.relative()),
            unit(change.metric),
            format!("{:+.1} %", change.change * 100.0),
        ),
        name(change.verdict).into(),
    ]
}

fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::BytesPerConnection => "per connection",
        _ => metric_short(metric),
    }
}

fn half_range(relative: f64) -> String {
    format!("{:.1}%", relative * 100.0)
}

fn name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::WithinNoise => "within noise",
        Verdict::Worse => "worse",
    }
}
