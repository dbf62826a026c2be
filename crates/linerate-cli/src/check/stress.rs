//! `linerate check --stress`: floods, and what becomes of the process that they are sent to.

use std::{ops::Range, time::Duration};

use anyhow::Context;
use linerate_check::{Aftermath, Finding, Plan, Row, Victim};

use super::{phase, progress::Progress};

/// Sends the rows of this range, and waits for the process to be as before, for no longer than is said beside it.
/// What became of it is judged by a row more.
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
    let (mut findings, aftermath) = endured.context("the process is gone")?;
    findings.extend(aftermath.findings(rows.len()));
    rows.push(Aftermath::row());
    Ok((findings, Some(aftermath)))
}
