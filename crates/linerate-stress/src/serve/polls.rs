//! Sessions of clients that poll with large bodies, which are never polled again.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{
        Abuse,
        polls::{SENT, SESSIONS},
    },
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of sessions at a time.
const SESSIONS_MAX: usize = 200;

/// The memory that each may cost, in bytes: what waits for a poll, and answers, of which a client
/// may have `client.queue_bytes_max` like any other that does not read, the events of two bodies
/// that wait for room, and a connection with the task of the session.
const BYTES_EACH: u64 = (256 << 10) + (256 << 10) + 2 * (64 << 10) + (48 << 10);

pub(super) fn rows() -> [Row; 2] {
    [
        Row::new("serve/phoenix-polls", |effort| {
            let flags = ["protocols.phoenix=true", "phoenix.heartbeat_timeout_s=4"];
            run(effort, "Phoenix", Abuse::PhoenixPolls, &flags)
        }),
        Row::new("serve/polls", |effort| {
            let flags = [
                "protocols.socketio=true",
                "client.ping_interval_s=2",
                "client.pong_timeout_s=2",
            ];
            run(effort, "Socket.IO", Abuse::Polls, &flags)
        }),
    ]
}

/// With these settings, the server forgets sessions while the row is measured.
fn run(effort: &Effort, protocol: &str, abuse: Abuse, settings: &[&str]) -> Result<Outcome> {
    let flags: Vec<_> = settings.iter().flat_map(|set| ["--set", set]).collect();
    let figures = abused(effort, abuse, SESSIONS_MAX, &flags)?;
    let [sessions, bodies] = [SESSIONS, SENT].map(|name| figures.counted(name));
    Ok(Outcome {
        abuse: format!(
            "{SESSIONS_MAX} {protocol} sessions at a time that are never polled again, each with bodies of 63 KB"
        ),
        bounds: Bounds {
            memory_growth_max: BOUNDS.memory_growth_max + SESSIONS_MAX as u64 * BYTES_EACH,
            ..BOUNDS
        },
        figures,
        also: vec![Finding::new(
            format!("{bodies} bodies in {sessions} sessions (at least {SESSIONS_MAX} each)"),
            bodies.min(sessions) >= SESSIONS_MAX as u64,
        )],
    })
}
