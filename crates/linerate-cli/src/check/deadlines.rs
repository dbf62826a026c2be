//! `linerate check --patience`: connections that are abandoned midway.

use std::{ops::Range, time::Duration};

use anyhow::Context;
use linerate_check::{Claims, Finding, Plan, Row, Victim};

use super::{phase, progress::Progress};

/// Sends the rows of this range, all at the same time, and waits for the server to end their
/// connections. If the server's process is known, an additional row judges the memory that it
/// allocated meanwhile.
pub(super) async fn run(
    plan: &Plan,
    rows: &mut Vec<Row>,
    range: Range<usize>,
    (patience, victim): (Duration, Option<&Victim>),
    progress: &Progress,
) -> anyhow::Result<Vec<Finding>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let of_range = &rows[range.clone()];
    let plan = Plan {
        jobs: of_range.iter().map(|row| row.cases.len()).sum(),
        patience,
        ..plan.clone()
    };
    progress.wait_for(of_range, patience);
    let work = phase(&plan, rows, range, progress);
    let (mut findings, claims): (_, Option<Claims>) = match victim {
        None => (work.await, None),
        Some(victim) => {
            let claimed = victim.claim(work).await;
            let (findings, claims) = claimed.context("server process exited")?;
            (findings, Some(claims))
        }
    };
    progress.stop_waiting();
    if let Some(claims) = claims {
        findings.push(claims.finding(rows.len(), rows, &findings));
        rows.push(Claims::row());
    }
    Ok(findings)
}
