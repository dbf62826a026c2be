//! Clients that exhaust resources before they are authenticated: HTTP/2 streams and wrong API keys.

use anyhow::Result;

use super::{BOUNDS, abused};
use crate::{
    Row,
    attack::{
        Abuse,
        keys::LOOKED_AT,
        streams::{MOST, STREAMS},
    },
    figures::{Effort, Figures},
    outcome::{Bounds, Finding, Outcome},
};

/// The number of the attackers' connections.
const PEERS: usize = 10;

/// What a request in flight may cost the server until it is refused or answered, in bytes.
const REQUEST_BYTES: u64 = 32 << 10;

/// The server's limit of connections: a few more than the live clients and the attackers have.
const CONNECTIONS_MAX: u64 = 64;

/// How many wrong keys per minute the server checks.
const KEYS_MAX: u64 = 20;

pub(super) fn rows() -> [Row; 2] {
    [
        Row::new("serve/http2-streams", streams),
        Row::new("serve/wrong-keys", keys),
    ]
}

fn streams(effort: &Effort) -> Result<Outcome> {
    let connections_max = CONNECTIONS_MAX.to_string();
    let flags = ["--connections-max", connections_max.as_str()];
    let figures = abused(effort, Abuse::Streams, PEERS, &flags)?;
    let most = figures.counted(MOST);
    let allowed = CONNECTIONS_MAX - PEERS as u64;
    Ok(Outcome {
        abuse: format!("{PEERS} HTTP/2 connections that request {STREAMS} event streams each"),
        also: vec![Finding::new(
            format!(
                "{most} of them open at the same time ({allowed}, besides {PEERS} connections)"
            ),
            (1..=allowed).contains(&most),
        )],
        bounds: Bounds {
            memory_growth_max: PEERS as u64 * u64::from(STREAMS) * REQUEST_BYTES,
            ..BOUNDS
        },
        ..outcome(figures)
    })
}

fn keys(effort: &Effort) -> Result<Outcome> {
    let flags = [
        "--set",
        "auth.api_key=0123456789abcdef",
        "--set",
        "server.diagnostics=true",
    ];
    let figures = abused(effort, Abuse::WrongKeys, PEERS, &flags)?;
    let (shown, looked_at) = (figures.counted("keys"), figures.counted(LOOKED_AT));
    // A row takes less than five minutes.
    let allowed = 5 * KEYS_MAX;
    Ok(Outcome {
        abuse: format!("{shown} wrong keys from one address"),
        also: vec![Finding::new(
            format!("{looked_at} of {shown} checked ({allowed})"),
            (1..=allowed).contains(&looked_at),
        )],
        ..outcome(figures)
    })
}

fn outcome(figures: Figures) -> Outcome {
    Outcome {
        abuse: String::new(),
        bounds: BOUNDS,
        figures,
        also: Vec::new(),
    }
}
