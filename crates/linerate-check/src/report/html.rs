//! The HTML page. It is self-contained, and works on phones and in light and dark mode.

use maud::{DOCTYPE, Markup, PreEscaped, html as markup};

use super::{HEX_BYTES_MAX, Report};
use crate::{
    case::{Row, Verdict},
    outcome::hex,
    run::Finding,
};

const STYLE: &str = include_str!("html/style.css");

/// Returns the page.
pub fn html(report: &Report<'_>) -> String {
    let counts = report.counts();
    let bad = counts.of(Verdict::Wrong) + counts.of(Verdict::Dangerous);
    markup! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "WebSocket check of " (report.name) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "WebSocket check" }
                    p { code { (report.name) } }
                    p.result {
                        @if bad == 0 { "No rule is broken." }
                        @else { "A rule is broken for " (bad) " of " (counts.all()) " inputs." }
                    }
                }
                main {
                    (table(report))
                    @if let Some(process) = report.process { p { "Server process: " (process) "." } }
                    @for why in report.left_out { p { "Left out: " (why) "." } }
                    @for (row, findings) in report.by_row() { (section(row, &findings)) }
                }
                footer { p { "Made by " code { "linerate check" } "." } }
            }
        }
    }
    .into_string()
}

fn table(report: &Report<'_>) -> Markup {
    markup! {
        div.scroll {
            table {
                thead {
                    tr {
                        th scope="col" { "Area" }
                        th scope="col" { "Inputs" }
                        @for verdict in Verdict::ALL { th scope="col" { (verdict.name()) } }
                    }
                }
                tbody {
                    @for (area, counts) in report.areas() {
                        tr {
                            th scope="row" { (area.name()) }
                            td { (counts.all()) }
                            @for verdict in Verdict::ALL {
                                td class=(class(verdict, counts.of(verdict))) { (counts.of(verdict)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(verdict: Verdict, count: usize) -> &'static str {
    match (verdict, count) {
        (_, 0) => "none",
        (Verdict::Right, _) => "right",
        (Verdict::Permitted | Verdict::NotApplicable, _) => "permitted",
        (Verdict::Wrong | Verdict::Dangerous, _) => "bad",
    }
}

/// Returns the section of a row, which is expanded if a verdict is bad.
fn section(row: &Row, findings: &[&Finding]) -> Markup {
    let worst = |verdict: Verdict| {
        findings
            .iter()
            .any(|finding| finding.judgement.verdict == verdict)
    };
    let order = [
        Verdict::Dangerous,
        Verdict::Wrong,
        Verdict::Permitted,
        Verdict::Right,
    ];
    let worst = order.into_iter().find(|verdict| worst(*verdict));
    let worst = worst.unwrap_or(Verdict::NotApplicable);
    markup! {
        @if !findings.is_empty() {
            details open[worst.is_bad()] {
                summary {
                    b { (row.id) } " " (row.title) " "
                    span class=(class(worst, 1)) { (worst.name()) }
                }
                p { "Required: " (row.required) " (" (row.section) ")" }
                ul {
                    @for finding in findings { (item(row, finding)) }
                }
            }
        }
    }
}

fn item(row: &Row, finding: &Finding) -> Markup {
    let judgement = &finding.judgement;
    let name = row.cases.get(finding.case).map_or("", |case| &case.name);
    markup! {
        li {
            b { (name) } " "
            span class=(class(judgement.verdict, 1)) { (judgement.verdict.name()) }
            @if !judgement.why.is_empty() { " " (judgement.why) }
            @if judgement.verdict != Verdict::Right {
                br; code { (hex(&finding.sent, HEX_BYTES_MAX)) }
                br; "came back: " (finding.outcome.in_words())
            }
        }
    }
}
