//! Socket.IO clients that announce an attachment and do not send it.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{Abuse, attachments::EVENTS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients.
const PEERS: usize = 200;

/// The memory that each may cost, in bytes: attachments of the maximum size of a message, and a
/// connection.
const BYTES_EACH: u64 = (64 << 10) + (32 << 10);

pub(super) fn row() -> Row {
    Row::new("serve/attachments", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let flags = ["--set", "protocols.socketio=true"];
    let figures = abused(effort, Abuse::Attachments, PEERS, &flags)?;
    let events = figures.counted(EVENTS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} Socket.IO clients whose events have 63 KB of attachments, of which the last never arrives"
        ),
        bounds: Bounds {
            memory_growth_max: BOUNDS.memory_growth_max + PEERS as u64 * BYTES_EACH,
            ..BOUNDS
        },
        figures,
        also: vec![Finding::new(
            format!("{events} events in part (at least {PEERS})"),
            events >= PEERS as u64,
        )],
    })
}
