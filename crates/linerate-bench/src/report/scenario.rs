//! A scenario: its description, and a chart and a table for each of its cells.

use maud::{Markup, html};

use crate::report::behind::anchor;
use crate::report::matrix::Matrix;
use crate::report::number::{counted, ratio};
use crate::report::words::{NO_HEADLINE, Names, metric, status};
use crate::report::{chart, table};
use crate::summary::{CellSummary, Metric, REFERENCE, ScenarioSummary, Standing, Status, is_ours};

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

/// Lists contenders that have no figure, or of whose rounds some were left out, with the reason.
pub(super) fn not_counted(cell: &CellSummary, names: &Names<'_>) -> Markup {
    let reason = |standing: &Standing| {
        let fallback = standing.headline.is_none().then(|| NO_HEADLINE.into());
        status(&standing.status).or(fallback)
    };
    let listed: Vec<(&Standing, String)> = cell
        .counted()
        .chain(cell.not_counted())
        .filter_map(|standing| Some((standing, reason(standing)?)))
        .collect();
    html! {
        @if !listed.is_empty() {
            ul.not-counted {
                @for (standing, reason) in listed {
                    li { strong { (names.title(&standing.contender)) } " " (reason) }
                }
            }
        }
    }
}

/// States which contender is first, and how linerate compares.
pub(super) fn verdict(cell: &CellSummary, names: &Names<'_>) -> String {
    if cell.is_load_bound() {
        let bound = cell.standings.iter().filter(|it| {
            matches!(it.status, Status::LoadBound { .. }) && it.contender != REFERENCE
        });
        let titles: Vec<&str> = bound.map(|it| names.title(&it.contender)).collect();
        return format!(
            "Not measurable here: load-bound. The load generator was too slow for {}, so no contender is ranked first.",
            titles.join(", ")
        );
    }
    let Some(first) = cell.first() else {
        return "No valid figure.".into();
    };
    let title = names.title(&first.contender);
    let Some(ours) = cell.ours() else {
        return format!("{title} is first.");
    };
    let our_title = names.title(&ours.contender);
    if is_ours(&first.contender) {
        return match cell.best_peer().zip(ours.to_best_peer) {
            Some((next, it)) if it >= 1.0 => format!(
                "{our_title} is first, {}× {}.",
                ratio(it),
                names.title(&next.contender)
            ),
            Some((next, _)) => format!(
                "{our_title} is first, level with {}.",
                names.title(&next.contender)
            ),
            None => format!("{our_title} is first, alone."),
        };
    }
    match ours.rank.zip(ours.to_first) {
        Some((rank, it)) => format!(
            "{title} is first; {our_title} is no. {rank}, {} times as good.",
            ratio(it)
        ),
        None => format!("{title} is first; {our_title} has no figure."),
    }
}
