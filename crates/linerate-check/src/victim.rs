//! The process of a server under stress: its memory, its files, and the time it takes (proc(5)).

mod claims;

use std::{fmt, fs, future::Future, io, path::PathBuf, pin::pin, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{
    case::{Case, Expect, Input, Opening, Row},
    judge::Judgement,
    outcome::Outcome,
    run::Finding,
};

pub use claims::Claims;

/// How often it is looked at under stress.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// How often it is looked at afterwards, and over which time it has to be idle.
const SETTLE_INTERVAL: Duration = Duration::from_secs(2);

/// What Linux counts time of processes in, whatever its clock does (proc(5), `USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// How much more memory is none: what an allocator keeps of anything.
const MEMORY_PERCENT: u64 = 5;
const MEMORY_BYTES_MIN: u64 = 1 << 20;

/// What a process that has nothing to do may take of a core, in percent.
const IDLE_PERCENT: u128 = 5;

/// A process of this machine.
#[derive(Debug)]
pub struct Victim(PathBuf);

/// What a process has at a moment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Figures {
    /// Its resident memory, without pages of files, which the system can take away at any time.
    pub memory_bytes: u64,
    /// The memory that it has asked for, whether it was ever touched or not.
    pub asked_bytes: u64,
    /// The time it has taken from all cores together.
    pub cpu: Duration,
    /// Its open files.
    pub files: usize,
}

/// What became of a process.
#[derive(Clone, Copy, Debug)]
pub struct Aftermath {
    /// How it was before it was under stress at all.
    pub fresh: Figures,
    /// How it was before.
    pub before: Figures,
    /// The most memory and files that were seen.
    pub peak: Figures,
    /// How it was in the end.
    pub after: Figures,
    /// What it took in the last moments.
    idle: Duration,
    /// How long it was waited for.
    pub waited: Duration,
}

impl Victim {
    /// Returns the process with this number.
    ///
    /// # Errors
    /// There is none, or it must not be looked at.
    pub fn new(pid: u32) -> io::Result<Self> {
        let victim = Self(PathBuf::from(format!("/proc/{pid}")));
        victim.figures()?;
        Ok(victim)
    }

    /// Returns what it has now.
    ///
    /// # Errors
    /// It is gone, or must not be looked at.
    pub fn figures(&self) -> io::Result<Figures> {
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let status = fs::read_to_string(self.0.join("status"))?;
        let stat = fs::read_to_string(self.0.join("stat"))?;
        Ok(Figures {
            memory_bytes: memory_bytes(&status).ok_or_else(malformed)?,
            asked_bytes: bytes_of(&status, "VmData:").ok_or_else(malformed)?,
            cpu: cpu(&stat).ok_or_else(malformed)?,
            files: fs::read_dir(self.0.join("fd"))?.count(),
        })
    }

    /// Puts it under stress, and again if it is not as it was when it was fresh: what a process needs once it
    /// may keep. Returns what came of the last time, and what became of it within `settle`.
    ///
    /// # Errors
    /// It is gone.
    pub async fn endure<T, F: Future<Output = T>>(
        &self,
        mut stress: impl FnMut() -> F,
        settle: Duration,
    ) -> io::Result<(T, Aftermath)> {
        let fresh = self.figures()?;
        let (done, peak) = self.watch(stress()).await;
        let first = self.settle((fresh, fresh, peak), settle).await?;
        if first.is_as_before() {
            return Ok((done, first));
        }
        let (done, peak) = self.watch(stress()).await;
        let last = self.settle((fresh, first.after, peak), settle).await?;
        Ok((done, last))
    }

    /// Does `work`; returns what comes of it and the most that was seen meanwhile.
    async fn watch<T>(&self, work: impl Future<Output = T>) -> (T, Figures) {
        let mut work = pin!(work);
        let mut peak = Figures::default();
        loop {
            // Whether it is still there is seen afterwards.
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

    /// Waits until it is as before, for at most `settle`.
    ///
    /// # Errors
    /// It is gone.
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

/// Returns the resident memory of `/proc/PID/status`.
fn memory_bytes(status: &str) -> Option<u64> {
    Some(bytes_of(status, "RssAnon:")? + bytes_of(status, "RssShmem:")?)
}

/// Returns a figure of `/proc/PID/status`.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Returns the time of `/proc/PID/stat`, in user mode and in the kernel.
fn cpu(stat: &str) -> Option<Duration> {
    // The name, in parentheses, may have anything in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let kernel: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis(
        (user + kernel) * 1_000 / TICKS_PER_SECOND,
    ))
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

    /// Returns whether nothing is left of what was done to it.
    pub fn is_as_before(&self) -> bool {
        self.has_memory_back() && self.has_files_back() && self.is_idle()
    }

    /// Returns the row that it is judged by.
    pub fn row() -> Row {
        let case = |name: &str| Case {
            name: name.into(),
            input: Input {
                opening: Opening::Nothing,
                stages: Vec::new(),
                ends: false,
            },
            expect: Expect::Survive(Vec::new()),
        };
        Row {
            id: "R12",
            title: "the server's process, once it is left alone",
            section: "RFC 6455 §10.4",
            required: "be as before: memory within 5 % or 1 MiB, no more files, less than 5 % of a core",
            cases: ["memory", "files", "time"].map(case).into(),
        }
    }

    /// Returns the findings for the row at this place.
    pub fn findings(&self, row: usize) -> Vec<Finding> {
        let wrong = |is_right: bool, why: String| match is_right {
            true => Judgement::right(),
            false => Judgement::wrong(why),
        };
        let waited = self.waited.as_secs();
        let memory = format!("it keeps memory for {waited} s");
        let files = format!("it keeps files open for {waited} s");
        let judged = [
            wrong(self.has_memory_back(), memory),
            wrong(self.has_files_back(), files),
            wrong(self.is_idle(), "it is busy with nothing".into()),
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
    fn figures_are_read_whatever_the_name_of_the_process() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 151 0 0 0 120 30 0 0 20 0 1 0 40 9 2";
        assert_eq!(cpu(stat), Some(Duration::from_millis(1_500)));
        let status = "VmRSS:\t 19 kB\nRssAnon:\t   12 kB\nRssFile:\t 6 kB\nRssShmem:\t 1 kB\n";
        assert_eq!(memory_bytes(status), Some(13 << 10));
        assert_eq!(memory_bytes("RssAnon:\t 12 MB\nRssShmem:\t 1 kB\n"), None);
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
