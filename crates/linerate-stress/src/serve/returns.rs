//! Socket.IO clients that want to return to sessions that do not exist.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{Abuse, returns::RETURNS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients that are connected at a time.
const PEERS: usize = 200;

/// The memory that each may cost, in bytes: a connection, and what it has noted.
const BYTES_EACH: u64 = 48 << 10;

/// The memory that the state of a session takes in the embedded broker, in bytes.
const STATE_BYTES: u64 = 1 << 10;

pub(super) fn row() -> Row {
    Row::new("serve/returns", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let settings = [
        "protocols.socketio=true",
        "socketio.recovery_s=60",
        "channel.durable=true",
        "channel.history_size=10",
        "channel.recover=true",
    ];
    let flags: Vec<_> = settings
        .into_iter()
        .flat_map(|one| ["--set", one])
        .collect();
    let figures = abused(effort, Abuse::Returns, PEERS, &flags)?;
    let returns = figures.counted(RETURNS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} Socket.IO clients at a time that present an ID of a session that does not exist, and soon leave"
        ),
        bounds: Bounds {
            memory_growth_max: BOUNDS.memory_growth_max
                + PEERS as u64 * BYTES_EACH
                + returns * STATE_BYTES,
            ..BOUNDS
        },
        figures,
        also: vec![Finding::new(
            format!("{returns} sessions asked for (at least {PEERS})"),
            returns >= PEERS as u64,
        )],
    })
}
