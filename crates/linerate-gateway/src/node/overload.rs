//! The overload manager: what a node does when memory runs short.
//!
//! The code that accepts connections and reads bodies checks the state of the budget itself. This
//! module ends the largest users of memory, of whatever kind: clients, bodies, sessions, and
//! connections that have not made a request yet. It does so at once when the budget is critical,
//! and after a while when the budget stays tight, because otherwise a few clients could keep all
//! others out.

use std::{
    cmp::Reverse,
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_budget::{Budget, Consumer, Holder, State};
use linerate_hub::ClientId;
use tokio::time::{sleep, timeout};

use super::{
    Notice,
    inboxes::Inboxes,
    outlet::Outlet,
    shard::{Client, Shard},
    subscribe::FOOTPRINT_BYTES,
};
use crate::{
    clock::now, log_limiter::LogLimiter, protocol::codes::Disconnect, server::CONNECTION_BYTES,
};

/// How often the node checks while memory is short: the memory of closed connections takes a moment
/// to be freed.
const LOOK: Duration = Duration::from_millis(100);

/// How often it checks otherwise, for changes that are not signalled.
const IDLE_LOOK: Duration = Duration::from_secs(1);

/// How long the budget may stay tight before anything is ended.
const PATIENCE: Duration = Duration::from_secs(3);

/// The maximum number of clients of a worker that are closed per check.
const CLIENTS_A_LOOK: usize = 64;

/// How many clients or holders are ended together, unless there are many. Workers serve others in
/// between, because freeing memory takes time.
const ENDED_AT_ONCE: usize = 4;

/// The pause before more are ended.
const END_PAUSE: Duration = Duration::from_millis(1);

/// The maximum number of pauses. The more there is to end, the larger the groups are.
const END_PAUSES_MAX: usize = 64;

/// Anything that uses less is not ended, because that would free next to nothing.
const COST_BYTES_MIN: u64 = 4 << 10;

static SHEDS: LogLimiter = LogLimiter::new();

/// A client or holder that can be ended, and the memory that this would free.
#[derive(Clone)]
struct Cost {
    bytes: u64,
    /// The consumer that accounts for most of these bytes.
    consumer: Consumer,
    victim: Victim,
}

/// What is ended to free memory.
#[derive(Clone)]
enum Victim {
    /// A client of the worker with this index.
    Client(u16, Key),
    Holder(Arc<dyn Holder>),
}

/// Which client of a worker.
#[derive(Clone, Copy)]
enum Key {
    Connected(ClientId),
    /// A client that has not sent its connect command, by its number.
    Waiting(u64),
}

/// How often workers free the buffers that they have not needed in the meantime.
const TIDIED_EVERY: Duration = Duration::from_secs(2);

/// Keeps a node within its memory budget.
#[derive(Debug)]
pub(super) struct Overload {
    pub(super) budget: Budget,
    pub(super) inboxes: Inboxes,
}

impl Overload {
    /// Keeps the node within its memory budget. Never returns.
    pub(super) async fn run(self) {
        let mut inflaters = self.budget.lease(Consumer::Inflaters);
        let mut watch = self.budget.watch();
        let mut report = Report::default();
        let mut short_since = None;
        let mut tidied = now();
        loop {
            let pause = match short_since {
                None => IDLE_LOOK,
                Some(_) => LOOK,
            };
            _ = timeout(pause, watch.changed()).await;
            inflaters.set(linerate::deflate::Budget::global().used() as u64);
            let (state, now) = (self.budget.state(), now());
            if let Some(changes) = report.due(state, now) {
                self.tell_state(state, changes);
            }
            if now - tidied >= TIDIED_EVERY {
                tidied = now;
                let free = linerate::memory::free_unused_buffers;
                self.inboxes.run(move |_| free()).await;
            }
            if state == State::Normal {
                short_since = None;
                continue;
            }
            if short_since.is_none() {
                self.inboxes.run(|_| linerate::memory::free_buffers()).await;
            }
            let since = *short_since.get_or_insert(now);
            if state == State::Critical || now - since >= PATIENCE {
                self.shed(state).await;
                // Wait until closed connections are gone, so that they are not counted again.
                sleep(LOOK).await;
                self.inboxes.run(|_| linerate::memory::free_buffers()).await;
            }
        }
    }

    fn tell_state(&self, state: State, changes: u64) {
        let budget = &self.budget;
        let (used, bytes_max) = (budget.used_total(), budget.bytes_max());
        let largest = Consumer::ALL.into_iter().max_by_key(|it| budget.used(*it));
        let largest = largest.map_or("", Consumer::name);
        if state == State::Normal {
            tracing::info!(used, bytes_max, changes, "memory is no longer short");
        } else {
            tracing::warn!(%state, used, bytes_max, largest, changes, "memory is short: new connections are refused");
        }
    }

    /// Ends the largest users of memory until about as much is freed as is in excess.
    async fn shed(&self, state: State) {
        let excess = self.budget.excess();
        let mut costs = self.holder_costs();
        costs.extend(
            self.inboxes
                .run(move |shard| shard.costs(state))
                .await
                .concat(),
        );
        costs.sort_by_key(|cost| Reverse(cost.bytes));
        let mut freed = 0;
        costs.retain(|cost| {
            let is_ended = freed < excess;
            freed += if is_ended { cost.bytes } else { 0 };
            is_ended
        });
        let Some(largest) = costs.first() else {
            return;
        };
        if let Some(count) = SHEDS.ask_for(costs.len() as u64, now()) {
            let (consumer, bytes) = (largest.consumer.name(), largest.bytes);
            tracing::warn!(
                count,
                freed,
                largest = bytes,
                consumer,
                "closed the largest users of memory"
            );
        }
        let at_once = ENDED_AT_ONCE.max(costs.len().div_ceil(END_PAUSES_MAX));
        let mut costs = costs.into_iter();
        while costs.len() > 0 {
            self.end(costs.by_ref().take(at_once)).await;
            sleep(END_PAUSE).await;
        }
    }

    /// Ends these clients and holders.
    async fn end(&self, costs: impl Iterator<Item = Cost>) {
        let mut clients = Vec::new();
        for cost in costs {
            self.budget.note_shed(cost.consumer, cost.bytes);
            match cost.victim {
                Victim::Client(worker, client) => clients.push((worker, client)),
                Victim::Holder(holder) => holder.end(),
            }
        }
        if !clients.is_empty() {
            self.inboxes.run(move |shard| shard.close(&clients)).await;
        }
    }

    /// Returns the costs of the budget's own holders, newest first. Of those with equal costs, the
    /// ones that existed before a flood are kept.
    fn holder_costs(&self) -> Vec<Cost> {
        let holders = self.budget.holders().into_iter().rev();
        let costs = holders.map(|holder| {
            let (consumer, bytes) = holder.holds();
            Cost {
                bytes,
                consumer,
                victim: Victim::Holder(holder),
            }
        });
        costs.filter(|cost| cost.bytes >= COST_BYTES_MIN).collect()
    }
}

impl Shard {
    /// Returns the clients that use the most memory. Of those with equal costs, the ones that
    /// existed before a flood are kept.
    fn costs(&self, shortage: State) -> Vec<Cost> {
        let now = now();
        let waiting = self.waiting.newest_first();
        let waiting = waiting.map(|(number, outlet)| self.cost_of_waiting(number, &*outlet));
        let connected = self.clients.iter();
        let connected = connected.map(|(id, client)| self.cost_of(id, client, shortage, now));
        let mut costs: Vec<_> = waiting
            .chain(connected)
            .filter(|cost| cost.bytes >= COST_BYTES_MIN)
            .collect();
        costs.sort_by_key(|cost| Reverse(cost.bytes));
        costs.truncate(CLIENTS_A_LOOK);
        costs
    }

    /// Returns the cost of a client. Its subscriptions count only while memory is critical: serving
    /// many clients with a few subscriptions each is normal, and no reason to close some of them in
    /// favor of others.
    fn cost_of(&self, id: ClientId, client: &Client, shortage: State, now: Instant) -> Cost {
        let lag = self.hub.lag(now, id).unwrap_or_default();
        let subscriptions = match shortage {
            State::Critical => client.channels.len() * FOOTPRINT_BYTES,
            _ => 0,
        };
        let (consumer, bytes) = Consumer::largest_of([
            (Consumer::Backlogs, client.outlet.pending_bytes() as u64),
            (Consumer::Messages, client.outlet.received_bytes() as u64),
            (Consumer::Publications, lag.bytes),
            (Consumer::Subscriptions, subscriptions as u64),
        ]);
        Cost {
            bytes,
            consumer,
            victim: Victim::Client(self.index, Key::Connected(id)),
        }
    }

    /// Returns the cost of a client that has not sent its connect command, including its
    /// connection.
    fn cost_of_waiting(&self, number: u64, outlet: &dyn Outlet) -> Cost {
        let (consumer, bytes) = Consumer::largest_of([
            (Consumer::Backlogs, outlet.pending_bytes() as u64),
            (Consumer::Connections, CONNECTION_BYTES),
            (Consumer::Messages, outlet.received_bytes() as u64),
        ]);
        Cost {
            bytes,
            consumer,
            victim: Victim::Client(self.index, Key::Waiting(number)),
        }
    }

    /// Closes those of the given clients that belong to this worker.
    fn close(&self, clients: &[(u16, Key)]) {
        let here = clients.iter().filter(|(worker, _)| *worker == self.index);
        for (_, key) in here {
            let outlet = match key {
                Key::Connected(id) => self.clients.get(id).map(|client| client.outlet.clone()),
                Key::Waiting(number) => self.waiting.get(*number),
            };
            if let Some(outlet) = outlet {
                outlet.notify(Notice::Disconnect(Disconnect::OVERLOADED));
            }
        }
    }
}

/// The minimum time between two reports of state changes.
const REPORT_PAUSE: Duration = Duration::from_secs(10);

/// The state that was reported last, so that a fluctuating state does not flood the log.
#[derive(Debug)]
struct Report {
    told: State,
    seen: State,
    at: Option<Instant>,
    changes: u64,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            told: State::Normal,
            seen: State::Normal,
            at: None,
            changes: 0,
        }
    }
}

impl Report {
    /// Records the current state. If a report is due, returns the number of changes since the last
    /// report.
    fn due(&mut self, state: State, now: Instant) -> Option<u64> {
        if state != self.seen {
            self.changes += 1;
            self.seen = state;
        }
        let is_early = self
            .at
            .is_some_and(|at| now.duration_since(at) < REPORT_PAUSE);
        if state == self.told || is_early {
            return None;
        }
        self.told = state;
        self.at = Some(now);
        Some(std::mem::take(&mut self.changes))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use linerate_budget::State;

    use super::Report;

    #[test]
    fn a_state_that_goes_to_and_fro_is_told_every_ten_seconds() {
        let (mut report, start) = (Report::default(), Instant::now());
        let mut told = Vec::new();
        for tenth in 0..300 {
            let state = [State::Tight, State::Normal, State::Critical][tenth % 3];
            let now = start + Duration::from_millis(100 * tenth as u64);
            told.extend(report.due(state, now).map(|changes| (tenth, changes)));
        }
        assert_eq!(told, [(0, 1), (100, 100), (200, 100)]);
        // The final state is reported, however late.
        let end = start + Duration::from_secs(40);
        assert!(report.due(State::Normal, end).is_some());
        assert_eq!(
            report.due(State::Normal, end + Duration::from_secs(60)),
            None
        );
    }
}
