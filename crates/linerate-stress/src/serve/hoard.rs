//! Bodies and messages that never end, and a server with little memory.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{flood::P99_FREE, process::Serve};
use crate::{
    Row,
    attack::{
        ATTACK, Abuse, HOW, OFF, ON, Tally,
        hoard::{BODY_BYTES, BODY_EVERY, MESSAGE_BYTES, SENT_AWAY},
    },
    child::Child,
    figures::{Effort, Figures, SLICE, Watch, median},
    live::Live,
    outcome::{Bounds, Finding, Outcome},
    usage::BACK_WITHIN,
};

/// What the server may take for everything that clients make grow.
const BUDGET_BYTES: u64 = 128 << 20;

/// Attackers, who want several times as much.
const PEERS: usize = 900;

/// What may be left of the memory after the last attacker: buffers for reuse.
const LEFT_MAX: u64 = 32 << 20;

pub(super) fn row() -> Row {
    Row {
        name: "serve/memory-budget".to_owned(),
        run: Box::new(run),
    }
}

fn run(effort: &Effort) -> Result<Outcome> {
    let budget = format!("server.memory_bytes_max={BUDGET_BYTES}");
    let server = Serve::start(&effort.linerate, &["--set", &budget])?;
    let address = server.address.to_string();
    let mut attackers =
        Child::start(&[ATTACK, Abuse::Hoard.as_str(), &address, &PEERS.to_string()])?;
    let mut live = Live::open(server.target())?;
    live.p99(SLICE)?;
    let mut watch = Watch::begin(server.usage())?;
    let alone: Result<Vec<_>> = (0..effort.slices).map(|_| live.p99(SLICE)).collect();
    attackers.ask(ON)?;
    let with = watch.during(|watch| {
        let mut with = Vec::new();
        // The first slices see how memory becomes short, the others how it is.
        for _ in 0..4 * effort.slices {
            with.push(live.p99(SLICE)?);
            watch.look()?;
        }
        Ok(with)
    })?;
    let tally: Tally = serde_json::from_str(&attackers.ask(HOW)?)?;
    attackers.ask_meanwhile(OFF, || live.p99(SLICE / 50).map(|_| ()))?;
    let before = watch.memory_before();
    let back = server
        .usage()
        .wait_until_back(before + LEFT_MAX, Instant::now(), || {
            live.p99(SLICE / 50).map(|_| ())
        })?;
    let figures = Figures {
        p99_alone: median(alone?),
        p99_with: median(with),
        tally,
        ..watch.end()?
    };
    drop(live);
    attackers.end()?;
    server.end()?;
    Ok(outcome(figures, back))
}

fn outcome(figures: Figures, back: Option<Duration>) -> Outcome {
    let bodies = PEERS / BODY_EVERY;
    let wanted = (bodies * BODY_BYTES + (PEERS - bodies) * MESSAGE_BYTES) >> 20;
    let sent_away = figures.tally.get(SENT_AWAY).copied().unwrap_or_default();
    let took = match back {
        Some(took) => format!("in {:.1} s", took.as_secs_f64()),
        None => "too late".to_owned(),
    };
    Outcome {
        abuse: format!(
            "{PEERS} at once with bodies of 1 MiB and messages of 64 KiB that never end, {wanted} MiB for {} MiB of budget",
            BUDGET_BYTES >> 20
        ),
        bounds: Bounds {
            memory_growth_max: BUDGET_BYTES,
            p99_free: P99_FREE,
        },
        figures,
        also: vec![
            Finding::new(
                format!("{sent_away} refused or sent away (some)"),
                sent_away > 0,
            ),
            Finding::new(
                format!(
                    "memory is back to {} MiB more than before {took} ({} s)",
                    LEFT_MAX >> 20,
                    BACK_WITHIN.as_secs()
                ),
                back.is_some(),
            ),
        ],
    }
}
