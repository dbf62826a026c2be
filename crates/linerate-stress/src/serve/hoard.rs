//! Bodies and messages that never end, and a server with a small memory budget.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{BOUNDS, process::ServerProcess};
use crate::{
    Row,
    attack::{
        self, Abuse, HOW, OFF, ON, Tally, WELL,
        hoard::{BODY_BYTES, BODY_EVERY, MESSAGE_BYTES, SENT_AWAY},
    },
    figures::{BACK_WITHIN, Effort, Figures, SLICE, Watch, wait_until_back},
    live::LiveClients,
    outcome::{Bounds, Finding, Outcome},
};

/// The server's memory budget for everything that clients can make grow, in bytes.
const BUDGET_BYTES: u64 = 128 << 20;

/// The number of attackers, which need several times as much.
const PEERS: usize = 900;

/// How much memory may still be in use after the last attacker, in bytes: buffers for reuse.
const LEFT_MAX: u64 = 32 << 20;

pub(super) fn row() -> Row {
    Row::new("serve/memory-budget", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    let budget = format!("server.memory_bytes_max={BUDGET_BYTES}");
    let server = ServerProcess::start(&effort.linerate, &["--set", &budget])?;
    let mut attackers = attack::start(Abuse::Hoard, server.address, PEERS)?;
    let mut live = LiveClients::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(server.process())?;
    attackers.ask_meanwhile(WELL, || serve_live_clients(&mut live))?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    attackers.ask_meanwhile(OFF, || serve_live_clients(&mut live))?;
    attackers.ask_meanwhile(ON, || serve_live_clients(&mut live))?;
    let with = watch.during(|watch| {
        let mut with = Vec::new();
        // The first slices show how memory becomes scarce, the others how the server copes with
        // that.
        for _ in 0..4 * effort.slices {
            with.push(live.p99(SLICE)?);
            watch.look()?;
        }
        Ok(with)
    })?;
    let tally: Tally = attackers.ask_for(HOW)?;
    attackers.ask_meanwhile(OFF, || serve_live_clients(&mut live))?;
    let before = watch.memory_before();
    let back = wait_until_back(server.process(), before + LEFT_MAX, Instant::now(), || {
        serve_live_clients(&mut live)
    })?;
    let figures = Figures {
        tally,
        ..watch.end_with(alone?, with)?
    };
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(outcome(figures, back))
}

/// Lets live clients exchange messages for a moment.
fn serve_live_clients(live: &mut LiveClients) -> Result<()> {
    live.p99(SLICE / 50).map(|_| ())
}

fn outcome(figures: Figures, back: Option<Duration>) -> Outcome {
    let bodies = PEERS / BODY_EVERY;
    let wanted = (bodies * BODY_BYTES + (PEERS - bodies) * MESSAGE_BYTES) >> 20;
    let sent_away = figures.counted(SENT_AWAY);
    let (left, within) = (LEFT_MAX >> 20, BACK_WITHIN.as_secs());
    let memory = match back {
        Some(took) => format!(
            "memory is back to at most {left} MiB above the start in {:.1} s ({within} s)",
            took.as_secs_f64()
        ),
        None => format!("memory is not back to {left} MiB above the start after {within} s"),
    };
    Outcome {
        abuse: format!(
            "{PEERS} clients at once with bodies of 1 MiB and messages of 64 KiB that never end: {wanted} MiB with a budget of {} MiB",
            BUDGET_BYTES >> 20
        ),
        bounds: Bounds {
            memory_growth_max: BUDGET_BYTES,
            ..BOUNDS
        },
        figures,
        also: vec![
            Finding::new(
                format!("{sent_away} refused or disconnected (at least 1)"),
                sent_away > 0,
            ),
            Finding::new(memory, back.is_some()),
        ],
    }
}
