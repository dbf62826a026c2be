//! A backend that never answers, and clients that call it.

use std::net::TcpListener;

use anyhow::Result;

use super::{BOUNDS, abused_with};
use crate::{
    Row,
    attack::{Abuse, commands::ROUNDS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients that call. With 100, the row would measure what it costs to receive their
/// messages at once.
const PEERS: usize = 20;

/// The memory that each may cost, in bytes: the commands that wait, the question that is asked, and
/// what has been read of further ones.
const BYTES_EACH: u64 = 640 << 10;

pub(super) fn row() -> Row {
    Row::new("serve/deaf-backend", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    // Connections succeed, but are never accepted.
    let deaf = TcpListener::bind("127.0.0.1:0")?;
    let figures = abused_with(effort, Abuse::Calls, PEERS, &configuration(&deaf)?)?;
    let calls = figures.counted(ROUNDS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} clients that call a backend that does not answer, with arguments of 60 KB"
        ),
        bounds: Bounds {
            memory_growth_max: BOUNDS.memory_growth_max + PEERS as u64 * BYTES_EACH,
            ..BOUNDS
        },
        figures,
        also: vec![Finding::new(
            format!("{calls} calls (at least {PEERS})"),
            calls >= PEERS as u64,
        )],
    })
}

/// Returns a configuration in which the backend is asked however often it has not answered.
fn configuration(backend: &TcpListener) -> Result<String> {
    let address = backend.local_addr()?;
    Ok(format!(
        "[channel]\nrpc_backend = \"deaf\"\n[[backend]]\nname = \"deaf\"\n\
         url = \"http://{address}/\"\nfailures_max = 0\n"
    ))
}
