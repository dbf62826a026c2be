//! `linerate check --stress`: floods, and their effect on the process that receives them.

use std::{ops::Range, time::Duration};

use anyhow::Context;
use linerate_check::{Aftermath, Finding, Plan, Row, Victim};

use super::{phase, progress::Progress};

/// Sends the rows of this range. If `victim` is given, then waits up to the duration next to it for
/// the process to return to its earlier state, and judges the result in an additional row.
pub(super) async fn run(
    plan: &Plan,
    rows: &mut Vec<Row>,
    range: Range<usize>,
    victim: Option<(&Victim, Duration)>,
    progress: &Progress,
) -> anyhow::Result<(Vec<Finding>, Option<Aftermath>)> {
    let work = || phase(plan, rows, range.clone(), progress);
    let Some((victim, settle)) = victim else {
        return Ok((work().await, None));
    };
    let endured = victim.endure(work, settle).await;
    let (mut findings, aftermath) = endured.context("server process exited")?;
    findings.extend(aftermath.findings(rows.len()));
    rows.push(Aftermath::row());
    Ok((findings, Some(aftermath)))
}
