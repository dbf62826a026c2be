//! Clients of the protocols that are off by default.

use anyhow::Result;

use super::{BOUNDS, abused_with};
use crate::{
    Row,
    attack::{Abuse, commands::ROUNDS},
    figures::Effort,
    outcome::{Finding, Outcome},
};

/// The number of clients that send commands.
const PEERS: usize = 4;

const CONFIGURATION: &str = "\
[protocols]
pusher = true
[pusher]
app_id = \"1\"
key = \"app-key\"
secret = \"of no use elsewhere\"
client_events = true
";

pub(super) fn row() -> Row {
    Row::new("serve/pusher-commands", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let figures = abused_with(effort, Abuse::PusherCommands, PEERS, CONFIGURATION)?;
    let rounds = figures.counted(ROUNDS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} clients that join, leave, and send what is refused, 400 times per second together"
        ),
        bounds: BOUNDS,
        figures,
        also: vec![Finding::new(
            format!("{rounds} rounds of commands (at least {PEERS})"),
            rounds >= PEERS as u64,
        )],
    })
}
