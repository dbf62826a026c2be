//! The summary of a record as a table for the terminal.

use linerate_bench::summary::{Base, CellSummary, Mean, Spread, Standing, Status, Summary};

/// Shown where there is no figure.
const NONE: &str = "–";

/// Returns a comparison of the contenders by scenario, or the figures of each cell if there is only
/// one contender.
pub(super) fn summary(summary: &Summary) -> String {
    match summary.contenders.as_slice() {
        [alone] => align(&cells_of(summary, alone)),
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
    let mut rows = vec![head];
    for contender in &summary.contenders {
        let mut row = vec![contender.clone()];
        let means = summary
            .scenarios
            .iter()
            .map(|scenario| scenario.mean(contender));
        row.extend(means.map(ratio));
        row.push(ratio(summary.overall(contender, Base::RawTcp)));
        rows.push(row);
    }
    let mut text = align(&rows);
    text += "\nRelative to raw-tcp (geometric means, higher is better); failed and unsupported cells are left out.\n";
    if has_first {
        text += "* Relative to the best contender of each cell, because raw-tcp cannot be compared there.\n";
    }
    text
}

fn ratio(mean: Option<Mean>) -> String {
    mean.map_or_else(|| NONE.into(), |mean| format!("{:.2}", mean.ratio))
}

fn cells_of(summary: &Summary, contender: &str) -> Vec<Vec<String>> {
    let head = ["", "messages/s", "…/CPU-s", "p50 µs", "p99 µs", ""];
    let mut rows = vec![head.map(String::from).to_vec()];
    for cell in summary.cells() {
        if let Some(standing) = cell.standing(contender) {
            rows.push(row_of(cell, standing));
        }
    }
    rows
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
fn align(rows: &[Vec<String>]) -> String {
    let width_of = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let width = width_of(column);
            if column == 0 {
                line += &format!("{cell:width$}");
            } else {
                line += &format!("  {cell:>width$}");
            }
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
