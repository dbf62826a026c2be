//! The memory that a process allocates while clients claim lengths but send no payload
//! (RFC 6455 §10.4).

use std::{future::Future, io, time::Duration};

use super::Victim;
use crate::{
    case::{Case, Expect, Opening, Row},
    catalogue,
    judge::Judgement,
    outcome::Outcome,
    run::Finding,
};

/// How much everything else that the process does meanwhile may allocate.
const ROOM_BYTES: u64 = 1 << 20;

/// An endpoint that ends a connection sooner than this has not accepted the claim.
const HELD_MIN: Duration = Duration::from_secs(1);

/// The allocated memory of a process before lengths were claimed, and its peak meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    before_bytes: u64,
    peak_bytes: u64,
}

impl Victim {
    /// Runs `work`, which claims lengths. Returns its result and the memory that the process
    /// allocated.
    ///
    /// # Errors
    /// If the process has exited.
    pub async fn claim<T>(&self, work: impl Future<Output = T>) -> io::Result<(T, Claims)> {
        let before_bytes = self.figures()?.asked_bytes;
        let (done, peak) = self.watch(work).await;
        let claims = Claims {
            before_bytes,
            peak_bytes: peak.asked_bytes,
        };
        Ok((done, claims))
    }
}

impl Claims {
    /// Returns the row for this finding.
    pub fn row() -> Row {
        let expect = Expect::Survive(Vec::new());
        let case = Case::new("memory", Opening::WebSocket, Vec::new(), expect);
        Row {
            id: "F09",
            title: "memory for payloads that are announced and never arrive",
            section: "RFC 6455 §10.4",
            required: "allocate for what has arrived, not for what is claimed",
            cases: vec![case],
        }
    }

    /// Returns the finding for the row with the index `row`. `findings` are the results of `rows`,
    /// whose inputs claimed the lengths.
    pub fn finding(&self, row: usize, rows: &[Row], findings: &[Finding]) -> Finding {
        let taken = findings
            .iter()
            .filter(|finding| finding.outcome.took >= HELD_MIN);
        let cases = taken.filter_map(|found| rows.get(found.row)?.cases.get(found.case));
        let claimed = cases.map(catalogue::claimed_bytes).sum::<usize>() as u64;
        let grown = self.peak_bytes.saturating_sub(self.before_bytes);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let figures = format!(
            "{:.1} MiB claimed and accepted, {:.1} MiB more allocated",
            mib(claimed),
            mib(grown)
        );
        Finding {
            row,
            case: 0,
            sent: Vec::new(),
            outcome: Outcome {
                figures: Some(figures),
                ..Outcome::default()
            },
            judgement: judge(claimed, grown),
        }
    }
}

fn judge(claimed: u64, grown: u64) -> Judgement {
    if claimed == 0 {
        return Judgement::not_applicable("the server ends all connections that claim a length");
    }
    if grown > claimed / 2 + ROOM_BYTES {
        return Judgement::wrong("memory is allocated for claimed lengths");
    }
    Judgement::right()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;

    #[test]
    fn f09_memory_that_grows_by_claims_is_wrong() {
        let rows = catalogue::deadlines();
        let (row, content) = rows
            .iter()
            .enumerate()
            .find(|(_, row)| row.id == "R03")
            .unwrap();
        let found = |case, took| Finding {
            row,
            case,
            sent: Vec::new(),
            outcome: Outcome {
                took: Duration::from_secs(took),
                ..Outcome::default()
            },
            judgement: Judgement::right(),
        };
        let judged = |took, grown: u64| {
            let findings: Vec<Finding> = (0..content.cases.len())
                .map(|case| found(case, took))
                .collect();
            let claims = Claims {
                before_bytes: 7 << 20,
                peak_bytes: (7 << 20) + grown,
            };
            claims.finding(0, &rows, &findings).judgement.verdict
        };
        assert_eq!(judged(40, 300 << 20), Verdict::Wrong);
        assert_eq!(judged(40, 1 << 20), Verdict::Right);
        assert_eq!(judged(0, 300 << 20), Verdict::NotApplicable);
    }
}
