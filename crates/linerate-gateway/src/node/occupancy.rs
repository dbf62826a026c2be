//! Tells webhooks which channels have subscribers, and which users are present in channels, on any
//! node of the service.
//!
//! The broker decides which node was the first and which the last, and that node tells its
//! webhooks. A node stores only its own first and last client of a channel, so the work does not
//! grow with the number of subscribers, and no node talks to all others.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `table` | the places of this node, and how they differ from what is stored |

mod table;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use linerate_broker::{Broker, BrokerError, OccupancyChange};
use linerate_budget::{Budget, Consumer, Lease};
use linerate_hub::ChannelName;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tracing::{debug, warn};

use crate::{
    clock::now,
    log_limiter::LogLimiter,
    webhook::{Happened, Interest, Webhooks},
};
use table::{Change, Place, Table};

/// The maximum number of changes that are stored together.
const BATCH_LEN: usize = 256;

/// How long to wait before changes that could not be stored are attempted again.
const RETRY: Duration = Duration::from_millis(500);

/// How long to wait for further changes, which are then stored together.
const GATHER: Duration = Duration::from_millis(5);

/// Members are counted by the node rather than by its workers, as if it had one.
const NODE: u16 = 0;

static FAILURES: LogLimiter = LogLimiter::new();

/// The places of this node that webhooks want to be told of.
#[derive(Debug)]
pub(crate) struct Occupancy {
    broker: Arc<dyn Broker>,
    webhooks: Arc<Webhooks>,
    /// True if any webhook wants to be told of places of this kind.
    wants_channels: AtomicBool,
    wants_members: AtomicBool,
    interest: ArcSwap<Interest>,
    table: Mutex<Table>,
    lease: Mutex<Lease>,
    /// True while nothing is to be stored.
    is_held: AtomicBool,
    /// True if the broker may have lost what this node had stored.
    must_reset: AtomicBool,
    /// True once the broker knows that this node stores places.
    has_begun: AtomicBool,
    changed: Notify,
}

impl Occupancy {
    pub(super) fn new(broker: Arc<dyn Broker>, webhooks: Arc<Webhooks>, budget: &Budget) -> Self {
        Self {
            broker,
            webhooks,
            wants_channels: AtomicBool::new(false),
            wants_members: AtomicBool::new(false),
            interest: ArcSwap::default(),
            table: Mutex::default(),
            lease: Mutex::new(budget.lease(Consumer::Subscriptions)),
            is_held: AtomicBool::new(false),
            must_reset: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Records that a channel has a subscriber on a worker, which had none before.
    pub(super) fn channel_came(&self, channel: &ChannelName, worker: u16) {
        if self.wants_channels.load(Ordering::Relaxed)
            && self.interest.load().includes_channel(channel)
        {
            self.came(&Place::Channel(channel.clone()), worker);
        }
    }

    /// Records that a channel has lost its last subscriber on a worker.
    pub(super) fn channel_left(&self, channel: &ChannelName, worker: u16) {
        if self.wants_channels.load(Ordering::Relaxed) {
            self.left(&Place::Channel(channel.clone()), worker);
        }
    }

    /// Records that a user is present in a channel with a client of this node. Clients without a
    /// user are not members.
    pub(super) fn member_came(&self, channel: &ChannelName, user: &str) {
        if self.wants_members.load(Ordering::Relaxed)
            && !user.is_empty()
            && self.interest.load().includes_members(channel)
        {
            self.came(&Place::Member(channel.clone(), user.into()), NODE);
        }
    }

    /// Records that the last client of a user on this node has left a channel.
    pub(super) fn member_left(&self, channel: &ChannelName, user: &str) {
        if self.wants_members.load(Ordering::Relaxed) && !user.is_empty() {
            self.left(&Place::Member(channel.clone(), user.into()), NODE);
        }
    }

    /// Returns whether any webhook wants to be told of members.
    pub(super) fn wants_members(&self) -> bool {
        self.wants_members.load(Ordering::Relaxed)
    }

    fn came(&self, place: &Place, worker: u16) {
        let must_store = self.table.lock().came(place, worker);
        if must_store {
            self.changed.notify_one();
        }
    }

    fn left(&self, place: &Place, worker: u16) {
        let waits = self.table.lock().left(now(), place, worker);
        if waits {
            self.changed.notify_one();
        }
    }

    /// Looks which places the webhooks want to be told of. If these are others than before, returns
    /// true: then record again which places are occupied.
    pub(super) fn follow_webhooks(&self) -> bool {
        let interest = self.webhooks.interest();
        if interest == **self.interest.load() {
            return false;
        }
        let (channels, members) = (interest.wants_channels(), interest.wants_members());
        let interest = Arc::new(interest);
        self.interest.store(interest.clone());
        self.wants_channels.store(channels, Ordering::Relaxed);
        self.wants_members.store(members, Ordering::Relaxed);
        self.table.lock().forget(|place| match place {
            Place::Channel(channel) => interest.includes_channel(channel),
            Place::Member(channel, _) => interest.includes_members(channel),
        });
        self.changed.notify_one();
        true
    }

    /// Stores nothing until [`release`](Self::release) is called.
    pub(super) fn hold(&self) {
        self.is_held.store(true, Ordering::Relaxed);
    }

    /// Stores what was recorded since [`hold`](Self::hold).
    pub(super) fn release(&self) {
        self.is_held.store(false, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Stores all places again, because the broker may have lost some.
    pub(super) fn restore(&self) {
        self.must_reset.store(true, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Stores changes, and tells webhooks of those that the broker says to be the first or the
    /// last. Never returns.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            if self.is_held.load(Ordering::Relaxed) {
                self.changed.notified().await;
                continue;
            }
            if self.store_changes().await {
                continue;
            }
            let due = self.table.lock().due();
            match due.map(|due| due.saturating_duration_since(now())) {
                // An error means that it is due.
                Some(wait) => _ = timeout(wait, self.changed.notified()).await,
                None => self.changed.notified().await,
            }
            sleep(GATHER).await;
        }
    }

    /// Stores some changes. Returns whether there may be more.
    async fn store_changes(&self) -> bool {
        if self.must_reset.swap(false, Ordering::Relaxed) {
            if let Err(error) = self.broker.reset_occupancy().await {
                debug!(%error, "cannot remove the occupied names of this node");
            }
            self.table.lock().restore();
        }
        let changes = self.take();
        // The first call, even without changes, asks to be told of nodes that have ended.
        let has_begun = self.has_begun.load(Ordering::Relaxed);
        if changes.is_empty() && (has_begun || self.interest.load().is_empty()) {
            return false;
        }
        let named = |change: &Change| OccupancyChange {
            name: change.place.name(),
            is_occupied: change.is_occupied,
        };
        let names: Vec<_> = changes.iter().map(named).collect();
        match self.broker.set_occupancy(&names).await {
            Ok(turns) => {
                self.has_begun.store(true, Ordering::Relaxed);
                self.table.lock().stored(&changes);
                for (change, is_turn) in changes.into_iter().zip(turns) {
                    if is_turn {
                        self.tell(change.place, change.is_occupied);
                    }
                }
                return true;
            }
            Err(BrokerError::LeaseEnded) => self.restore(),
            Err(error) => {
                if let Some(times) = FAILURES.ask(now()) {
                    warn!(%error, times, "cannot store which channels are occupied; webhooks are told later");
                }
            }
        }
        self.table.lock().failed(changes);
        sleep(RETRY).await;
        true
    }

    fn take(&self) -> Vec<Change> {
        let mut table = self.table.lock();
        let changes = table.take(now(), BATCH_LEN);
        self.lease.lock().set(table.bytes() as u64);
        changes
    }

    /// Tells webhooks of names that became vacant because another node has ended.
    pub(super) fn vacated(&self, names: &[String]) {
        for place in names.iter().filter_map(|name| Place::named(name)) {
            self.tell(place, false);
        }
    }

    /// Tells webhooks that all places are vacant, because the node has ended and no other node
    /// remains to tell them.
    pub(crate) fn end(&self) {
        if self.broker.stores_presence() {
            return;
        }
        let places = self.table.lock().end();
        for place in places {
            self.tell(place, false);
        }
    }

    /// Returns the number of places that this node has recorded.
    pub(crate) fn count(&self) -> usize {
        self.table.lock().len()
    }

    fn tell(&self, place: Place, is_occupied: bool) {
        let happened = match (place, is_occupied) {
            (Place::Channel(channel), true) => Happened::Occupied { channel },
            (Place::Channel(channel), false) => Happened::Vacated { channel },
            (Place::Member(channel, user), true) => Happened::MemberAdded { channel, user },
            (Place::Member(channel, user), false) => Happened::MemberRemoved { channel, user },
        };
        self.webhooks.record(None, &happened);
    }
}
