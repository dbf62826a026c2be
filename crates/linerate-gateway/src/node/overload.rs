//! What a node does when memory runs short, as an overload manager.
//!
//! Who accepts connections and reads bodies asks the budget's state by themselves. Here the clients that take the most are
//! closed: at once when the budget is critical, and after a while also when it stays tight, or a few clients could keep
//! all others out.

use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_budget::{Consumer, State};
use linerate_hub::ClientId;
use tokio::time::{sleep, timeout};

use super::{Node, Notice, Worker};
use crate::protocol::centrifuge::Disconnect;

/// How often the node looks while memory is short: what was closed needs a moment to be freed.
const LOOK: Duration = Duration::from_millis(100);

/// How often it looks otherwise, at what nobody tells.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// How long the budget may be tight until clients are closed.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many clients of a worker are closed in one look.
const CLIENTS_A_LOOK: usize = 64;

/// A client that takes less is not closed: that would free nothing.
const CLIENT_BYTES_MIN: u64 = 4 << 10;

/// What a client takes that can be freed by closing it.
#[derive(Clone, Copy, Debug)]
struct Cost {
    bytes: u64,
    worker: u16,
    client: ClientId,
}

impl Node {
    /// Keeps the node within its budget, until it stops.
    pub(super) async fn run_overload(self: Arc<Self>) {
        let mut inflaters = self.budget().lease(Consumer::Inflaters);
        let mut watch = self.budget().watch();
        let mut state = State::Normal;
        let mut short_since = None;
        loop {
            let pause = if state == State::Normal {
                IDLE_LOOK
            } else {
                LOOK
            };
            _ = timeout(pause, watch.changed()).await;
            inflaters.set(linerate::Budget::global().used() as u64);
            let now = self.budget().state();
            if now != state {
                self.tell_state(now);
                state = now;
            }
            if state == State::Normal {
                short_since = None;
                continue;
            }
            let since = *short_since.get_or_insert_with(Instant::now);
            if state == State::Critical || since.elapsed() >= PATIENCE {
                self.shed(self.budget().excess()).await;
                // What was closed is not to be closed again before it is gone.
                sleep(LOOK).await;
            }
        }
    }

    fn tell_state(&self, state: State) {
        let budget = self.budget();
        let (used, bytes_max) = (budget.used_total(), budget.bytes_max());
        let largest = Consumer::ALL.into_iter().max_by_key(|it| budget.used(*it));
        let largest = largest.map_or("", Consumer::name);
        if state == State::Normal {
            tracing::info!(used, bytes_max, "memory is no longer short");
        } else {
            tracing::warn!(%state, used, bytes_max, largest, "memory is short: new connections are refused");
        }
    }

    /// Closes the clients that take the most, until about so many bytes are freed.
    async fn shed(&self, bytes: u64) {
        let mut costs = self.on_workers(Worker::costs).await.concat();
        costs.sort_unstable_by_key(|cost| Reverse(cost.bytes));
        let mut freed = 0;
        costs.retain(|cost| {
            let is_closed = freed < bytes;
            freed += if is_closed { cost.bytes } else { 0 };
            is_closed
        });
        if costs.is_empty() {
            return;
        }
        let clients = costs.len();
        for cost in &costs {
            self.budget().note_shed(Consumer::Backlogs, cost.bytes);
        }
        self.on_workers(move |worker| worker.close(&costs)).await;
        tracing::warn!(clients, freed, "clients closed that took much memory");
    }
}

impl Worker {
    /// Returns the clients that take the most.
    fn costs(&self) -> Vec<Cost> {
        let now = Instant::now();
        let state = self.state();
        let mut costs: Vec<_> = state
            .clients
            .iter()
            .map(|(client, known)| {
                let lag = state.hub.lag(now, *client).unwrap_or_default();
                Cost {
                    bytes: known.outlet.pending_bytes() as u64 + lag.bytes,
                    worker: self.index(),
                    client: *client,
                }
            })
            .filter(|cost| cost.bytes >= CLIENT_BYTES_MIN)
            .collect();
        drop(state);
        costs.sort_unstable_by_key(|cost| Reverse(cost.bytes));
        costs.truncate(CLIENTS_A_LOOK);
        costs
    }

    /// Closes those of its clients that are meant.
    fn close(&self, costs: &[Cost]) {
        let state = self.state();
        for cost in costs.iter().filter(|cost| cost.worker == self.index()) {
            if let Some(client) = state.clients.get(&cost.client) {
                client
                    .outlet
                    .notify(Notice::Disconnect(Disconnect::OVERLOADED));
            }
        }
    }
}
