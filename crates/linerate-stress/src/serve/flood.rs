//! Floods: many frames on few connections, many connections, and decompression bombs.

use std::time::Duration;

use anyhow::Result;

use super::process::Serve;
use crate::{
    Row,
    attack::{ATTACK, Abuse, connect::CONNECTS},
    child::Child,
    figures::{Effort, alternate},
    live::Live,
    outcome::{Bounds, Finding, Outcome},
    reactor,
};

/// The latency that does no harm, whatever the ratio.
pub(super) const P99_FREE: Duration = Duration::from_micros(200);

/// The number of bombs at once.
const BOMBS: usize = 100;

/// The memory that each bomb may cost, in bytes: a message of the maximum size, and as much again
/// for the connection and the decompressor.
const BOMB_BYTES: u64 = 2 * (64 << 10);

pub(super) fn rows() -> Vec<Row> {
    let abuses = [
        (Abuse::Bombs, "zip-bombs", BOMBS),
        (Abuse::Pings, "pings", 4),
        (Abuse::TinyFragments, "tiny-fragments", 4),
        (Abuse::EmptyFragments, "empty-fragments", 4),
        (Abuse::SlowReaders, "slow-readers", 64),
        (Abuse::Churn, "connections", 2 * CONNECTS),
    ];
    let rows = abuses.into_iter().map(|(abuse, name, peers)| Row {
        name: format!("serve/{name}"),
        run: Box::new(move |effort| run(abuse, peers, effort)),
    });
    rows.collect()
}

fn run(abuse: Abuse, peers: usize, effort: &Effort) -> Result<Outcome> {
    let server = Serve::start(&effort.linerate, &["--set", "compression.enabled=true"])?;
    let address = server.address.to_string();
    let mut attackers = Child::start(&[ATTACK, abuse.as_str(), &address, &peers.to_string()])?;
    let mut live = Live::open(server.target())?;
    let figures = alternate(
        server.usage(),
        &mut live,
        &mut attackers,
        abuse.has_twin(),
        effort,
    )?;
    drop(live);
    attackers.end()?;
    server.end()?;
    let count = |name: &str| figures.tally.get(name).copied().unwrap_or_default();
    let mut also = Vec::new();
    let memory_growth_max = match abuse {
        Abuse::Bombs => {
            let (bombs, answered) = (count("bombs"), count("answered with 1009"));
            let text = format!("{answered} of {bombs} answered with 1009");
            also.push(Finding::new(text, bombs == answered && bombs > 0));
            peers as u64 * BOMB_BYTES
        }
        _ => reactor::memory_max(abuse, peers) as u64,
    };
    Ok(Outcome {
        abuse: words(abuse, peers, count("frames")),
        bounds: Bounds {
            memory_growth_max,
            p99_free: P99_FREE,
        },
        figures,
        also,
    })
}

fn words(abuse: Abuse, peers: usize, frames: u64) -> String {
    match abuse {
        Abuse::Bombs => format!("{peers} messages at once, each of 60 KB that inflate to 60 MiB"),
        Abuse::Churn => format!("{CONNECTS} connections per second, each reset at once"),
        Abuse::SlowReaders => {
            format!("{peers} clients that send messages of 16 KiB and never read the echoes")
        }
        _ => format!("{frames} frames on {peers} connections"),
    }
}
