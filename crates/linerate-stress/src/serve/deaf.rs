//! A backend, a webhook and a Kafka server that never answer, and clients that cause as much for
//! them as they can.

use std::net::{SocketAddr, TcpListener};

use anyhow::Result;

use super::{BOUNDS, abused_with};
use crate::{
    Row,
    attack::{Abuse, commands::ROUNDS},
    figures::Effort,
    outcome::{Bounds, Finding, Outcome},
};

/// The number of clients. With 100, the rows would measure what it costs to receive their messages
/// at once.
const PEERS: usize = 20;

/// The memory that each may cost, in bytes: commands that wait, a question that is asked, and what
/// has been read of further commands.
const BYTES_EACH: u64 = 640 << 10;

/// The channels of the server. Without a history, they keep nothing that clients have published.
const CHANNELS: &str = "[channel]\nallow_publish = true\nhistory_size = 0\nrecover = false\n";

/// The size of the queue of the webhook or the producer, in bytes.
const QUEUE_BYTES: u64 = 8 << 20;

/// A receiver that never answers.
struct Deaf {
    abuse: Abuse,
    /// What the clients do, and what does not answer.
    clients: &'static str,
    /// The size of its queue, in bytes.
    queue_bytes: u64,
    /// Returns the configuration of a server that uses the receiver at an address.
    configuration: fn(SocketAddr) -> String,
}

const BACKEND: Deaf = Deaf {
    abuse: Abuse::Calls,
    clients: "call a backend that does not answer, with arguments of 60 KB",
    queue_bytes: 0,
    configuration: backend,
};

const WEBHOOK: Deaf = Deaf {
    abuse: Abuse::Events,
    clients: "join and leave ever new channels and publish 60 KB in each, while a webhook that is \
              to be told of it does not answer",
    queue_bytes: QUEUE_BYTES,
    configuration: webhook,
};

const KAFKA: Deaf = Deaf {
    abuse: Abuse::Events,
    clients: "join and leave ever new channels and publish 60 KB in each, while a Kafka server to \
              which it is written does not answer",
    queue_bytes: QUEUE_BYTES,
    configuration: kafka,
};

pub(super) fn rows() -> [Row; 3] {
    [
        Row::new("serve/deaf-backend", |effort| BACKEND.run(effort)),
        Row::new("serve/deaf-webhook", |effort| WEBHOOK.run(effort)),
        Row::new("serve/deaf-kafka", |effort| KAFKA.run(effort)),
    ]
}

impl Deaf {
    fn run(&self, effort: &Effort) -> Result<Outcome> {
        // Connections succeed, but are never accepted.
        let receiver = TcpListener::bind("127.0.0.1:0")?;
        let configuration = (self.configuration)(receiver.local_addr()?);
        let figures = abused_with(effort, self.abuse, PEERS, &configuration)?;
        let rounds = figures.counted(ROUNDS);
        Ok(Outcome {
            abuse: format!("{PEERS} clients that {}", self.clients),
            bounds: Bounds {
                memory_growth_max: BOUNDS.memory_growth_max
                    + PEERS as u64 * BYTES_EACH
                    + self.queue_bytes,
                ..BOUNDS
            },
            figures,
            also: vec![Finding::new(
                format!("{rounds} calls or visits (at least {PEERS})"),
                rounds >= PEERS as u64,
            )],
        })
    }
}

/// The backend is asked however often it has not answered.
fn backend(receiver: SocketAddr) -> String {
    format!(
        "[channel]\nrpc_backend = \"deaf\"\n[[backend]]\nname = \"deaf\"\n\
         url = \"http://{receiver}/\"\nfailures_max = 0\n"
    )
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
