//! Rows about `linerate serve`, with its default limits unless a row changes them.

mod attachments;
mod churn;
mod deaf;
mod files;
mod filters;
mod flood;
mod front;
mod hoard;
mod polls;
pub(crate) mod process;
mod protocols;
mod publisher;
mod reload;
mod returns;
mod rolling;
mod slow;
mod stalled;
mod uploads;

use std::{fs, time::Duration};

use anyhow::Result;

use self::process::ServerProcess;
use crate::{
    Row,
    attack::{self, Abuse},
    figures::{Effort, Figures, alternate},
    live::LiveClients,
    outcome::Bounds,
};

/// The bounds of most rows. A latency of 200 µs does no harm, whatever the ratio.
const BOUNDS: Bounds = Bounds {
    memory_growth_max: 16 << 20,
    p99_free: Duration::from_micros(200),
};

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = flood::rows();
    rows.extend(slow::rows());
    rows.extend(front::rows());
    rows.extend(filters::rows());
    rows.extend(files::rows());
    rows.extend(uploads::rows());
    rows.extend(protocols::rows());
    rows.extend(polls::rows());
    rows.extend(deaf::rows());
    rows.extend([
        attachments::row(),
        returns::row(),
        stalled::row(),
        hoard::row(),
        reload::row(),
        churn::row(),
        rolling::row(),
    ]);
    rows
}

/// Measures an abuse by `peers` attackers on a server with this configuration.
fn abused_with(
    effort: &Effort,
    abuse: Abuse,
    peers: usize,
    configuration: &str,
) -> Result<Figures> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("linerate.toml");
    fs::write(&file, configuration)?;
    let flags = ["--config", &file.display().to_string()];
    abused(effort, abuse, peers, &flags)
}

/// Measures an abuse by `peers` attackers on a server that is started with `flags`.
fn abused(effort: &Effort, abuse: Abuse, peers: usize, flags: &[&str]) -> Result<Figures> {
    let server = ServerProcess::start(&effort.linerate, flags)?;
    let mut attackers = attack::start(abuse, server.address, peers)?;
    let mut live = LiveClients::open(server.target())?;
    let twin = abuse.has_twin();
    let figures = alternate(server.process(), &mut live, &mut attackers, twin, effort)?;
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(figures)
}
