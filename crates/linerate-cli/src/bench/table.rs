//! The summary of a record as a table for the terminal.

use std::iter;

use linerate_bench::summary::{Base, CellSummary, Mean, Spread, Standing, Status, Summary};
use linerate_harness::table::{Align, Table};

/// Shown where there is no figure.
const NONE: &str = "–";

/// Returns a comparison of the contenders by scenario, or the figures of each cell if there is only
/// one contender.
pub(super) fn summary(summary: &Summary) -> String {
    match summary.contenders.as_slice() {
        [alone] => cells_of(summary, alone),
        _ => comparison(summary),
    }
}

fn comparison(summary: &Summary) -> String {
    let has_first = summary
        .scenarios
        .iter()
        .any(|scenario| scenario.base == Base::First);
    let mut head = vec![String::new()];
    for scenario in &summary.scenarios {
        let star = if scenario.base == Base::First {
            "*"
        } else {
            ""
        };
        head.push(format!("{}{star}", scenario.note.name));
    }
    head.push("all".into());
    let rows = summary.contenders.iter().map(|contender| {
        let mut row = vec![contender.clone()];
        let means = summary
            .scenarios
            .iter()
            .map(|scenario| scenario.mean(contender));
        row.extend(means.map(ratio));
        row.push(ratio(summary.overall(contender, Base::RawTcp)));
        row
    });
    let mut text = align(head, rows);
    text += "\nRelative to raw-tcp (geometric means, higher is better); failed and unsupported cells are left out.\n";
    if has_first {
        text += "* Relative to the best contender of each cell, because raw-tcp cannot be compared there.\n";
    }
    text
}

fn ratio(mean: Option<Mean>) -> String {
    mean.map_or_else(|| NONE.into(), |mean| format!("{:.2}", mean.ratio))
}

fn cells_of(summary: &Summary, contender: &str) -> String {
    let head = ["", "messages/s", "…/CPU-s", "p50 µs", "p99 µs", ""];
    let rows = summary
        .cells()
        .filter_map(|cell| Some(row_of(cell, cell.standing(contender)?)));
    align(head.map(String::from).to_vec(), rows)
}

fn row_of(cell: &CellSummary, standing: &Standing) -> Vec<String> {
    let medians = standing.medians.as_ref();
    let figure = |spread: Option<Spread>, decimals: usize| match spread {
        Some(spread) => format!("{:.decimals$}", spread.median),
        None => NONE.into(),
    };
    vec![
        cell.cell.id(),
        figure(medians.and_then(|it| it.messages_per_second), 0),
        figure(medians.and_then(|it| it.messages_per_cpu_second), 0),
        figure(medians.and_then(|it| it.p50_us), 1),
        figure(medians.and_then(|it| it.p99_us), 1),
        why_not(&standing.status),
    ]
}

/// Returns the reason why a cell has no figures, or an empty string if it has.
fn why_not(status: &Status) -> String {
    match status {
        Status::Failed { reason, .. } => format!("failed: {reason}"),
        Status::LoadBound { .. } => "faster than the load generator".into(),
        Status::Measured { .. } => String::new(),
        Status::Unsupported { reason } => reason.clone(),
    }
}

/// Returns the rows as lines, with the first column left-aligned and the others right-aligned.
fn align(head: Vec<String>, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let aligns = iter::once(Align::Left).chain(iter::repeat(Align::Right));
    Table::new(head.into_iter().zip(aligns), rows).text()
}
