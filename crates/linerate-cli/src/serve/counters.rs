//! `/counters`: pushes the server's traffic counters once a second.

use std::{sync::Arc, time::Duration};

use linerate::{Receiver, Result, Sender};
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::{
    endpoint::{Endpoint, Farewell},
    routes::Shared,
};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct CounterPush {
    shared: Arc<Shared>,
}

/// One push. `connections`, `uploads` and `uploads_kept` are current values; all other counts are
/// totals since the server started.
#[derive(Debug, Serialize)]
struct Push {
    connections: u64,
    connections_total: u64,
    messages_received: u64,
    messages_sent: u64,
    bytes_received: u64,
    bytes_sent: u64,
    uploads: usize,
    uploads_kept: usize,
    uptime_seconds: u64,
    version: &'static str,
}

impl CounterPush {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    fn to_json(&self) -> String {
        let counters = &self.shared.counters;
        let (uploads, uploads_kept) = self.shared.sessions.count();
        let push = Push {
            connections: counters.connections(),
            connections_total: counters.connections_total(),
            messages_received: counters.messages_received(),
            messages_sent: counters.messages_sent(),
            bytes_received: counters.bytes_received(),
            bytes_sent: counters.bytes_sent(),
            uploads,
            uploads_kept,
            uptime_seconds: self.shared.started.elapsed().as_secs(),
            version: env!("CARGO_PKG_VERSION"),
        };
        serde_json::to_string(&push).expect("numbers and strings can always be written as JSON")
    }
}

impl Endpoint for CounterPush {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<Farewell> {
        let mut seconds = interval(INTERVAL);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = seconds.tick() => sender.send(self.to_json()).await?,
                // Messages from the client are ignored; only its Close frame matters.
                message = receiver.recv() => if message?.is_none() {
                    return Ok(Farewell::DONE);
                },
            }
        }
    }
}
