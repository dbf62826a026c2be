//! Places for connections: how many there may be, and the end of the last one at shutdown.

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::workers::Shutdown;

/// The places of all workers together.
#[derive(Clone, Debug)]
pub(super) struct Connections(Arc<Semaphore>);

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct WorkerConnections {
    places: Arc<Semaphore>,
    open: mpsc::Sender<Infallible>,
    all_gone: mpsc::Receiver<Infallible>,
    shutdown: Shutdown,
}

/// The place of one connection, shared by all that serve it and given back by the last of them.
///
/// It stands in the extensions of the requests, so that a WebSocket can keep it.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    _place: Arc<(OwnedSemaphorePermit, mpsc::Sender<Infallible>)>,
    shutdown: Shutdown,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Self {
        Self(Arc::new(Semaphore::new(connections_max)))
    }

    /// Returns the connections of one worker, which are told of `shutdown`.
    pub(super) fn of_worker(&self, shutdown: Shutdown) -> WorkerConnections {
        let (open, all_gone) = mpsc::channel(1);
        WorkerConnections {
            places: self.0.clone(),
            open,
            all_gone,
            shutdown,
        }
    }
}

impl WorkerConnections {
    /// Takes a place, if one is free.
    pub(super) fn admit(&self) -> Option<Visit> {
        let permit = self.places.clone().try_acquire_owned().ok()?;
        let place = Arc::new((permit, self.open.clone()));
        Some(Visit {
            _place: place,
            shutdown: self.shutdown.clone(),
        })
    }

    /// Waits until all connections of this worker are gone, at most `timeout`.
    pub(super) async fn drain(mut self, timeout: Duration) {
        drop(self.open);
        // Nothing is ever sent: the channel ends when the last place is given back.
        if tokio::time::timeout(timeout, self.all_gone.recv())
            .await
            .is_err()
        {
            tracing::warn!("connections are still open at shutdown");
        }
    }
}

impl Visit {
    /// Waits for the moment to say goodbye.
    pub(super) async fn shutdown(&self) {
        self.shutdown.clone().wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Connections;
    use crate::workers::Shutdown;

    #[tokio::test]
    async fn one_more_than_there_are_places_is_not_admitted() {
        let connections = Connections::new(2);
        let worker = connections.of_worker(Shutdown::never());
        let other_worker = connections.of_worker(Shutdown::never());
        let first = worker.admit().unwrap();
        let second = other_worker.admit().unwrap();
        assert!(worker.admit().is_none());
        let websocket = first.clone();
        drop(first);
        assert!(worker.admit().is_none(), "the WebSocket keeps the place");
        drop((websocket, second));
        assert!(worker.admit().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn draining_waits_for_the_last_connection_and_no_longer_than_allowed() {
        let worker = Connections::new(2).of_worker(Shutdown::never());
        let visit = worker.admit().unwrap();
        let started = tokio::time::Instant::now();
        let leave = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            drop(visit);
        };
        tokio::join!(worker.drain(Duration::from_secs(6)), leave);
        assert_eq!(started.elapsed().as_secs(), 2);

        let worker = Connections::new(2).of_worker(Shutdown::never());
        let _stays = worker.admit().unwrap();
        worker.drain(Duration::from_secs(6)).await;
        assert_eq!(started.elapsed().as_secs(), 8);
    }
}
