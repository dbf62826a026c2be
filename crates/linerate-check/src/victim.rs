//! Observes the process of a server under stress: its memory, open files and CPU time (proc(5)).

mod claims;
mod figures;

use std::{fmt, future::Future, io, pin::pin, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    case::{Case, Expect, Opening, Row},
    judge::Judgement,
    outcome::Outcome,
    run::Finding,
};

pub use claims::Claims;
pub use figures::Figures;

/// How often the process is sampled under stress.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// How often the process is sampled afterwards, and for how long it has to be idle.
const SETTLE_INTERVAL: Duration = Duration::from_secs(2);

/// How much the memory may grow without counting as kept: allocators never return everything. The
/// larger of these two values applies.
const MEMORY_PERCENT: u64 = 5;
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// How much of a core an idle process may use, in percent.
const IDLE_PERCENT: u128 = 5;

/// How often a process is put under stress until it is as it was before. Allocators keep what each
/// of their threads has needed once, and chance decides which threads a round reaches. What leaks
/// grows in every round.
const ROUNDS_MAX: usize = 4;

/// A process on this machine, by its id.
#[derive(Debug)]
pub struct Victim(u32);

/// The resources of a process before, during and after stress.
#[derive(Clone, Copy, Debug)]
pub struct Aftermath {
    /// The figures before any stress.
    pub fresh: Figures,
    /// The figures before the last round of stress.
    pub before: Figures,
    /// The highest memory and file figures that were seen.
    pub peak: Figures,
    /// The figures at the end.
    pub after: Figures,
    /// The CPU time used between the last two samples.
    idle: Duration,
    /// How long the process was observed after the stress.
    pub waited: Duration,
}

impl Victim {
    /// Returns the process with this id.
    ///
    /// # Errors
    /// If the process does not exist, this process has no permission to observe it, or the platform
    /// is not Linux.
    pub fn new(pid: u32) -> io::Result<Self> {
        let victim = Self(pid);
        victim.figures()?;
        Ok(victim)
    }

    /// Returns the current figures of the process.
    ///
    /// # Errors
    /// If the process has exited, or this process has no permission to observe it.
    pub fn figures(&self) -> io::Result<Figures> {
        Figures::read(self.0)
    }

    /// Runs `stress` and waits up to `settle` for the process to recover, in several rounds as long
    /// as it is not back to its state before the round: a process may keep what it needs once.
    /// Returns the result of the last round and the figures of the process.
    ///
    /// # Errors
    /// If the process has exited.
    pub async fn endure<T, F: Future<Output = T>>(
        &self,
        mut stress: impl FnMut() -> F,
        settle: Duration,
    ) -> io::Result<(T, Aftermath)> {
        let fresh = self.figures()?;
        let mut before = fresh;
        let mut round = 1;
        loop {
            let (done, peak) = self.watch(stress()).await;
            let aftermath = self.settle((fresh, before, peak), settle).await?;
            if aftermath.is_as_before() || round == ROUNDS_MAX {
                return Ok((done, aftermath));
            }
            before = aftermath.after;
            round += 1;
        }
    }

    /// Runs `work`. Returns its result and the highest figures seen meanwhile.
    async fn watch<T>(&self, work: impl Future<Output = T>) -> (T, Figures) {
        let mut work = pin!(work);
        let mut peak = Figures::default();
        loop {
            // A process that has exited is noticed afterwards.
            if let Ok(now) = self.figures() {
                peak.memory_bytes = peak.memory_bytes.max(now.memory_bytes);
                peak.asked_bytes = peak.asked_bytes.max(now.asked_bytes);
                peak.files = peak.files.max(now.files);
            }
            tokio::select! {
                done = &mut work => return (done, peak),
                () = sleep(SAMPLE_INTERVAL) => {}
            }
        }
    }

    /// Waits until the process is as it was before, for at most `settle`.
    ///
    /// # Errors
    /// If the process has exited.
    async fn settle(
        &self,
        (fresh, before, peak): (Figures, Figures, Figures),
        settle: Duration,
    ) -> io::Result<Aftermath> {
        let started = Instant::now();
        let mut last = self.figures()?;
        loop {
            sleep(SETTLE_INTERVAL).await;
            let after = self.figures()?;
            let aftermath = Aftermath {
                fresh,
                before,
                peak,
                after,
                idle: after.cpu.saturating_sub(last.cpu),
                waited: started.elapsed(),
            };
            if aftermath.is_as_before() || aftermath.waited >= settle {
                return Ok(aftermath);
            }
            last = after;
        }
    }
}

impl Aftermath {
    fn has_memory_back(&self) -> bool {
        let room = (self.before.memory_bytes * MEMORY_PERCENT / 100).max(MEMORY_BYTES_MIN);
        self.after.memory_bytes <= self.before.memory_bytes + room
    }

    fn has_files_back(&self) -> bool {
        self.after.files <= self.before.files
    }

    fn is_idle(&self) -> bool {
        self.idle.as_millis() * 100 <= SETTLE_INTERVAL.as_millis() * IDLE_PERCENT
    }

    /// Returns whether memory and files are back to their earlier figures and the process is idle.
    pub fn is_as_before(&self) -> bool {
        self.has_memory_back() && self.has_files_back() && self.is_idle()
    }

    /// Returns the row for these findings.
    pub fn row() -> Row {
        let case = |name| {
            let expect = Expect::Survive(Vec::new());
            Case::new(name, Opening::Nothing, Vec::new(), expect)
        };
        Row {
            id: "R12",
            title: "the server's process after the stress",
            section: "RFC 6455 §10.4",
            required: "return to the earlier state: memory within 5 % or 1 MiB, no more open files, at most 5 % of a core",
            cases: ["memory", "files", "time"].map(case).into(),
        }
    }

    /// Returns the findings for the row with this index.
    pub fn findings(&self, row: usize) -> Vec<Finding> {
        let wrong = |is_right: bool, why: String| match is_right {
            true => Judgement::right(),
            false => Judgement::wrong(why),
        };
        let waited = self.waited.as_secs();
        let memory = format!("memory is not released within {waited} s");
        let files = format!("files are not closed within {waited} s");
        let judged = [
            wrong(self.has_memory_back(), memory),
            wrong(self.has_files_back(), files),
            wrong(
                self.is_idle(),
                "it uses CPU time although it has nothing to do".into(),
            ),
        ];
        let finding = |(case, judgement)| Finding {
            row,
            case,
            sent: Vec::new(),
            outcome: Outcome {
                figures: Some(self.to_string()),
                took: self.waited,
                ..Outcome::default()
            },
            judgement,
        };
        judged.into_iter().enumerate().map(finding).collect()
    }
}

impl fmt::Display for Aftermath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fresh,
            before,
            peak,
            after,
            ..
        } = self;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "memory {:.1} MiB when fresh, {:.1} before, {:.1} at most, {:.1} {} s afterwards; files {}, {}, {}, {}; {:.1} s of a core",
            mib(fresh.memory_bytes),
            mib(before.memory_bytes),
            mib(peak.memory_bytes),
            mib(after.memory_bytes),
            self.waited.as_secs(),
            fresh.files,
            before.files,
            peak.files,
            after.files,
            after.cpu.saturating_sub(before.cpu).as_secs_f64(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::Verdict;

    #[test]
    fn a_process_can_be_observed() {
        let own = Victim::new(std::process::id()).unwrap().figures().unwrap();
        assert!(own.memory_bytes > 0 && own.files > 0, "{own:?}");
    }

    #[test]
    fn what_is_kept_is_wrong() {
        let figures = |mib: u64, files| Figures {
            memory_bytes: mib << 20,
            files,
            ..Figures::default()
        };
        let judged = |after: Figures, idle_ms| -> Vec<Verdict> {
            let aftermath = Aftermath {
                fresh: figures(50, 10),
                before: figures(100, 10),
                peak: figures(200, 90),
                after,
                idle: Duration::from_millis(idle_ms),
                waited: Duration::from_secs(60),
            };
            let findings = aftermath.findings(0);
            findings
                .iter()
                .map(|found| found.judgement.verdict)
                .collect()
        };
        use Verdict::{Right, Wrong};
        assert_eq!(judged(figures(105, 10), 100), [Right, Right, Right]);
        assert_eq!(judged(figures(106, 10), 100), [Wrong, Right, Right]);
        assert_eq!(judged(figures(90, 11), 101), [Right, Wrong, Wrong]);
    }
}
