//! A webhook and a Kafka server that never answer, and clients that cause as much for them as they
//! can.

use std::net::{SocketAddr, TcpListener};

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

/// The channels of the server. Without a history, they keep nothing that clients have published.
const CHANNELS: &str = "[channel]\nallow_publish = true\nhistory_size = 0\nrecover = false\n";

/// The size of the queue of the webhook or the producer, in bytes.
const QUEUE_BYTES: u64 = 8 << 20;

pub(super) fn rows() -> [Row; 2] {
    [
        Row::new("serve/deaf-webhook", |effort: &Effort| {
            run(effort, webhook, "a webhook that is to be told of it")
        }),
        Row::new("serve/deaf-kafka", |effort: &Effort| {
            run(effort, kafka, "a Kafka server to which it is written")
        }),
    ]
}

/// Runs a row with the configuration for a receiver.
fn run(
    effort: &Effort,
    configuration: fn(SocketAddr) -> String,
    receiver: &str,
) -> Result<Outcome> {
    // Connections succeed, but are never accepted.
    let deaf = TcpListener::bind("127.0.0.1:0")?;
    let configuration = configuration(deaf.local_addr()?);
    let figures = abused_with(effort, Abuse::Events, PEERS, &configuration)?;
    let visits = figures.counted(ROUNDS);
    Ok(Outcome {
        abuse: format!(
            "{PEERS} clients that join and leave ever new channels and publish 60 KB in each, \
             while {receiver} does not answer"
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

fn webhook(receiver: SocketAddr) -> String {
    format!(
        "{CHANNELS}[[webhook]]\nname = \"deaf\"\n\
         url = \"http://{receiver}/\"\nqueue_bytes_max = {QUEUE_BYTES}\n\
         secret = \"whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
         events = [\"connected\", \"disconnected\", \"subscribed\", \"unsubscribed\", \
         \"occupied\", \"vacated\", \"published\"]\n"
    )
}

/// Publications do not wait, so that clients can publish as much as they want.
fn kafka(receiver: SocketAddr) -> String {
    format!(
        "{CHANNELS}[[kafka]]\nname = \"deaf\"\n\
         servers = [\"{receiver}\"]\n[[kafka.producer]]\ntopic = \"all\"\n\
         channels = [\"*\"]\nwait = false\nqueue_bytes_max = {QUEUE_BYTES}\n"
    )
}
