//! A scenario: its description, and a chart and a table for each of its cells.

use maud::{Markup, html};

use crate::report::behind::anchor;
use crate::report::matrix::Matrix;
use crate::report::number::counted;
use crate::report::verdict::{not_counted, verdict};
use crate::report::words::{Names, metric};
use crate::report::{chart, table};
use crate::summary::{CellSummary, Metric, ScenarioSummary};

/// Renders a scenario.
pub(super) fn section(scenario: &ScenarioSummary, names: &Names<'_>) -> Markup {
    let note = &scenario.note;
    html! {
        section.scenario id={ "scenario-" (note.name) } {
            h2 { (note.title) " " small { (note.name) } }
            p.about { (note.about) " " (counted(note.rounds as usize, "round")) " for each cell." }
            @if let Some(matrix) = Matrix::of(&scenario.cells) {
                (matrix.draw(names))
            } @else {
                div.cells { @for cell in &scenario.cells { (figure(cell, names)) } }
            }
        }
    }
}

fn figure(cell: &CellSummary, names: &Names<'_>) -> Markup {
    let latency = chart::latency(cell, names);
    let is_about_latency = cell.metric == Metric::LatencyP99;
    html! {
        figure.cell id=(anchor(&cell.cell.id())) {
            figcaption {
                h3 { (cell.cell.title) }
                p.verdict { (verdict(cell, names)) }
                p.metric {
                    (metric(cell.metric))
                    @if is_about_latency { " " (percentile_key()) }
                }
            }
            @if is_about_latency {
                @if let Some(latency) = &latency { (latency) }
            } @else {
                (chart::bars(cell, names))
            }
            (not_counted(cell, names))
            @if !is_about_latency && let Some(latency) = latency {
                details {
                    summary { "Latency" }
                    p.metric { "of each message, logarithmic; less is better " (percentile_key()) }
                    (latency)
                }
            }
            details {
                summary { "All figures" }
                (table::table(cell, names))
            }
        }
    }
}

/// Explains the marks of the percentiles.
fn percentile_key() -> Markup {
    html! {
        span.key {
            @for (class, label) in [("p50", "p50"), ("p90", "p90"), ("p99", "p99"), ("p999", "p99.9")] {
                span { i class=(class) aria-hidden="true" {} (label) }
            }
        }
    }
}
