//! Floods: many frames on few connections, many connections, and decompression bombs.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{Abuse, bomb, connect::CONNECTS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
    reactor,
};

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
    let rows = abuses.into_iter().map(|(abuse, name, peers)| {
        Row::new(format!("serve/{name}"), move |effort| {
            run(abuse, peers, effort)
        })
    });
    rows.collect()
}

fn run(abuse: Abuse, peers: usize, effort: &Effort) -> Result<Outcome> {
    let flags = ["--set", "compression.enabled=true"];
    let figures = abused(effort, abuse, peers, &flags)?;
    let mut also = Vec::new();
    let memory_growth_max = match abuse {
        Abuse::Bombs => {
            also.push(Finding::all(&figures, bomb::SENT, bomb::ANSWERED));
            peers as u64 * BOMB_BYTES
        }
        _ => reactor::memory_max(abuse, peers) as u64,
    };
    Ok(Outcome {
        abuse: words(abuse, peers, figures.counted("frames")),
        bounds: Bounds {
            memory_growth_max,
            ..BOUNDS
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
