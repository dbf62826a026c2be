//! Passes events from the broker's reader to the workers. A worker receives only what its
//! subscribers want.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_broker::{BoxFuture, Event, Gap, Ingest, LinkState};
use linerate_budget::{Account, Budget, Consumer};
use linerate_hub::{ChannelName, Publication};
use tokio::{sync::mpsc, time::timeout};

use super::{
    emission::Emission,
    inbox::Arrival,
    inboxes::Inboxes,
    reports::Reports,
    routes::{Routes, Table},
    timeline::Timeline,
};
use crate::clock::now;

/// The maximum number of queued messages from other nodes. Beyond this, the broker's reader has to
/// wait.
const CONTROL_MAX: usize = 1_024;

/// The maximum time to wait until workers have delivered what was passed to them.
const DELIVERED_MAX: Duration = Duration::from_secs(1);

/// Publications may be delayed by this fraction (1/8) of the shortest batch interval.
const PATIENCE_OF_INTERVAL: u32 = 8;

/// The maximum delay of publications.
const PATIENCE_MAX: Duration = Duration::from_millis(25);

/// Receives the events of the broker and passes them to the workers of the node.
///
/// It is created before the broker, which needs it, and before the [`Node`](super::Node), which
/// needs both.
#[derive(Debug)]
pub(crate) struct Dispatcher {
    pub(crate) inboxes: Inboxes,
    pub(crate) routes: Routes,
    pub(crate) timeline: Timeline,
    budget: Budget,
    /// The account that publications are charged to until they are dropped.
    account: Account,
    reports: Reports,
    control: mpsc::Sender<ControlEvent>,
    /// How many events were passed on there, and how many of them were handled.
    control_sent: AtomicU64,
    control_handled: Arc<AtomicU64>,
    publications: AtomicU64,
    bytes: AtomicU64,
    bursts: AtomicU64,
    overflowed: AtomicU64,
}

/// An event that concerns the node as a whole.
#[derive(Clone, Debug)]
pub(super) enum ControlEvent {
    /// A message of another node.
    Message(Bytes),
    /// Names became vacant because a node that occupied them has ended.
    Vacated(Vec<String>),
}

/// The events that concern the node as a whole, in order.
#[derive(Debug)]
pub(crate) struct Control {
    events: mpsc::Receiver<ControlEvent>,
    handled: Arc<AtomicU64>,
    is_pending: bool,
}

/// What has arrived from the broker since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ArrivalCounts {
    /// The number of publications.
    pub publications: u64,
    /// The total size of their payloads in bytes.
    pub bytes: u64,
    /// The number of bursts, each of which arrived together.
    pub bursts: u64,
    /// The number of publications dropped because a worker did not read its inbox, counted once per
    /// worker.
    pub overflowed: u64,
}

impl Dispatcher {
    /// Creates a dispatcher for a node with `workers` workers (1 to 1024) whose memory is not
    /// limited.
    #[cfg(any(fuzzing, test))]
    pub(crate) fn new(workers: u16) -> (Arc<Self>, Control) {
        Self::within(Budget::unbounded(), workers)
    }

    /// Creates a dispatcher for a node with `workers` workers (1 to 1024), whose memory is counted
    /// in `budget`, and the control messages that its [`Node`](super::Node) needs to receive from
    /// other nodes.
    pub(crate) fn within(budget: Budget, workers: u16) -> (Arc<Self>, Control) {
        let (control, receiver) = mpsc::channel(CONTROL_MAX);
        let dispatcher = Self {
            inboxes: Inboxes::new(workers.clamp(1, 1_024)),
            routes: Routes::default(),
            timeline: Timeline::default(),
            account: budget.account(Consumer::Publications),
            budget,
            reports: Reports::default(),
            control,
            control_sent: AtomicU64::new(0),
            control_handled: Arc::default(),
            publications: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            bursts: AtomicU64::new(0),
            overflowed: AtomicU64::new(0),
        };
        let control = Control {
            events: receiver,
            handled: dispatcher.control_handled.clone(),
            is_pending: false,
        };
        (Arc::new(dispatcher), control)
    }

    /// Returns the memory budget of the node.
    pub(crate) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Sets the name of the broker for reports about its link.
    pub(crate) fn name_broker(&self, name: &'static str) {
        self.reports.name_broker(name);
    }

    /// Returns what has arrived from the broker since the start.
    pub(crate) fn arrived(&self) -> ArrivalCounts {
        ArrivalCounts {
            publications: self.publications.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            bursts: self.bursts.load(Ordering::Relaxed),
            overflowed: self.overflowed.load(Ordering::Relaxed),
        }
    }

    /// Returns whether all messages of other nodes have been handled.
    pub(crate) fn has_handled_control(&self) -> bool {
        let handled = self.control_handled.load(Ordering::Acquire);
        handled == self.control_sent.load(Ordering::Relaxed)
    }

    /// Returns the number of publications queued for the workers.
    pub(crate) fn waiting(&self) -> usize {
        self.inboxes.iter().map(|inbox| inbox.waiting().0).sum()
    }

    /// Returns whether a channel has subscribers on this node.
    pub(crate) fn has_subscribers(&self, channel: &ChannelName) -> bool {
        self.routes.read().contains_key(channel)
    }

    /// Passes events for several channels to the workers. An event for other channels than the one
    /// before it is delivered after that one, also to the subscribers of both.
    pub(crate) async fn emit(&self, emissions: Vec<Emission>) {
        let mut sorted = SortedBurst::new(self.inboxes.count());
        sorted.sort_emissions(emissions, &self.routes.read(), &self.account);
        self.pass_on(sorted).await;
    }

    /// Waits until the workers have delivered what was passed to them, or for [`DELIVERED_MAX`].
    pub(crate) async fn delivered(&self) {
        let (sender, mut dropped) = mpsc::channel(1);
        for inbox in self.inboxes.iter() {
            inbox
                .deliver(vec![Arrival::Barrier(Some(sender.clone()))])
                .await;
        }
        drop(sender);
        // An error means that a worker is stuck. Publications for it are dropped then.
        _ = timeout(DELIVERED_MAX, dropped.recv()).await;
    }

    async fn dispatch(&self, events: Vec<Event>) {
        let mut sorted = SortedBurst::new(self.inboxes.count());
        sorted.sort(events, &self.routes.read(), &self.account);
        self.pass_on(sorted).await;
    }

    async fn pass_on(&self, sorted: SortedBurst) {
        self.bursts.fetch_add(1, Ordering::Relaxed);
        self.publications
            .fetch_add(sorted.publications, Ordering::Relaxed);
        self.bytes.fetch_add(sorted.bytes, Ordering::Relaxed);
        for state in sorted.links {
            let lasted = self.timeline.record_link(state);
            self.reports.link(state, lasted, self.routes.count());
        }
        for gap in &sorted.gaps {
            self.timeline.record_gap(gap);
        }
        self.reports.gaps(&sorted.gaps);
        for (inbox, arrivals) in self.inboxes.iter().zip(sorted.arrivals) {
            if !arrivals.is_empty() {
                let overflowed = inbox.deliver(arrivals).await;
                self.overflowed.fetch_add(overflowed, Ordering::Relaxed);
            }
        }
        for event in sorted.control {
            self.control_sent.fetch_add(1, Ordering::Relaxed);
            // An error means that the node has stopped.
            _ = self.control.send(event).await;
        }
    }
}

impl Control {
    /// Returns the next event. The one before it has been handled then.
    pub(super) async fn next(&mut self) -> Option<ControlEvent> {
        if std::mem::take(&mut self.is_pending) {
            self.handled.fetch_add(1, Ordering::Release);
        }
        let event = self.events.recv().await;
        self.is_pending = event.is_some();
        event
    }
}

impl Ingest for Dispatcher {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(self.dispatch(events))
    }

    fn caught_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for inbox in self.inboxes.iter() {
                inbox.caught_up().await;
            }
        })
    }

    fn keep(&self, publication: &Publication) {
        publication.charge(&self.account);
    }

    fn patience(&self) -> Duration {
        let intervals = self
            .inboxes
            .iter()
            .filter_map(|inbox| inbox.batch_interval());
        let shortest = intervals.min().unwrap_or_default();
        (shortest / PATIENCE_OF_INTERVAL).min(PATIENCE_MAX)
    }
}

/// A burst of events, sorted by destination.
struct SortedBurst {
    arrivals: Vec<Vec<Arrival>>,
    control: Vec<ControlEvent>,
    gaps: Vec<Gap>,
    links: Vec<LinkState>,
    publications: u64,
    bytes: u64,
    /// When the burst arrived.
    since: Instant,
}

impl SortedBurst {
    fn new(workers: usize) -> Self {
        Self {
            arrivals: vec![Vec::new(); workers],
            control: Vec::new(),
            gaps: Vec::new(),
            links: Vec::new(),
            publications: 0,
            bytes: 0,
            since: now(),
        }
    }

    fn sort(&mut self, events: Vec<Event>, routes: &Table, account: &Account) {
        for event in events {
            match event {
                Event::Control(message) => self.control.push(ControlEvent::Message(message)),
                Event::Gap(gap) => self.sort_gap(gap),
                Event::Link(state) => self.links.push(state),
                Event::Publication {
                    channel,
                    publication,
                } => self.sort_publication((channel, publication), routes, account),
                Event::Vacated(names) => self.control.push(ControlEvent::Vacated(names)),
                // An event of a newer broker crate that this version does not know.
                _ => {}
            }
        }
    }

    fn sort_publication(
        &mut self,
        (channel, publication): (ChannelName, Publication),
        routes: &Table,
        account: &Account,
    ) {
        // Charge the publication before it is shared: the node's own history may hold it longer
        // than the workers.
        publication.charge(account);
        self.publications += 1;
        self.bytes += publication.payload().len() as u64;
        let Some(route) = routes.get(&channel) else {
            return;
        };
        route.count(&publication);
        for worker in &route.workers {
            let (channel, publication) = (channel.clone(), publication.clone());
            let arrival = Arrival::Publication(channel, publication, self.since);
            self.arrivals[usize::from(*worker)].push(arrival);
        }
    }

    fn sort_emissions(&mut self, emissions: Vec<Emission>, routes: &Table, account: &Account) {
        let mut last = None;
        for emission in emissions {
            let publications = emission.into_publications(|channel| routes.contains_key(channel));
            let channels = publications.iter().map(|(channel, _)| channel.clone());
            let channels: Vec<ChannelName> = channels.collect();
            if last.as_ref() != Some(&channels) {
                for arrivals in &mut self.arrivals {
                    if !matches!(arrivals.last(), Some(Arrival::Barrier(_))) {
                        arrivals.push(Arrival::Barrier(None));
                    }
                }
                last = Some(channels);
            }
            for publication in publications {
                self.sort_publication(publication, routes, account);
            }
        }
        for arrivals in &mut self.arrivals {
            arrivals.pop_if(|last| matches!(last, Arrival::Barrier(_)));
        }
    }

    fn sort_gap(&mut self, gap: Gap) {
        for arrivals in &mut self.arrivals {
            arrivals.push(Arrival::Gap(gap.clone()));
        }
        self.gaps.push(gap);
    }
}
