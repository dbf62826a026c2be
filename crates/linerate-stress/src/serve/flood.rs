//! Floods: frames on few connections, and bombs.

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

/// Waiting for no longer is no harm.
pub(super) const P99_FREE: Duration = Duration::from_micros(200);

/// Bombs at once.
const BOMBS: usize = 100;

/// What each may take: a message of the limit, and as much for the connection and what inflates.
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
        Abuse::Bombs => format!("{peers} at once, of 60 KB that inflate to 60 MiB"),
        Abuse::Churn => format!("{CONNECTS} a second, each reset at once"),
        Abuse::SlowReaders => format!("{peers} that have messages of 16 KiB echoed and read none"),
        _ => format!("{frames} on {peers} connections"),
    }
}
