//! `/counters`: pushes the server's traffic counters once a second.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linerate::{Counters, Receiver, Result, Sender};
use linerate_broker::{Broker, LinkState};
use linerate_uploads::Service;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::endpoint::{CloseMessage, Endpoint};

const INTERVAL: Duration = Duration::from_secs(1);

/// The counters of the server.
#[derive(Clone, Debug)]
pub(super) struct CounterPush {
    pub(super) broker: Arc<dyn Broker>,
    pub(super) counters: Arc<Counters>,
    pub(super) uploads: Service,
    pub(super) started: Instant,
}

/// One push. `broker` is the name of the broker; nothing arrives from it while `is_deaf`.
/// `connections`, `uploads` and `uploads_kept` are current values; all other counts are
/// totals since the server started.
#[derive(Debug, Serialize)]
struct Push {
    broker: &'static str,
    is_deaf: bool,
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
    fn to_json(&self) -> String {
        let counters = &self.counters;
        let (uploads, uploads_kept) = self.uploads.count();
        let push = Push {
            broker: self.broker.name(),
            is_deaf: self.broker.link() == LinkState::Deaf,
            connections: counters.connections(),
            connections_total: counters.connections_total(),
            messages_received: counters.messages_received(),
            messages_sent: counters.messages_sent(),
            bytes_received: counters.bytes_received(),
            bytes_sent: counters.bytes_sent(),
            uploads,
            uploads_kept,
            uptime_seconds: self.started.elapsed().as_secs(),
            version: env!("CARGO_PKG_VERSION"),
        };
        serde_json::to_string(&push).expect("numbers and strings can always be written as JSON")
    }
}

impl Endpoint for CounterPush {
    async fn talk(self, sender: &Sender, receiver: &mut Receiver) -> Result<CloseMessage> {
        let mut seconds = interval(INTERVAL);
        seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = seconds.tick() => sender.send(self.to_json()).await?,
                // Messages from the client are ignored; only its Close frame matters.
                message = receiver.recv() => if message?.is_none() {
                    return Ok(CloseMessage::DONE);
                },
            }
        }
    }
}
