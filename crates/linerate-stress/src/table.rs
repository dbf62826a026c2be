//! The results as text, Markdown and JSON.

use std::{fmt::Write as _, time::Duration};

use anyhow::Result;
use serde_json::json;

use crate::{
    figures::Span,
    outcome::{Outcome, RATIO_MAX},
};

/// Returns the lines of a row.
pub(crate) fn text(name: &str, outcome: &Outcome) -> String {
    let mut text = format!("{name}: {}\n", outcome.abuse);
    for (what, figure, bound) in cells(outcome) {
        // Writing to a string cannot fail.
        _ = writeln!(text, "  {what:9} {figure}  ({bound})");
    }
    for finding in &outcome.also {
        _ = writeln!(text, "  {}", finding.text);
    }
    if let Some(why) = undecided(outcome) {
        _ = writeln!(text, "  NO VERDICT on p99: {why}");
    }
    match &outcome.broken()[..] {
        [] => text.push_str("  good"),
        broken => _ = write!(text, "  BROKEN: {}", broken.join("; ")),
    }
    text
}

/// Returns all rows as a Markdown table.
pub(crate) fn markdown(outcomes: &[(String, Outcome)]) -> String {
    let mut text = String::from(
        "| row | abuse | memory in MiB: before → peak → after (growth at most) | files | CPU | p99 alone → with (at most) | other findings |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, outcome) in outcomes {
        let [memory, files, processor, waiting] = cells(outcome);
        let mut also: Vec<_> = outcome.also.iter().map(|also| also.text.clone()).collect();
        also.extend(undecided(outcome).map(|why| format!("no verdict on p99: {why}")));
        let broken = match &outcome.broken()[..] {
            [] => String::new(),
            broken => format!(" **{}**", broken.join("; ")),
        };
        _ = writeln!(
            text,
            "| `{name}` | {} | {} ({}) | {} | {} | {} ({}) | {}{broken} |",
            outcome.abuse,
            memory.1,
            memory.2,
            files.1,
            processor.1,
            waiting.1,
            waiting.2,
            also.join("; "),
        );
    }
    text
}

/// Returns why there is no verdict on the latency, if there is none.
fn undecided(outcome: &Outcome) -> Option<String> {
    outcome.is_undecided().then(|| {
        let percent = outcome.figures.stolen_share * 100.0;
        format!("the host took {percent:.1} % of the machine's CPU time")
    })
}

/// Returns all rows as JSON.
pub(crate) fn json(outcomes: &[(String, Outcome)]) -> Result<String> {
    let rows = outcomes.iter().map(|(name, outcome)| {
        json!({
            "row": name,
            "outcome": outcome,
            "broken": outcome.broken(),
            "undecided": undecided(outcome),
        })
    });
    Ok(serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?)
}

/// Returns the figures that every row has: their names, values and bounds.
fn cells(outcome: &Outcome) -> [(&'static str, String, String); 4] {
    let figures = &outcome.figures;
    let bound = Duration::max(
        figures.p99_alone.mul_f64(RATIO_MAX),
        outcome.bounds.p99_free,
    );
    [
        (
            "memory",
            span(figures.memory_bytes, mebibytes),
            mebibytes(outcome.bounds.memory_growth_max),
        ),
        (
            "files",
            span(figures.files, |files| files.to_string()),
            figures.files.before.to_string(),
        ),
        (
            "CPU",
            format!("{:.0} %", figures.processor_share * 100.0),
            "of a core".to_owned(),
        ),
        (
            "p99",
            format!("{} → {}", time(figures.p99_alone), time(figures.p99_with)),
            time(bound),
        ),
    ]
}

fn span(span: Span, show: impl Fn(u64) -> String) -> String {
    let Span {
        before,
        peak,
        after,
    } = span;
    format!("{} → {} → {}", show(before), show(peak), show(after))
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

fn time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..10_000 => format!("{micros} µs"),
        micros => format!("{:.1} ms", micros as f64 / 1_000.0),
    }
}
