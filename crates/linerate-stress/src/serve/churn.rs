//! Connections that open and end in sixteen different ways.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{flood::P99_FREE, process::Serve};
use crate::{
    Row,
    attack::{ATTACK, Abuse, HOW, OFF, ON, Tally},
    child::Child,
    figures::{Effort, Figures, SLICE, Watch, median},
    live::Live,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of connections, if the machine manages them in time.
const CONNECTIONS: usize = 1_000_000;

/// How many connections end before the measurement begins, because the first ones cause memory use
/// that does not grow further.
const FIRST: usize = 20_000;

/// How long to open connections at most.
const TIME_MAX: Duration = Duration::from_secs(600);

pub(super) fn row() -> Row {
    Row {
        name: "serve/churn".to_owned(),
        run: Box::new(run),
    }
}

fn run(effort: &Effort) -> Result<Outcome> {
    let count = effort.scaled(CONNECTIONS);
    let server = Serve::start(
        &effort.linerate,
        &["--set", "server.accepts_per_second_max=100000"],
    )?;
    let mut live = Live::open(server.target())?;
    let mut watch = Watch::begin(server.usage())?;
    die(&server, &mut live, FIRST.min(count), &mut watch)?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    watch = Watch::begin(server.usage())?;
    let started = Instant::now();
    let (died, with) = watch.during(|watch| die(&server, &mut live, count, watch))?;
    let rate = died as f64 / started.elapsed().as_secs_f64();
    let figures = Figures {
        p99_alone: median(alone?),
        p99_with: median(with),
        ..watch.end()?
    };
    drop(live);
    server.end()?;
    Ok(Outcome {
        abuse: format!("{died} connections that die in 16 ways"),
        bounds: Bounds {
            memory_growth_max: 16 << 20,
            p99_free: P99_FREE,
        },
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
    server: &Serve,
    live: &mut Live,
    count: usize,
    watch: &mut Watch,
) -> Result<(u64, Vec<Duration>)> {
    let (address, number) = (server.address.to_string(), count.to_string());
    let mut dying = Child::start(&[ATTACK, Abuse::Dying.as_str(), &address, &number])?;
    dying.ask(ON)?;
    let deadline = Instant::now() + TIME_MAX;
    let mut waits = Vec::new();
    let died = loop {
        waits.push(live.p99(SLICE)?);
        watch.look()?;
        let tally: Tally = serde_json::from_str(&dying.ask(HOW)?)?;
        let died = tally.get("died").copied().unwrap_or_default();
        if died >= count as u64 || Instant::now() > deadline {
            break died;
        }
    };
    dying.ask(OFF)?;
    dying.end()?;
    Ok((died, waits))
}
