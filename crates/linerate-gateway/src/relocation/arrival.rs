//! Clients that come from another process.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future::join_all, stream};
use linerate_broker::BrokerError;
use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{Departed, Relocation, departure::DepartedWorker, fleet::Crew};
use crate::{
    node::{InterestGuard, intake::IntakeError},
    server::ConnectionGuard,
    session::SessionEnvironment,
    transport::MovedClient,
};

/// How long the mark may take through the broker.
const MARK_MAX: Duration = Duration::from_secs(5);

/// The number of channels that are subscribed concurrently.
const SUBSCRIBES_AT_ONCE: usize = 256;

/// The clients of another process that come to this one.
#[derive(Debug)]
pub(crate) struct Arrival {
    relocation: Relocation,
    /// Keeps the channels subscribed until clients do.
    held: Mutex<Vec<InterestGuard>>,
    mark: Bytes,
}

impl Arrival {
    /// Holds back all publications until the clients have come. Waits until all workers run.
    pub(crate) async fn begin(relocation: Relocation) -> Self {
        relocation.fleet.complete(relocation.workers).await;
        let mark = Bytes::from(format!("takeover {}", uuid::Uuid::new_v4()));
        relocation.intake.hold_from(mark.clone()).await;
        Self {
            relocation,
            held: Mutex::default(),
            mark,
        }
    }

    /// Returns the number of workers of this process.
    pub(crate) fn workers(&self) -> usize {
        self.relocation.workers
    }

    /// Passes on what was held back, because no clients have come.
    pub(crate) async fn cancel(self) {
        self.relocation.intake.resume().await;
    }

    /// Returns the mark that the other process must look for.
    pub(crate) const fn mark(&self) -> &Bytes {
        &self.mark
    }

    /// Subscribes to channels at the broker.
    ///
    /// # Errors
    /// The broker is unavailable or refuses.
    pub(crate) async fn subscribe(&self, channels: &[ChannelName]) -> Result<(), BrokerError> {
        let settings = self.relocation.environment.settings_full();
        let held = stream::iter(channels).map(|channel| {
            let options = settings.channel(channel).stream();
            self.relocation.node.hold(channel, options)
        });
        let held = held.buffer_unordered(SUBSCRIBES_AT_ONCE);
        let held: Vec<_> = held.try_collect().await?;
        self.held.lock().extend(held);
        Ok(())
    }

    /// Sends the mark by way of the broker, and waits until it arrives here. Call this when the
    /// other process looks for it.
    ///
    /// # Errors
    /// The broker is unavailable or refuses.
    pub(crate) async fn send_mark(&self) -> Result<(), BrokerError> {
        let (broker, mark) = (&self.relocation.node.broker, self.mark.clone());
        broker.send_control(None, mark).await?;
        // Without it, the clients are not continued.
        _ = timeout(MARK_MAX, self.relocation.intake.marked()).await;
        Ok(())
    }

    /// Checks that the clients can be continued.
    ///
    /// # Errors
    /// Too much has arrived from the broker.
    pub(crate) async fn check(&self) -> Result<(), IntakeError> {
        self.relocation.intake.check().await
    }

    /// Continues the clients that have left the other process, which no longer serves them.
    /// Returns their number.
    pub(crate) async fn finish(self, departed: Departed<MovedClient>) -> usize {
        let count = departed.clients();
        let workers = self.relocation.fleet.workers();
        let restoring = workers
            .iter()
            .zip(departed.workers)
            .map(|(worker, departed)| {
                let environment = self.relocation.environment.clone();
                worker.run(async move |crew| restore(&crew, &environment, departed).await)
            });
        for (worker, restored) in workers.iter().zip(join_all(restoring).await) {
            if restored.is_none() {
                let index = worker.index;
                tracing::error!(worker = index, "clients lost: their worker has ended");
            }
        }
        self.relocation.intake.resume_after(departed.passed).await;
        count
    }
}

async fn restore(
    crew: &Crew,
    environment: &Arc<SessionEnvironment>,
    departed: DepartedWorker<MovedClient>,
) {
    for (channel, state) in departed.channels {
        let restored = crew.worker.shard().hub.restore(channel, state);
        if let Err(error) = restored {
            tracing::warn!(%error, "channel has another number after a takeover");
        }
    }
    let Some(open) = crew.open.upgrade() else {
        return;
    };
    for moved in departed.clients {
        let address = moved.client.address();
        let guard = ConnectionGuard::of_another_process(&crew.frontend, address, open.clone());
        crew.clients.restore(environment, moved, guard).await;
    }
    crew.worker.shard().hub.end_restoring();
}
