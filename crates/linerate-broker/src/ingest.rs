//! The trait through which a node receives the events of its broker.

use std::time::Duration;

use linerate_hub::Publication;

use crate::{broker::BoxFuture, event::Event};

/// Receives the events of a broker.
pub trait Ingest: Send + Sync + 'static {
    /// Receives events that arrived together, in order. Completes when there is room for more; a
    /// broker waits for that before it continues to read.
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()>;

    /// Completes once no worker has more queued than it takes in one turn. A reader on the thread
    /// of a worker waits for this before it reads again, so that the worker comes first.
    fn caught_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Notifies the node of a publication that the broker keeps in this process, even if no
    /// subscribed channel receives it.
    fn keep(&self, _publication: &Publication) {}

    /// Returns how long publications may be delayed because all their recipients gather batches
    /// anyway. A broker with little traffic may then read less often, which saves wake-ups.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}
