//! The verdict on a cell: which contender is first, and which contenders have no figure.

use maud::{Markup, html};

use crate::report::number::ratio;
use crate::report::words::{NO_HEADLINE, Names, status};
use crate::summary::{CellSummary, REFERENCE, Standing, Status, is_ours};

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

/// Returns the verdict in a few words.
pub(super) fn short_verdict(cell: &CellSummary, names: &Names<'_>) -> String {
    let Some(first) = cell.first() else {
        return "no valid figure".into();
    };
    let ours = cell.ours().and_then(|it| Some((it, it.rank?)));
    match ours {
        Some((ours, 1)) => format!("{} first", names.title(&ours.contender)),
        Some((ours, rank)) => format!(
            "{} first, {} no. {rank}",
            names.title(&first.contender),
            names.title(&ours.contender)
        ),
        None => format!("{} first", names.title(&first.contender)),
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
