//! The summary: how good each contender is in each scenario, as a table coloured by ratio.

use maud::{Markup, html};

use crate::report::number::{counted, ratio};
use crate::report::words::Names;
use crate::summary::{Base, Mean, OURS, REFERENCE, ScenarioSummary, Summary, is_ours};

/// Number of shades in the table, the lightest one first.
const SHADES: f64 = 8.0;

/// Ratios up to this one have the lightest shade. Ratios from 1 have the darkest.
const RATIO_MIN: f64 = 0.02;

/// Renders the sentences about the results, and the table.
pub(super) fn section(summary: &Summary, names: &Names<'_>) -> Markup {
    html! {
        section #summary {
            h2 { "At a glance" }
            @for sentence in sentences(summary, names) { p { (sentence) } }
            @if summary.contenders.len() > 1 { (heat_map(summary, names)) }
        }
    }
}

/// Describes in words how linerate did.
pub(super) fn sentences(summary: &Summary, names: &Names<'_>) -> Vec<String> {
    let counted_cells = summary
        .cells()
        .filter(|cell| cell.first().is_some())
        .count();
    let ours = summary.cells().filter_map(|cell| cell.ours());
    let ranks: Vec<Option<usize>> = ours.map(|it| it.rank).collect();
    if ranks.is_empty() {
        return vec![format!(
            "{} valid figures. linerate did not take part.",
            have(counted_cells)
        )];
    }
    let (undecided, behind): (Vec<_>, Vec<_>) = summary
        .lost_cells()
        .into_iter()
        .partition(|it| it.cell.is_load_bound());
    let lost = undecided.len();
    let clear = behind
        .iter()
        .filter(|it| it.lead.is_some_and(|lead| lead.is_clear))
        .count();
    let without = behind.iter().filter(|it| it.lead.is_none()).count();
    let took_part: Vec<&str> = OURS
        .into_iter()
        .filter(|name| summary.contenders.iter().any(|it| it == name))
        .collect();
    let titles: Vec<&str> = took_part.iter().map(|name| names.title(name)).collect();
    let best = match titles.as_slice() {
        [title] => (*title).to_owned(),
        titles => format!("The best of {}", titles.join(", ")),
    };
    let mut sentences = vec![format!(
        "{} valid figures. {best} is first in {} of them and not first in {}: in {clear} of these \
         the difference exceeds the spread of the rounds; in {without} it has no valid figure.",
        have(counted_cells),
        ranks.iter().filter(|rank| **rank == Some(1)).count(),
        behind.len(),
    )];
    let undecided = summary.cells().filter(|cell| cell.is_load_bound()).count();
    if undecided > 0 {
        sentences.push(format!(
            "In {} no contender is ranked first, because the load generator was too slow for at least one of them. In {lost} \
             of these cells, another contender has the best measured figure.",
            counted(undecided, "more cell"),
        ));
    }
    let rival = summary
        .contenders
        .iter()
        .filter(|name| !is_ours(name) && name.as_str() != REFERENCE)
        .filter_map(|name| Some((name, summary.overall(name, Base::RawTcp)?)))
        .filter(|(_, it)| it.count == it.of)
        .max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let rival = rival.map_or(String::new(), |(name, it)| {
        format!(
            "; {}, the best other contender with figures in all of them, reaches {}",
            names.title(name),
            ratio(it.ratio)
        )
    });
    let means: Vec<(String, Mean)> = took_part
        .iter()
        .filter_map(|name| {
            Some((
                names.title(name).to_owned(),
                summary.overall(name, Base::RawTcp)?,
            ))
        })
        .collect();
    if let Some((_, first)) = means.first() {
        let ours: Vec<String> = means
            .iter()
            .map(|(title, mean)| format!("{title} reaches {}", of_scenarios(*mean)))
            .collect();
        sentences.push(format!(
            "Relative to a bare TCP echo, over the {} in which it is an upper bound, {}{rival}.",
            counted(first.of, "scenario"),
            ours.join(", "),
        ));
    }
    sentences
}

/// Formats a mean, with the number of its scenarios if it does not cover all of them.
fn of_scenarios(mean: Mean) -> String {
    if mean.count == mean.of {
        ratio(mean.ratio)
    } else {
        format!("{} (in {} of them)", ratio(mean.ratio), mean.count)
    }
}

fn have(cells: usize) -> String {
    let verb = if cells == 1 { "has" } else { "have" };
    format!("{} {verb}", counted(cells, "cell"))
}

fn heat_map(summary: &Summary, names: &Names<'_>) -> Markup {
    let has_overall = summary.scenarios.iter().any(|it| it.base == Base::RawTcp);
    html! {
        figure {
            div.scroll role="region" tabindex="0" aria-label="Ratios by contender and scenario" {
                table.heat {
                    thead {
                        tr {
                            th scope="col" { "contender" }
                            @if has_overall { th scope="col" { "overall" } }
                            @for scenario in &summary.scenarios {
                                th scope="col" {
                                    a href={ "#scenario-" (scenario.note.name) } { (scenario.note.name) }
                                    @if scenario.base == Base::First { sup { "†" } }
                                }
                            }
                        }
                    }
                    tbody {
                        @for name in &summary.contenders {
                            tr class=(names.class(name)) {
                                th scope="row" { (names.title(name)) }
                                @if has_overall { (shaded(summary.overall(name, Base::RawTcp))) }
                                @for scenario in &summary.scenarios { (shaded(scenario.mean(name))) }
                            }
                        }
                    }
                }
            }
            figcaption { (caption(&summary.scenarios)) }
        }
    }
}

fn caption(scenarios: &[ScenarioSummary]) -> Markup {
    html! {
        "Performance relative to "
        code { "raw-tcp" }
        ", a bare TCP echo that does not speak WebSocket: the geometric mean of the compared figures over the cells of a scenario. \
         The stronger the colour, the better. “Overall” is the geometric mean of the scenarios, each with the same weight. A small \
         “3/4” means that a contender has figures in three of four cells (or scenarios), so its mean covers fewer cells than those of others. \
         Cells that compare latency are left out unless a scenario has no others."
        @if scenarios.iter().any(|it| it.base == Base::First) {
            " † The base is the first of each cell instead, because " code { "raw-tcp" }
            " cannot take part or memory is compared. Not part of “overall”."
        }
        @if scenarios.iter().any(|it| it.base == Base::RawTcp && !it.is_bounded()) {
            " Scenarios in which " code { "raw-tcp" } " is not an upper bound are not part of “overall” either: it answers each piece \
             that arrives, and writes to each subscriber separately."
        }
    }
}

fn shaded(mean: Option<Mean>) -> Markup {
    let Some(mean) = mean else {
        return html! { td.none { "–" } };
    };
    html! {
        td class=(format!("h{}", shade(mean.ratio))) {
            (ratio(mean.ratio))
            @if mean.count < mean.of { small { (mean.count) "/" (mean.of) } }
        }
    }
}

/// Returns the number of the shade for a ratio, on a logarithmic scale.
fn shade(ratio: f64) -> u32 {
    let share = 1.0 - (ratio.clamp(RATIO_MIN, 1.0).ln() / RATIO_MIN.ln());
    (share * SHADES).floor().min(SHADES - 1.0) as u32
}

#[cfg(test)]
mod tests {
    use super::shade;

    #[test]
    fn shades_follow_the_ratio_and_end_at_both_ends() {
        assert_eq!(shade(0.000_1), 0);
        assert_eq!(shade(0.02), 0);
        assert_eq!(shade(1.0), 7);
        assert_eq!(shade(31.0), 7);
        assert!(shade(0.2) < shade(0.6));
    }
}
