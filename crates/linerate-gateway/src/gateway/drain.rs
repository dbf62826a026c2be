//! Disconnects clients gradually, so that they do not all connect to another node at once.

use std::{sync::Arc, time::Duration};

use rand::seq::SliceRandom;
use tokio::time::{Instant, sleep_until};

use crate::{
    config::DrainOptions,
    node::{Notice, Worker},
    protocol::codes::Disconnect,
    server::{Frontend, Phase},
    session::SessionEnvironment,
};

/// Interval between two slices of clients.
const SLICE: Duration = Duration::from_millis(100);

impl DrainOptions {
    /// Returns the time over which this number of connections is closed; few connections take less
    /// time than the window.
    pub(super) fn window_of(&self, connections: usize) -> Duration {
        let rate = f64::from(self.connections_per_second_min.max(1));
        let needed = Duration::from_secs_f64(connections as f64 / rate);
        needed.min(self.window)
    }
}

/// Disconnects the clients of a worker when the server stops, or while an administrator has
/// draining switched on.
pub(super) async fn send_away_when_told(
    worker: Arc<Worker>,
    frontend: Arc<Frontend>,
    shared: Arc<SessionEnvironment>,
) {
    let mut draining = worker.node().draining();
    loop {
        tokio::select! {
            () = frontend.stopped.leaving() => break,
            told = draining.wait_for(|is_draining| *is_draining) => if told.is_err() {
                break;
            }
        }
        let options = &shared.settings_full().config.server.drain;
        let window = options.window_of(frontend.admission.open());
        tokio::select! {
            () = frontend.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => continue,
            () = send_away(worker.clone(), window) => {}
        }
        // Clients that connect after this may stay until the server stops.
        tokio::select! {
            () = frontend.stopped.leaving() => break,
            _ = draining.wait_for(|is_draining| !*is_draining) => {}
        }
    }
    frontend.stopped.leaving().await;
    let window = match frontend.stopped.phase() {
        Phase::Leaving { window, .. } => window,
        _ => Duration::ZERO,
    };
    // No new connections arrive, but some that are already open have not been authenticated yet.
    worker.turn_away();
    send_away(worker, window).await;
}

/// Asks all clients of a worker to connect to another node, in random order and evenly over
/// `window`.
///
/// Clients that connect in the meantime may stay, unless [`Worker::turn_away`] was called before.
async fn send_away(worker: Arc<Worker>, window: Duration) {
    let mut outlets: Vec<_> = {
        let shard = worker.shard();
        let clients = shard.clients.values();
        clients.map(|client| client.outlet.clone()).collect()
    };
    outlets.shuffle(&mut rand::rng());
    let started = Instant::now();
    for (index, part) in slices(outlets.len(), window).into_iter().enumerate() {
        sleep_until(started + SLICE * u32::try_from(index).unwrap_or(u32::MAX)).await;
        for outlet in outlets.drain(..part) {
            outlet.notify(Notice::Disconnect(Disconnect::SHUTDOWN));
        }
    }
}

/// Returns the number of clients to notify in each slice of the window.
fn slices(count: usize, window: Duration) -> Vec<usize> {
    let slices = usize::try_from(window.as_millis() / SLICE.as_millis()).unwrap_or(usize::MAX);
    let slices = slices.clamp(1, count.max(1));
    let told = |index: usize| count * index / slices;
    (0..slices)
        .map(|index| told(index + 1) - told(index))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::slices;
    use crate::config::Config;

    #[test]
    fn slices_are_even_and_none_is_forgotten() {
        for (count, millis) in [
            (0, 0),
            (1, 0),
            (7, 50),
            (7, 10_000),
            (10_000, 1_000),
            (3, 200),
        ] {
            let slices = slices(count, Duration::from_millis(millis));
            assert_eq!(slices.iter().sum::<usize>(), count);
            let (least, most) = (slices.iter().min().unwrap(), slices.iter().max().unwrap());
            assert!(most - least <= 1);
        }
        assert_eq!(slices(10_000, Duration::from_secs(1)), vec![1_000; 10]);
    }

    #[test]
    fn few_connections_are_told_within_a_second() {
        let options = Config::default().server.drain;
        assert_eq!(options.window_of(0), Duration::ZERO);
        assert_eq!(options.window_of(50), Duration::from_millis(500));
        assert_eq!(options.window_of(1_000_000), options.window);
    }
}
