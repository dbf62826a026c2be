//! Every cell in which no server of linerate is first.

use maud::{Markup, html};

use crate::report::number::ratio;
use crate::report::words::{NO_HEADLINE, Names, figure, metric_short, status};
use crate::summary::{LostCell, Summary, is_ours};

/// Renders the list, or nothing if linerate did not take part.
pub(super) fn section(summary: &Summary, names: &Names<'_>) -> Markup {
    let took_part = summary.contenders.iter().any(|name| is_ours(name));
    let behind = summary.lost_cells();
    html! {
        @if took_part {
            section #behind {
                h2 { "Where linerate is not first" }
                @if behind.is_empty() {
                    p { "There is no such cell in this run." }
                } @else {
                    (table(&behind, names))
                }
            }
        }
    }
}

fn table(behind: &[LostCell<'_>], names: &Names<'_>) -> Markup {
    html! {
        p {
            "All such cells, including those in which linerate has no figure. linerate has several servers, of which the best in each \
             cell is shown. “Clear” means that every round of the first was better than every round of linerate. The other \
             differences are within the spread, and another run may well reverse them."
        }
        div.scroll role="region" tabindex="0" aria-label="Cells in which linerate is not first" {
            table.behind {
                thead {
                    tr {
                        th scope="col" { "cell" }
                        th scope="col" { "first" }
                        th scope="col" { "its figure" }
                        th scope="col" { "linerate" }
                        th scope="col" { "rank" }
                        th scope="col" { "ahead by" }
                        th scope="col" { "difference" }
                    }
                }
                tbody { @for it in behind { (row(it, names)) } }
            }
        }
    }
}

fn row(behind: &LostCell<'_>, names: &Names<'_>) -> Markup {
    let cell = behind.cell;
    let with_unit = |it: f64| format!("{} {}", figure(cell.metric, it), metric_short(cell.metric));
    let first = behind.first.headline.map(|it| with_unit(it.median));
    html! {
        tr {
            th scope="row" { a href={ "#" (anchor(&cell.cell.id())) } { (cell.cell.scenario) ": " (cell.cell.title) } }
            td class=(names.class(&behind.first.contender)) { (names.title(&behind.first.contender)) }
            td { (first.unwrap_or_default()) }
            @match (behind.lead, behind.ours.headline) {
                (Some(lead), Some(own)) => {
                    td { (figure(cell.metric, own.median)) " (" (names.title(&behind.ours.contender)) ")" }
                    td { (lead.rank) }
                    td { (ratio(lead.factor)) "×" }
                    td { @if lead.is_clear { strong { "clear" } } @else { "within the spread" } }
                }
                _ => {
                    td.why colspan="4" {
                        (status(&behind.ours.status).unwrap_or_else(|| NO_HEADLINE.into()))
                    }
                }
            }
        }
    }
}

/// Returns the fragment that names a cell: its id, with the characters replaced that a fragment
/// cannot contain.
pub(super) fn anchor(id: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '-'
        }
    };
    format!("cell-{}", id.chars().map(safe).collect::<String>())
}
