//! Clients of the protocols that are off by default.

use std::fs;

use anyhow::Result;

use super::{BOUNDS, abused};
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
    Row::new("serve/pusher-commands", |effort| {
        run(Abuse::PusherCommands, effort)
    })
}

fn run(abuse: Abuse, effort: &Effort) -> Result<Outcome> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("linerate.toml");
    fs::write(&file, CONFIGURATION)?;
    let flags = ["--config", &file.display().to_string()];
    let figures = abused(effort, abuse, PEERS, &flags)?;
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
