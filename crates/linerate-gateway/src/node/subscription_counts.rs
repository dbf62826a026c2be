//! How many subscriptions channels have, on all nodes.
//!
//! Each node announces the numbers of its own subscriptions to the others, and adds up those of the
//! channels in which it has some. Subscribers are told by their node, and webhooks by one node; see
//! [`CountsTeller`](super::counts_teller::CountsTeller). The rate of both is limited for each
//! channel, so that a change of a large channel is not a message to each of its subscribers.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `table` | the numbers, and when which of them are told |

mod table;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use linerate_budget::{Budget, Consumer, Lease};
use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    clock::now,
    config::{PusherAccess, PusherKind},
};
pub(super) use table::Due;
use table::Table;

/// The maximum number of channels that are told together.
const BATCH_LEN: usize = 256;

/// How long to wait for further changes, which are then told together.
const GATHER: Duration = Duration::from_millis(5);

/// The numbers of subscriptions that Pusher clients and webhooks are told.
#[derive(Debug)]
pub(crate) struct SubscriptionCounts {
    is_on: AtomicBool,
    table: Mutex<Table>,
    lease: Mutex<Lease>,
    changed: Notify,
}

impl SubscriptionCounts {
    /// Creates the numbers of a node that counts nothing yet.
    pub(super) fn new(node: &str, budget: &Budget) -> Self {
        Self {
            is_on: AtomicBool::new(false),
            table: Mutex::new(Table::new(node)),
            lease: Mutex::new(budget.lease(Consumer::Subscriptions)),
            changed: Notify::new(),
        }
    }

    /// Switches the counting on or off. Returns true if it is on now and was off before: then
    /// record the subscriptions of all workers again.
    pub(super) fn switch(&self, is_on: bool) -> bool {
        let was_on = self.is_on.swap(is_on, Ordering::Relaxed);
        if is_on != was_on {
            self.table.lock().clear();
            self.changed.notify_one();
        }
        is_on && !was_on
    }

    /// Records that a client has subscribed to a channel, which has `count` subscriptions on its
    /// worker.
    pub(super) fn subscribed(&self, channel: &ChannelName, worker: u16, count: usize) {
        self.set(channel, (worker, count), true);
    }

    /// Records that a subscription to a channel has ended, which has `count` subscriptions left on
    /// its worker.
    pub(super) fn unsubscribed(&self, channel: &ChannelName, worker: u16, count: usize) {
        self.set(channel, (worker, count), false);
    }

    fn set(&self, channel: &ChannelName, (worker, count): (u16, usize), is_new: bool) {
        if !self.is_on.load(Ordering::Relaxed) || !is_counted(channel) {
            return;
        }
        let count = (worker, count as u64);
        self.table.lock().set(now(), channel, count, is_new);
        self.changed.notify_one();
    }

    /// Records the numbers of another node.
    pub(super) fn hear(&self, node: &str, counts: Vec<(String, u64)>) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        let mut table = self.table.lock();
        for (channel, count) in counts {
            if let Ok(channel) = ChannelName::new(&channel) {
                table.hear(now(), node, &channel, count);
            }
        }
        drop(table);
        self.changed.notify_one();
    }

    /// Records that other nodes have ended.
    pub(super) fn forget_nodes(&self, nodes: &[String]) {
        self.table.lock().forget_nodes(nodes);
        self.changed.notify_one();
    }

    /// Waits until numbers are to be told, and returns them.
    pub(super) async fn due(&self) -> Vec<Due> {
        loop {
            let due = self.take();
            if !due.is_empty() {
                return due;
            }
            let next = self.table.lock().next();
            match next.map(|next| next.saturating_duration_since(now())) {
                // An error means that something is due.
                Some(wait) => _ = timeout(wait, self.changed.notified()).await,
                None => self.changed.notified().await,
            }
            sleep(GATHER).await;
        }
    }

    fn take(&self) -> Vec<Due> {
        let mut table = self.table.lock();
        // A worker may have recorded something after the counting was switched off.
        if !self.is_on.load(Ordering::Relaxed) {
            table.clear();
        }
        let due = table.take(now(), BATCH_LEN);
        self.lease.lock().set(table.bytes() as u64);
        due
    }
}

/// Returns whether Pusher counts the subscriptions of a channel. Presence channels have members
/// instead, and the channels of users are for the server alone.
fn is_counted(channel: &ChannelName) -> bool {
    let access = PusherKind::of(channel.as_str()).access;
    !matches!(access, PusherAccess::Presence | PusherAccess::User)
}
