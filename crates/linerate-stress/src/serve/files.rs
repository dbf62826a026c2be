//! The server has no free file descriptors, and connections keep arriving.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{BOUNDS, process::ServerProcess};
use crate::{
    Row,
    attack::{
        self, Abuse, OFF, ON, Tally,
        waiting::{CLOSED, LONGEST},
    },
    figures::{Effort, Figures, SLICE, Watch, alternate},
    live::{LiveClients, visit},
    outcome::{Finding, Outcome},
};

/// How many connections the server has file descriptors for, besides the live clients.
const FILES: u64 = 500;

/// How many more connections arrive.
const WAITING: usize = 1_000;

/// The share of a core that waiting connections may cost.
const PROCESSOR_MAX: f64 = 0.05;

/// How soon a well-behaved client must be able to connect after file descriptors are free again.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

/// How many connections arrive at once when no file descriptor is free, how soon all of them must
/// be closed, and what percentage of them may be accepted all the same.
const TURNED_AWAY: usize = 110;
const CLOSING_MAX: Duration = Duration::from_secs(1);
const LET_IN_MAX: u64 = 5;

/// How many lines may be logged meanwhile.
const LOG_LINES_MAX: usize = 10;

pub(super) fn rows() -> [Row; 2] {
    [
        Row::new("serve/no-files", run),
        Row::new("serve/no-files-closing", run_closing),
    ]
}

fn run_closing(effort: &Effort) -> Result<Outcome> {
    let server = ServerProcess::start(&effort.linerate, &[])?;
    let process = server.process();
    let mut attackers = attack::start(Abuse::Waiting, server.address, TURNED_AWAY)?;
    let mut live = LiveClients::open(server.target())?;
    live.p99(SLICE)?;
    let log = server.directory.path().join("log");
    let lines = || -> Result<usize> { Ok(fs::read_to_string(&log)?.lines().count()) };
    let lines_before = lines()?;
    server.limit_files(process.open_files()?)?;
    let figures = alternate(process, &mut live, &mut attackers, false, effort)?;
    let lines = lines()? - lines_before;
    drop(live);
    attackers.end()?;
    server.end()?;
    let (came, closed) = (figures.counted("connections"), figures.counted(CLOSED));
    // The limit applies to descriptor numbers. Some lower numbers may be free; connections that get
    // one are accepted.
    let let_in = came - closed;
    let longest = Duration::from_millis(figures.counted(LONGEST));
    Ok(Outcome {
        abuse: format!(
            "{TURNED_AWAY} connections at once, repeatedly, with no free file descriptor"
        ),
        bounds: BOUNDS,
        figures,
        also: vec![
            Finding::new(
                format!("{closed} of {came} closed (all but {LET_IN_MAX} %)"),
                came > 0 && let_in * 100 <= came * LET_IN_MAX,
            ),
            Finding::new(
                format!(
                    "the last of {TURNED_AWAY} closed within {} ms ({} ms)",
                    longest.as_millis(),
                    CLOSING_MAX.as_millis()
                ),
                longest <= CLOSING_MAX,
            ),
            Finding::new(
                format!("{lines} lines logged ({LOG_LINES_MAX})"),
                lines <= LOG_LINES_MAX,
            ),
        ],
    })
}

fn run(effort: &Effort) -> Result<Outcome> {
    let server = ServerProcess::start(&effort.linerate, &[])?;
    let process = server.process();
    let peers = FILES as usize + WAITING;
    let mut live = LiveClients::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(process)?;
    server.limit_files(process.open_files()? + FILES)?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    let mut attackers = attack::start(Abuse::SlowTcp, server.address, peers)?;
    attackers.ask(ON)?;
    thread::sleep(Duration::from_secs(1));
    // No client is served meanwhile, so this is the cost of waiting alone.
    let before = process.cpu()?;
    thread::sleep(Duration::from_secs(2));
    let share = (process.cpu()? - before).as_secs_f64() / 2.0;
    let with = watch.during(|_| (0..6).map(|_| live.p99(SLICE)).collect::<Result<Vec<_>>>())?;
    let tally: Tally = attackers.ask_for(OFF)?;
    let recovery = recovery(&server)?;
    attackers.end()?;
    let figures = Figures {
        tally,
        ..watch.end_with(alone?, with)?
    };
    drop(live);
    server.end()?;
    Ok(Outcome {
        abuse: format!("{WAITING} more connections than there are file descriptors for"),
        bounds: BOUNDS,
        figures,
        also: vec![
            Finding::new(
                format!(
                    "waiting connections cost {:.1} % of a core ({:.0} %)",
                    share * 100.0,
                    PROCESSOR_MAX * 100.0
                ),
                share <= PROCESSOR_MAX,
            ),
            Finding::new(
                format!(
                    "a well-behaved client connects {} ms after file descriptors are free ({} ms)",
                    recovery.as_millis(),
                    RECOVERY_MAX.as_millis()
                ),
                recovery <= RECOVERY_MAX,
            ),
        ],
    })
}

/// Returns how long it takes until a client can connect.
fn recovery(server: &ServerProcess) -> Result<Duration> {
    let started = Instant::now();
    let target = server.target();
    while let Err(error) = visit(&target) {
        if started.elapsed() > 10 * RECOVERY_MAX {
            return Err(error);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(started.elapsed())
}
