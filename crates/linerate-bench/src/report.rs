//! Reports: a self-contained HTML page, and Markdown for a README.
//!
//! Charts are lists whose bars are placed in per cent. They are written with `maud` instead of a
//! charting library, because they have to follow light and dark mode and the width of the window by
//! CSS alone, make sense to a screen reader, and work from a file without JavaScript. Every
//! committed record also comes with its page, to each of which a bundle would add hundreds of
//! identical kilobytes.

mod about;
mod behind;
mod chart;
mod heat;
mod markdown;
mod matrix;
pub(crate) mod number;
mod prose;
mod scenario;
mod table;
#[cfg(test)]
mod tests;
mod words;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::record::{Record, Run};
use crate::summary::{Summary, is_ours};
use words::Names;

pub use markdown::markdown;

const STYLE: &str = include_str!("report/style.css");

/// Renders the page of a record as HTML that refers to no other file.
pub fn html(record: &Record) -> String {
    let summary = Summary::of(record);
    let names = Names::new(record);
    let run = &record.run;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "WebSocket servers, measured " (date(&run.started)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#summary" { "Skip to the summary" }
                (head(run, &summary))
                main {
                    (heat::section(&summary, &names))
                    (behind::section(&summary, &names))
                    (legend(record, &names))
                    @for scenario in &summary.scenarios { (scenario::section(scenario, &names)) }
                    (about::contenders(record, &names))
                    (about::method())
                    (about::machine(&run.host))
                }
                footer {
                    p { "Made by linerate " (run.linerate) " from nothing but a record of JSON lines." }
                }
            }
        }
    };
    page.into_string()
}

fn head(run: &Run, summary: &Summary) -> Markup {
    let took_part = summary.contenders.iter().any(|name| is_ours(name));
    let behind = took_part.then_some(("behind", "Where linerate is not first"));
    let sections = [
        ("contenders", "Contenders"),
        ("method", "Method"),
        ("bias", "Bias"),
        ("machine", "Machine"),
    ];
    html! {
        header {
            h1 { "WebSocket servers, measured" }
            p.when {
                time datetime=(run.started) { (date(&run.started)) }
                " · " (about::machine_line(&run.host))
            }
            p.when {
                "Effort “" (run.effort) "”: up to " (number::counted(run.rounds as usize, "round")) " of "
                (run.measured_ms) " ms after " (run.warm_up_ms) " ms of warm-up"
            }
            pre { code { (run.command) } }
            nav aria-label="Sections" {
                ul {
                    li { a href="#summary" { "At a glance" } }
                    @for scenario in &summary.scenarios {
                        li { a href={ "#scenario-" (scenario.note.name) } { (scenario.note.name) } }
                    }
                    @for (id, title) in behind.into_iter().chain(sections) { li { a href={ "#" (id) } { (title) } } }
                }
            }
        }
    }
}

/// Explains the colours and marks of all charts.
fn legend(record: &Record, names: &Names<'_>) -> Markup {
    let mut languages: Vec<(&str, &str)> = record
        .run
        .contenders
        .iter()
        .filter(|note| note.absent.is_none())
        .map(|note| (names.class(&note.name), note.language.as_str()))
        .map(|(class, language)| match class {
            "us" => (class, "linerate"),
            "raw" => (class, "raw TCP, the reference"),
            _ => (class, language),
        })
        .collect();
    languages.sort_unstable();
    languages.dedup();
    html! {
        section.legend aria-label="How to read the charts" {
            ul {
                @for (class, label) in languages { li class=(class) { i aria-hidden="true" {} (label) } }
            }
            p {
                "A bar is the median of the rounds; the thin line on it extends from the lowest to the highest round. The dashed \
                 line is raw TCP; where that is too far away to be shown to scale, its bar fades out."
            }
        }
    }
}

/// Returns the date of an RFC 3339 timestamp.
fn date(started: &str) -> &str {
    started.split('T').next().unwrap_or(started)
}
