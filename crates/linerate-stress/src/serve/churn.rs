//! Connections that open and end in sixteen different ways.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{BOUNDS, process::ServerProcess};
use crate::{
    Row,
    attack::{self, Abuse, HOW, OFF, ON, Tally, counted},
    figures::{Effort, SLICE, Watch},
    live::LiveClients,
    outcome::{Finding, Outcome},
};

/// The number of connections, if the machine manages them in time.
const CONNECTIONS: usize = 1_000_000;

/// How many connections end before the measurement begins, because the first ones cause memory use
/// that does not grow further.
const FIRST: usize = 20_000;

/// How long to open connections at most.
const TIME_MAX: Duration = Duration::from_secs(600);

pub(super) fn row() -> Row {
    Row::new("serve/churn", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let count = effort.scaled(CONNECTIONS);
    let server = ServerProcess::start(
        &effort.linerate,
        &["--set", "server.accepts_per_second_max=100000"],
    )?;
    let mut live = LiveClients::open(server.target())?;
    let mut watch = Watch::begin(server.process())?;
    die(&server, &mut live, FIRST.min(count), &mut watch)?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    watch = Watch::begin(server.process())?;
    let started = Instant::now();
    let (died, with) = watch.during(|watch| die(&server, &mut live, count, watch))?;
    let rate = died as f64 / started.elapsed().as_secs_f64();
    let figures = watch.end_with(alone?, with)?;
    drop(live);
    server.end()?;
    Ok(Outcome {
        abuse: format!("{died} connections that die in 16 ways"),
        bounds: BOUNDS,
        figures,
        also: vec![Finding::new(
            format!(
                "{rate:.0} per second, by clients that use the CPU time that the server leaves"
            ),
            true,
        )],
    })
}

/// Opens and ends `count` connections, or as many as the time allows. Returns their number, and the
/// latency of live clients meanwhile.
fn die(
    server: &ServerProcess,
    live: &mut LiveClients,
    count: usize,
    watch: &mut Watch,
) -> Result<(u64, Vec<Duration>)> {
    let mut dying = attack::start(Abuse::Dying, server.address, count)?;
    dying.ask(ON)?;
    let deadline = Instant::now() + TIME_MAX;
    let mut waits = Vec::new();
    let died = loop {
        waits.push(live.p99(SLICE)?);
        watch.look()?;
        let tally: Tally = dying.ask_for(HOW)?;
        let died = counted(&tally, "died");
        if died >= count as u64 || Instant::now() > deadline {
            break died;
        }
    };
    dying.ask(OFF)?;
    dying.end()?;
    Ok((died, waits))
}
