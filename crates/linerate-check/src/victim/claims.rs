//! What a process has asked for while lengths were only claimed (RFC 6455 §10.4).

use std::{future::Future, io, time::Duration};

use super::Victim;
use crate::{
    case::{Case, Expect, Input, Opening, Row},
    catalogue,
    judge::Judgement,
    outcome::Outcome,
    run::Finding,
};

/// What everything else may take that goes on meanwhile.
const ROOM_BYTES: u64 = 1 << 20;

/// Whoever ends a connection within this time has not taken the claim.
const HELD_MIN: Duration = Duration::from_secs(1);

/// The memory of a process before lengths were claimed, and the most meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    before_bytes: u64,
    peak_bytes: u64,
}

impl Victim {
    /// Claims lengths by `work`; returns what comes of it and what the process has asked for.
    ///
    /// # Errors
    /// It is gone.
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
    /// Returns the row that it is judged by.
    pub fn row() -> Row {
        let case = Case {
            name: "memory".into(),
            input: Input {
                opening: Opening::WebSocket,
                stages: Vec::new(),
                ends: false,
            },
            expect: Expect::Survive(Vec::new()),
        };
        Row {
            id: "F09",
            title: "memory for payloads that are announced and do not come",
            section: "RFC 6455 §10.4",
            required: "allocate for what has come, not for what is claimed",
            cases: vec![case],
        }
    }

    /// Returns the finding for the row at this place, where these are what became of `rows`.
    pub fn finding(&self, row: usize, rows: &[Row], findings: &[Finding]) -> Finding {
        let taken = findings
            .iter()
            .filter(|finding| finding.outcome.took >= HELD_MIN);
        let cases = taken.filter_map(|found| rows.get(found.row)?.cases.get(found.case));
        let claimed = cases.map(catalogue::claimed_bytes).sum::<usize>() as u64;
        let grown = self.peak_bytes.saturating_sub(self.before_bytes);
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let figures = format!(
            "{:.1} MiB claimed and taken, {:.1} MiB more asked for",
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
        return Judgement::not_applicable("the server keeps no connection that claims a length");
    }
    if grown > claimed / 2 + ROOM_BYTES {
        return Judgement::wrong("memory is asked for by what is claimed");
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
