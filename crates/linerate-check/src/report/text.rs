//! The summary for a terminal.

use std::fmt::Write;

use super::{HEX_BYTES_MAX, Report};
use crate::{
    case::{Row, Verdict},
    outcome::hex,
    run::Finding,
};

/// How many inputs of a row are shown in full.
const SHOWN_MAX: usize = 3;

/// Returns everything that is not right, and the counts.
pub fn text(report: &Report<'_>) -> String {
    let mut text = String::new();
    for (row, findings) in report.by_row() {
        for verdict in [Verdict::Permitted, Verdict::Wrong, Verdict::Dangerous] {
            let of_verdict = findings
                .iter()
                .copied()
                .filter(|finding| finding.judgement.verdict == verdict);
            let of_verdict: Vec<&Finding> = of_verdict.collect();
            if !of_verdict.is_empty() {
                write_row(&mut text, row, verdict, &of_verdict);
            }
        }
    }
    write_left_out(&mut text, report);
    write_counts(&mut text, report);
    text
}

// Writing to a string cannot fail.
fn write_row(text: &mut String, row: &Row, verdict: Verdict, findings: &[&Finding]) {
    _ = writeln!(text, "{} {}: {}", row.id, verdict.name(), row.title);
    _ = writeln!(text, "    required   {} ({})", row.required, row.section);
    for finding in findings.iter().take(SHOWN_MAX) {
        let name = row.cases.get(finding.case).map_or("", |case| &case.name);
        _ = writeln!(text, "  {}/{name}: {}", row.id, finding.judgement.why);
        _ = writeln!(text, "    sent       {}", hex(&finding.sent, HEX_BYTES_MAX));
        _ = writeln!(text, "    came back  {}", finding.outcome.in_words());
    }
    let others = findings.iter().skip(SHOWN_MAX);
    let others: Vec<&str> = others
        .filter_map(|finding| Some(&*row.cases.get(finding.case)?.name))
        .collect();
    if !others.is_empty() {
        _ = writeln!(text, "  and {}: {}", others.len(), others.join(", "));
    }
    text.push('\n');
}

fn write_left_out(text: &mut String, report: &Report<'_>) {
    if let Some(process) = report.process {
        _ = writeln!(text, "Server process: {process}.");
    }
    for why in report.left_out {
        _ = writeln!(text, "Left out: {why}.");
    }
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for finding in report.findings {
        if finding.judgement.verdict == Verdict::NotApplicable {
            let why = &*finding.judgement.why;
            match reasons.iter_mut().find(|(reason, _)| *reason == why) {
                Some((_, count)) => *count += 1,
                None => reasons.push((why, 1)),
            }
        }
    }
    for (reason, count) in reasons {
        _ = writeln!(text, "Not applicable ({count}): {reason}.");
    }
}

fn write_counts(text: &mut String, report: &Report<'_>) {
    _ = writeln!(text, "{}", report.name);
    _ = write!(text, "{:12}{:>8}", "area", "inputs");
    for verdict in Verdict::ALL {
        _ = write!(
            text,
            "{:>width$}",
            verdict.name(),
            width = verdict.name().len() + 2
        );
    }
    text.push('\n');
    let mut areas: Vec<_> = report
        .areas()
        .into_iter()
        .map(|(area, counts)| (area.name(), counts))
        .collect();
    areas.push(("all", report.counts()));
    for (name, counts) in areas {
        _ = write!(text, "{name:12}{:>8}", counts.all());
        for verdict in Verdict::ALL {
            let width = verdict.name().len() + 2;
            _ = write!(text, "{:>width$}", counts.of(verdict));
        }
        text.push('\n');
    }
}
