//! `linerate check --stress`: floods, and what becomes of the process that they are sent to.

use std::time::Duration;

use anyhow::Context;
use linerate_check::{Aftermath, Finding, Plan, Row, Victim};

/// Returns the process of this number.
pub(super) fn victim(pid: u32) -> anyhow::Result<Victim> {
    Victim::new(pid).with_context(|| format!("can't look at process {pid}"))
}

/// Sends the rows from `first` on, and waits for the process to be as before, for no longer than is said beside
/// it.
pub(super) async fn run(
    plan: &Plan,
    rows: &[Row],
    first: usize,
    victim: Option<(&Victim, Duration)>,
    tell: impl Fn(&Finding),
) -> anyhow::Result<(Vec<Finding>, Option<Aftermath>)> {
    let work = || linerate_check::run(plan, &rows[first..], &tell);
    let (mut findings, aftermath) = match victim {
        None => (work().await, None),
        Some((victim, settle)) => {
            let endured = victim.endure(work, settle).await;
            let (findings, aftermath) = endured.context("the process is gone")?;
            (findings, Some(aftermath))
        }
    };
    for finding in &mut findings {
        finding.row += first;
    }
    Ok((findings, aftermath))
}
