//! No files are left, and connections go on arriving.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::Result;

use super::{flood::P99_FREE, process::Serve};
use crate::{
    Row,
    attack::{
        ATTACK, Abuse, OFF, ON, Tally,
        waiting::{CLOSED, LONGEST},
    },
    child::Child,
    figures::{Effort, Figures, SLICE, Watch, alternate, median},
    live::{Live, visit},
    outcome::{Bounds, Finding, Outcome},
};

/// Connections that the server has files for, beside the live clients.
const FILES: u64 = 500;

/// How many more arrive.
const WAITING: usize = 1_000;

/// How much of a core those who wait may take.
const PROCESSOR_MAX: f64 = 0.05;

/// How soon after files are there again a legal client must get in.
const RECOVERY_MAX: Duration = Duration::from_secs(1);

/// How many arrive at once where there is not one file, and how soon all of them must be closed.
const TURNED_AWAY: usize = 110;
const CLOSING_MAX: Duration = Duration::from_secs(1);
const LET_IN_MAX: u64 = 5;

/// Lines that the log may get meanwhile.
const LOG_LINES_MAX: usize = 10;

pub(super) fn rows() -> [Row; 2] {
    [
        Row {
            name: "serve/no-files".to_owned(),
            run: Box::new(run),
        },
        Row {
            name: "serve/no-files-closing".to_owned(),
            run: Box::new(run_closing),
        },
    ]
}

fn run_closing(effort: &Effort) -> Result<Outcome> {
    let server = Serve::start(&effort.linerate, &[])?;
    let (address, usage) = (server.address.to_string(), server.usage());
    let peers = TURNED_AWAY.to_string();
    let mut attackers = Child::start(&[ATTACK, Abuse::Waiting.as_str(), &address, &peers])?;
    let mut live = Live::open(server.target())?;
    live.p99(SLICE)?;
    let log = server.directory.path().join("log");
    let lines = || -> Result<usize> { Ok(fs::read_to_string(&log)?.lines().count()) };
    let lines_before = lines()?;
    server.limit_files(usage.files()?)?;
    let figures = alternate(usage, &mut live, &mut attackers, false, effort)?;
    let lines = lines()? - lines_before;
    drop(live);
    attackers.end()?;
    server.end()?;
    let count = |name: &str| figures.tally.get(name).copied().unwrap_or_default();
    let (came, closed) = (count("connections"), count(CLOSED));
    // The limit is one of numbers, and some below it may be free: those who get them are let in.
    let let_in = came - closed;
    let longest = Duration::from_millis(count(LONGEST));
    Ok(Outcome {
        abuse: format!("{TURNED_AWAY} at once, again and again, and not one file for them"),
        bounds: Bounds {
            memory_growth_max: 16 << 20,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![
            Finding::new(
                format!("{closed} of {came} closed (all but {LET_IN_MAX} % that are let in)"),
                came > 0 && let_in * 100 <= came * LET_IN_MAX,
            ),
            Finding::new(
                format!(
                    "the last of {TURNED_AWAY} within {} ms ({} ms)",
                    longest.as_millis(),
                    CLOSING_MAX.as_millis()
                ),
                longest <= CLOSING_MAX,
            ),
            Finding::new(
                format!("{lines} lines in the log ({LOG_LINES_MAX})"),
                lines <= LOG_LINES_MAX,
            ),
        ],
    })
}

fn run(effort: &Effort) -> Result<Outcome> {
    let server = Serve::start(&effort.linerate, &[])?;
    let (address, usage) = (server.address.to_string(), server.usage());
    let peers = (FILES as usize + WAITING).to_string();
    let mut live = Live::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(usage)?;
    server.limit_files(usage.files()? + FILES)?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    let mut attackers = Child::start(&[ATTACK, Abuse::SlowTcp.as_str(), &address, &peers])?;
    attackers.ask(ON)?;
    thread::sleep(Duration::from_secs(1));
    // Nobody is served meanwhile, so that what is seen is what waiting costs.
    let before = usage.processor_time()?;
    thread::sleep(Duration::from_secs(2));
    let share = (usage.processor_time()? - before).as_secs_f64() / 2.0;
    let with = watch.during(|_| (0..6).map(|_| live.p99(SLICE)).collect::<Result<Vec<_>>>())?;
    let tally: Tally = serde_json::from_str(&attackers.ask(OFF)?)?;
    let recovery = recovery(&server)?;
    attackers.end()?;
    let figures = Figures {
        p99_alone: median(alone?),
        p99_with: median(with),
        tally,
        ..watch.end()?
    };
    drop(live);
    server.end()?;
    Ok(Outcome {
        abuse: format!("{WAITING} connections more than there are files for"),
        bounds: Bounds {
            memory_growth_max: 16 << 20,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![
            Finding::new(
                format!(
                    "those who wait take {:.1} % of a core ({:.0} %)",
                    share * 100.0,
                    PROCESSOR_MAX * 100.0
                ),
                share <= PROCESSOR_MAX,
            ),
            Finding::new(
                format!(
                    "a legal client gets in {} ms after there are files ({} ms)",
                    recovery.as_millis(),
                    RECOVERY_MAX.as_millis()
                ),
                recovery <= RECOVERY_MAX,
            ),
        ],
    })
}

/// Returns how long it takes until a client gets in.
fn recovery(server: &Serve) -> Result<Duration> {
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
