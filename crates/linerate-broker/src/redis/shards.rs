//! A cluster with sharded Pub/Sub: one link to each master, and each name on the link of its
//! master.
//!
//! The masters of the slots are queried regularly, and immediately when a node reports that a slot
//! has moved. A channel that moves is subscribed at its new master and reported as a gap, because
//! it is unknown what was published in between.

use std::{collections::hash_map::Entry, sync::Arc, time::Duration};

use foldhash::HashMap;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, MissedTickBehavior, interval},
};

use super::{
    address::Host,
    cluster::{SlotMap, slot},
    link::{Link, ORDERS_MAX, Order, Redirection},
    state::RedisState,
    subscriptions::{Name, Subscription, SubscriptionKind, Target, Waiter},
};
use crate::{
    event::{Event, Gap, GapReason, LinkState},
    lock::lock,
};

/// The interval between queries for the masters of the slots.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// The same interval while a master is unavailable.
const REFRESH_INTERVAL_DEAF: Duration = Duration::from_secs(1);

/// The number of names that are tried to find one in a slot of a certain master. This finds a
/// master with a thousandth of the slots almost certainly.
const PROBES_MAX: u32 = 20_000;

/// The links of a node to a cluster.
#[derive(Debug)]
pub(super) struct Shards {
    shared: Arc<RedisState>,
    seeds: Vec<Host>,
    orders: mpsc::Receiver<Order>,
    moved: mpsc::UnboundedReceiver<Redirection>,
    redirections: mpsc::UnboundedSender<Redirection>,
    map: SlotMap,
    links: HashMap<Host, Shard>,
    placed: HashMap<Name, Placement>,
    links_made: u64,
    refreshed: Option<Instant>,
}

/// The link to a master.
#[derive(Debug)]
struct Shard {
    number: u64,
    orders: mpsc::Sender<Order>,
}

/// A subscription and where it is.
#[derive(Debug)]
struct Placement {
    kind: SubscriptionKind,
    target: Target,
    /// `None` while no master serves its slot.
    host: Option<Host>,
    /// The time since when publications may have been missed.
    missed: Option<Instant>,
    waiters: Vec<Waiter>,
}

impl Shards {
    /// Creates the links of a node that follow `orders`. `seeds` are some nodes of the cluster.
    pub(super) fn new(
        shared: Arc<RedisState>,
        seeds: Vec<Host>,
        orders: mpsc::Receiver<Order>,
    ) -> Self {
        let (redirections, moved) = mpsc::unbounded_channel();
        let mut shards = Self {
            seeds,
            orders,
            moved,
            redirections,
            map: SlotMap::default(),
            links: HashMap::default(),
            placed: HashMap::default(),
            links_made: 0,
            refreshed: None,
            shared,
        };
        for name in shards.shared.control_names() {
            let subscription = Subscription {
                kind: SubscriptionKind::Shard,
                target: Target::Control,
                waiters: Vec::new(),
            };
            shards.record(name.into_bytes().into(), subscription);
        }
        shards
    }

    /// Maintains the links until the sender of orders is dropped.
    pub(super) async fn run(mut self) {
        let mut ticks = interval(REFRESH_INTERVAL_DEAF);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(Order::Subscribe(name, subscription)) => {
                        self.record(Arc::clone(&name), subscription);
                        self.place(&name).await;
                    }
                    Some(Order::Unsubscribe(name)) => self.unsubscribe(&name).await,
                    None => return,
                },
                Some(moved) = self.moved.recv() => {
                    self.handle_redirection(moved);
                    while let Ok(moved) = self.moved.try_recv() {
                        self.handle_redirection(moved);
                    }
                    self.refresh().await;
                }
                _ = ticks.tick() => if self.is_stale() {
                    self.refresh().await;
                },
            }
        }
    }

    fn record(&mut self, name: Name, subscription: Subscription) {
        let placed = Placement {
            kind: subscription.kind,
            target: subscription.target,
            host: None,
            missed: None,
            waiters: subscription.waiters,
        };
        self.placed.insert(name, placed);
    }

    async fn unsubscribe(&mut self, name: &Name) {
        if let Some(placed) = self.placed.remove(name)
            && let Some(host) = placed.host
            && let Some(shard) = self.links.get(&host)
        {
            let order = Order::Unsubscribe(Arc::clone(name));
            let _ = shard.orders.send(order).await;
        }
    }

    /// Takes back a subscription that a link can no longer serve.
    fn handle_redirection(&mut self, moved: Redirection) {
        if let Target::Probe = moved.subscription.target {
            // A link that cannot receive its own publications is replaced by one with another
            // loopback channel.
            self.end(moved.link);
            return;
        }
        if let Entry::Occupied(mut placed) = self.placed.entry(moved.name) {
            let placed = placed.get_mut();
            placed.host = None;
            placed.missed.get_or_insert_with(Instant::now);
            placed.waiters.extend(moved.subscription.waiters);
        }
    }

    /// Ends a link. What it served is missed from now on.
    fn end(&mut self, number: u64) {
        let ended = self.links.extract_if(|_, shard| shard.number == number);
        let ended: Vec<Host> = ended.map(|(host, _)| host).collect();
        for placed in self.placed.values_mut() {
            if placed
                .host
                .as_ref()
                .is_some_and(|host| ended.contains(host))
            {
                placed.host = None;
                placed.missed.get_or_insert_with(Instant::now);
            }
        }
    }

    fn is_stale(&self) -> bool {
        let age = match self.shared.health.state() {
            LinkState::Deaf => REFRESH_INTERVAL_DEAF,
            LinkState::Up { .. } => REFRESH_INTERVAL,
        };
        self.refreshed.is_none_or(|at| at.elapsed() >= age)
    }

    /// Queries the masters of the slots, and moves every subscription to its master.
    async fn refresh(&mut self) {
        let mut nodes = self.map.masters();
        nodes.extend(self.seeds.iter().cloned());
        self.refreshed = Some(Instant::now());
        match self.shared.commands.slots(&nodes).await {
            Ok(map) => self.map = map,
            Err(reason) => {
                tracing::warn!(
                    reason,
                    "no node of the cluster returned the masters of the slots"
                );
                *lock(&self.shared.trouble) = reason;
                return;
            }
        }
        self.update_links();
        let names: Vec<Name> = self.placed.keys().cloned().collect();
        for name in names {
            self.place(&name).await;
        }
    }

    /// Ends links to nodes that are not masters, and creates those that are missing.
    fn update_links(&mut self) {
        let masters = self.map.masters();
        let ended = self.links.extract_if(|host, _| !masters.contains(host));
        let ended: HashMap<Host, Option<Instant>> = ended
            .map(|(host, shard)| (host, self.shared.health.up(shard.number)))
            .collect();
        for host in masters {
            if !self.links.contains_key(&host)
                && let Some(shard) = self.link(&host)
            {
                self.links.insert(host, shard);
            }
        }
        for placed in self.placed.values_mut() {
            if let Some(up) = placed.host.as_ref().and_then(|host| ended.get(host)) {
                placed.host = None;
                placed.missed = placed.missed.or(*up).or(Some(Instant::now()));
            }
        }
    }

    fn link(&mut self, host: &Host) -> Option<Shard> {
        let names = &self.shared.names;
        let probes = (0..PROBES_MAX).map(|number| names.probe(&self.shared.node, number));
        let is_there = |probe: &String| self.map.master(slot(probe.as_bytes())) == Some(host);
        let probe = probes.into_iter().find(is_there)?;
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        self.links_made += 1;
        let number = self.links_made;
        let (shared, redirections) = (Arc::clone(&self.shared), self.redirections.clone());
        let link = Link::new(
            shared,
            number,
            Some(host.clone()),
            probe,
            queue,
            Some(redirections),
        );
        tokio::spawn(link.run());
        Some(Shard { number, orders })
    }

    /// Subscribes to a name at the master of its slot, unless it is already subscribed there.
    async fn place(&mut self, name: &Name) {
        let Some(placed) = self.placed.get_mut(name) else {
            return;
        };
        let master = self.map.master(slot(name));
        if master.is_none() || placed.host.as_ref() == master {
            return;
        }
        if let Some(before) = placed.host.take() {
            placed.missed.get_or_insert_with(Instant::now);
            if let Some(shard) = self.links.get(&before) {
                let order = Order::Unsubscribe(Arc::clone(name));
                let _ = shard.orders.send(order).await;
            }
        }
        let Some((host, shard)) = master.and_then(|host| self.links.get_key_value(host)) else {
            return;
        };
        let mut waiters = std::mem::take(&mut placed.waiters);
        if let Some(missed) = placed.missed.take() {
            waiters.push(report_gap(&self.shared, &placed.target, missed));
        }
        let subscription = Subscription {
            kind: placed.kind,
            target: placed.target.clone(),
            waiters,
        };
        placed.host = Some(host.clone());
        let order = Order::Subscribe(Arc::clone(name), subscription);
        let _ = shard.orders.send(order).await;
    }
}

/// Reports a gap in a channel once it is subscribed again.
fn report_gap(shared: &Arc<RedisState>, target: &Target, missed: Instant) -> Waiter {
    let (waiter, ready) = oneshot::channel();
    let shared = Arc::clone(shared);
    let channel = target.channel().cloned();
    tokio::spawn(async move {
        if let (Some(channel), Ok(Ok(()))) = (channel, ready.await) {
            lock(&shared.sequencer).reset_channel(channel.as_str());
            let gap = Gap {
                channels: Some(vec![channel]),
                lasted: missed.elapsed(),
                reason: GapReason::LinkLost,
            };
            shared.ingest.ingest(vec![Event::Gap(gap)]).await;
        }
    });
    waiter
}
