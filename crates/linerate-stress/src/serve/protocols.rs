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

const PHOENIX: &str = "\
[protocols]
phoenix = true
[channel]
presence = true
join_leave = true
allow_presence = true
";

const PUSHER: &str = "\
[protocols]
pusher = true
[pusher]
app_id = \"1\"
key = \"app-key\"
secret = \"of no use elsewhere\"
client_events = true
subscription_counts = true
";

pub(super) fn rows() -> [Row; 2] {
    [
        Row::new("serve/phoenix-commands", |effort| {
            run(effort, Abuse::PhoenixCommands, PHOENIX)
        }),
        Row::new("serve/pusher-commands", |effort| {
            run(effort, Abuse::PusherCommands, PUSHER)
        }),
    ]
}

fn run(effort: &Effort, abuse: Abuse, configuration: &str) -> Result<Outcome> {
    let figures = abused_with(effort, abuse, PEERS, configuration)?;
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
