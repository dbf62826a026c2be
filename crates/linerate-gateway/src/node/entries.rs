//! What this node stores at the broker about its clients that are present in channels.
//!
//! Changes wait in a queue, from which one task sends them in batches. If the broker has lost the
//! entries of this node, or too many changes wait, the task removes all entries and stores again
//! who is present.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use linerate_broker::{Broker, BrokerError, PresenceChange};
use linerate_hub::{ChannelName, presence};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tracing::debug;

/// The maximum number of changes that wait. Beyond it, they are dropped, and everything is stored
/// again.
const CHANGES_MAX: usize = 65_536;

/// The maximum number of changes that are sent together.
const BATCH_LEN: usize = 256;

/// How long to wait before a batch that failed is sent again.
const RETRY: Duration = Duration::from_millis(500);

/// The entries of this node.
#[derive(Debug)]
pub(crate) struct Entries {
    broker: Arc<dyn Broker>,
    queue: Mutex<Queue>,
    arrived: Notify,
    /// How many of the changes that were ever queued are stored, or were dropped before everything
    /// was stored again.
    stored: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Queue {
    changes: VecDeque<PresenceChange>,
    /// The number of changes that were ever queued.
    queued: u64,
    must_restore: bool,
    /// True while nothing is to be stored.
    is_held: bool,
}

impl Entries {
    pub(super) fn new(broker: Arc<dyn Broker>) -> Self {
        Self {
            broker,
            queue: Mutex::default(),
            arrived: Notify::new(),
            stored: watch::Sender::default(),
        }
    }

    /// Queues a change.
    pub(super) fn push(&self, change: PresenceChange) {
        if !self.broker.stores_presence() {
            return;
        }
        let mut queue = self.queue.lock();
        if queue.changes.len() == CHANGES_MAX {
            queue.changes.clear();
            queue.must_restore = true;
        }
        queue.changes.push_back(change);
        queue.queued += 1;
        let is_held = queue.is_held;
        drop(queue);
        if !is_held {
            self.arrived.notify_one();
        }
    }

    /// Waits, but not longer than `wait_max`, until the changes that are queued now are stored.
    /// Returns their number.
    pub(super) async fn stored(&self, wait_max: Duration) -> u64 {
        let queued = self.queue.lock().queued;
        let mut stored = self.stored.subscribe();
        let stored = stored.wait_for(|stored| *stored >= queued);
        if timeout(wait_max, stored).await.is_err() {
            debug!("the presence of this node is not stored yet");
        }
        queued
    }

    /// Stores nothing until [`release`](Self::release) is called.
    pub(super) fn hold(&self) {
        self.queue.lock().is_held = true;
    }

    /// Stores what was recorded since [`hold`](Self::hold).
    pub(super) fn release(&self) {
        self.queue.lock().is_held = false;
        self.arrived.notify_one();
    }

    /// Removes all entries and stores them again, because the broker may have lost some.
    pub(super) fn restore(&self) {
        self.queue.lock().must_restore = true;
        self.arrived.notify_one();
    }

    /// Stores the changes, and who is present in `here` when everything is stored again. Never
    /// returns.
    pub(super) async fn run(&self, here: &Mutex<presence::Presence>) {
        let mut unrestored: Vec<ChannelName> = Vec::new();
        loop {
            if self.begins_to_restore() {
                if let Err(error) = self.broker.reset_presence().await {
                    debug!(%error, "cannot remove the presence of this node");
                }
                unrestored = here.lock().channels().cloned().collect();
            }
            let (mut batch, taken) = self.take_changes();
            if let Some(channel) = unrestored.pop() {
                // Read after the changes were taken, so that it is newer than they are.
                batch.extend(present(&here.lock(), &channel));
            }
            let is_idle = batch.is_empty() && unrestored.is_empty();
            if !batch.is_empty() && !self.store(newest(batch)).await {
                continue;
            }
            if unrestored.is_empty() {
                self.stored.send_replace(taken);
            }
            if is_idle {
                self.arrived.notified().await;
            }
        }
    }

    /// Stores changes. Returns `false` if everything must be stored again instead.
    async fn store(&self, changes: Vec<PresenceChange>) -> bool {
        loop {
            match self.broker.set_presence(&changes).await {
                Ok(()) => return true,
                Err(BrokerError::LeaseEnded) => self.restore(),
                Err(error) => {
                    debug!(%error, "cannot store the presence of clients");
                    sleep(RETRY).await;
                }
            }
            if self.queue.lock().must_restore {
                return false;
            }
        }
    }

    fn begins_to_restore(&self) -> bool {
        let mut queue = self.queue.lock();
        !queue.is_held && std::mem::take(&mut queue.must_restore)
    }

    /// Removes changes from the queue, and returns how many of those ever queued have left it.
    fn take_changes(&self) -> (Vec<PresenceChange>, u64) {
        let mut queue = self.queue.lock();
        let count = match queue.is_held {
            true => 0,
            false => queue.changes.len().min(BATCH_LEN),
        };
        let changes = queue.changes.drain(..count).collect();
        (changes, queue.queued - queue.changes.len() as u64)
    }
}

fn present(here: &presence::Presence, channel: &ChannelName) -> Vec<PresenceChange> {
    let members = here.members(channel.as_str()).map(|info| PresenceChange {
        channel: channel.clone(),
        info: info.clone(),
        is_present: true,
    });
    members.collect()
}

/// Returns the last change of each client in each channel.
fn newest(changes: Vec<PresenceChange>) -> Vec<PresenceChange> {
    let mut newest = HashMap::new();
    for change in changes {
        let key = (change.channel.clone(), change.info.client.clone());
        newest.insert(key, change);
    }
    newest.into_values().collect()
}
