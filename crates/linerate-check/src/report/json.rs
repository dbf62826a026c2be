//! The JSON report: one object per line.

use serde_json::{Value, json};

use super::Report;
use crate::{
    case::{Row, Verdict},
    outcome::hex,
    run::Finding,
};

/// How many bytes of the sent input a line shows; longer inputs are truncated.
const SENT_BYTES_MAX: usize = 4 << 10;

/// Returns the line for the result of an input.
pub fn line(row: &Row, finding: &Finding) -> String {
    let input = row.cases.get(finding.case).map_or("", |case| &case.name);
    json!({
        "type": "input",
        "row": row.id,
        "input": input,
        "area": row.area(),
        "verdict": finding.judgement.verdict,
        "why": finding.judgement.why,
        "title": row.title,
        "section": row.section,
        "required": row.required,
        "sent": hex(&finding.sent, SENT_BYTES_MAX),
        "status": finding.outcome.head.as_ref().and_then(crate::http::Head::status),
        "close_code": finding.outcome.close.and_then(|closed| closed.code),
        "came_back": finding.outcome.in_words(),
        "figures": finding.outcome.figures,
        "ms": finding.outcome.took.as_millis() as u64,
    })
    .to_string()
}

/// Returns the last line, which has the counts.
pub fn summary_line(report: &Report<'_>) -> String {
    let counted = |counts: &super::Counts| -> Value {
        let of = |verdict: Verdict| (verdict.name().to_owned(), json!(counts.of(verdict)));
        Value::Object(Verdict::ALL.into_iter().map(of).collect())
    };
    let areas = report.areas();
    let areas = areas
        .iter()
        .map(|(area, counts)| (area.name().to_owned(), counted(counts)));
    json!({
        "type": "summary",
        "endpoint": report.name,
        "areas": Value::Object(areas.collect()),
        "all": counted(&report.counts()),
        "left_out": report.left_out,
        "process": report.process,
    })
    .to_string()
}
