//! A webhook whose receiver never answers, and clients that cause as many events as they can.

use std::net::TcpListener;

use anyhow::Result;

use super::{BOUNDS, abused_with};
use crate::{
    Row,
    attack::{Abuse, commands::ROUNDS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients.
const PEERS: usize = 20;

/// The memory that each may cost, in bytes: commands that wait, and what has been read of further
/// ones.
const BYTES_EACH: u64 = 640 << 10;

/// The size of the queue of the webhook, in bytes.
const QUEUE_BYTES: u64 = 8 << 20;

pub(super) fn row() -> Row {
    Row::new("serve/deaf-webhook", run)
}

fn run(effort: &Effort) -> Result<Outcome> {
    // Connections succeed, but are never accepted.
    let deaf = TcpListener::bind("127.0.0.1:0")?;
    let figures = abused_with(effort, Abuse::Events, PEERS, &configuration(&deaf)?)?;
    let visits = figures.counted(ROUNDS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} clients that join and leave ever new channels and publish 60 KB in each, \
             while a webhook that is to be told of it does not answer"
        ),
        bounds: Bounds {
            memory_growth_max: BOUNDS.memory_growth_max + PEERS as u64 * BYTES_EACH + QUEUE_BYTES,
            ..BOUNDS
        },
        figures,
        also: vec![Finding::new(
            format!("{visits} channels were joined (at least {PEERS})"),
            visits >= PEERS as u64,
        )],
    })
}

fn configuration(receiver: &TcpListener) -> Result<String> {
    let address = receiver.local_addr()?;
    Ok(format!(
        "[channel]\nallow_publish = true\n[[webhook]]\nname = \"deaf\"\n\
         url = \"http://{address}/\"\nqueue_bytes_max = {QUEUE_BYTES}\n\
         secret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
         events = [\"connected\", \"disconnected\", \"subscribed\", \"unsubscribed\", \
         \"occupied\", \"vacated\", \"published\"]\n"
    ))
}
