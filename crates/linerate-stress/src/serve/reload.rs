//! Reloads the configuration and the certificate under load.

use anyhow::Result;
use rustix::process::Signal;

use super::{
    BOUNDS,
    process::{ServerProcess, write_certificate},
};
use crate::{
    Row,
    attack::{self, Abuse, OFF, ON},
    figures::{Effort, Figures, SLICE, Watch},
    live::LiveClients,
    outcome::{Finding, Outcome},
    waits::median,
};

/// The number of reloads in a slice.
const RELOADS: usize = 5;

pub(super) fn row() -> Row {
    Row::new("serve/reload", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let server = ServerProcess::start_tls(&effort.linerate)?;
    let mut arriving = attack::start(Abuse::Tls, server.address, 1)?;
    let mut live = LiveClients::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(server.process())?;
    arriving.ask(ON)?;
    let (mut alone, mut with) = (Vec::new(), Vec::new());
    for _ in 0..effort.slices {
        alone.push(live.p99(SLICE)?);
        with.push(watch.during(|_| slice(&server, &mut live))?);
    }
    let figures = Figures {
        tally: arriving.ask_for(OFF)?,
        ..watch.end_with(alone, with)?
    };
    arriving.end()?;
    drop(live);
    server.end()?;
    let (arrived, refused, seen) = (
        figures.counted("connections"),
        figures.counted("not served"),
        figures.counted("certificates seen"),
    );
    let (made, reloads) = (effort.slices as u64 + 1, effort.slices * RELOADS);
    Ok(Outcome {
        abuse: format!("SIGHUP {reloads} times, and {made} certificates"),
        bounds: BOUNDS,
        figures,
        also: vec![
            Finding::new(
                format!("{refused} of {arrived} new connections failed (0)"),
                refused == 0 && arrived > 0,
            ),
            Finding::new(
                format!("new connections saw {seen} certificates ({made})"),
                seen == made,
            ),
        ],
    })
}

/// Makes the server reload repeatedly, and returns the 99th percentile of live clients' latency.
fn slice(server: &ServerProcess, live: &mut LiveClients) -> Result<std::time::Duration> {
    write_certificate(server.directory.path())?;
    let mut waits = Vec::new();
    for _ in 0..RELOADS {
        server.signal(Signal::HUP)?;
        waits.push(live.p99(SLICE / RELOADS as u32)?);
    }
    Ok(median(waits))
}
