//! One worker's fan-out.

mod arena;
mod block;
mod class;
mod client;
mod conflate;
mod flush;
mod freeze;
mod group;
mod held;
mod join;
mod lag;
mod marks;
mod matcher;
mod membership;
mod meter;
mod ring;
mod room;
mod serve;
mod stream;
mod subscription;
mod tick;
mod totals;

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use bytes::Bytes;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use linerate_filter::Evaluated;

use self::{
    arena::{Arena, Key},
    client::{Client, Readiness},
    freeze::Freezer,
    group::Group,
    meter::Meters,
    stream::{Continuity, Stream},
    subscription::Subscription,
    tick::Ticks,
};
pub use self::{
    held::Held,
    join::Start,
    lag::Lag,
    membership::{IsChannelEmpty, SubscribeError},
    meter::{DELAY_BOUNDS_S, Deliveries, MESSAGES_BOUNDS},
    totals::Totals,
};
use crate::{ChannelName, Gap, GapCause, HubOptions, Publication, Transmit};

/// Refers to a client of a hub, and to nobody once it is disconnected.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ClientId(Key);

/// Refers to a subscription of a hub, and to none once it has ended.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct SubscriptionId(Key);

/// The channels that the clients of one worker subscribe to.
///
/// Publications go in by [`publish`](Self::publish). After a burst of them, [`poll_ready`](Self::poll_ready)
/// names the clients for which there is something, and [`poll_transmit`](Self::poll_transmit) gives it out, as
/// long as the client can take it. One that can't is left alone until [`handle_writable`](Self::handle_writable);
/// meanwhile what is for it stays in the rings of its channels, and nowhere else.
///
/// Time is what the caller says; it must not go backwards. `B` is what the encodings make of publications, given to
/// each client as a clone.
#[derive(Debug)]
pub struct Hub<B = Bytes> {
    options: HubOptions<B>,
    freezer: Freezer<B>,
    names: HashMap<ChannelName, u32, RandomState>,
    streams: Arena<Stream>,
    groups: Arena<Group<B>>,
    subscriptions: Arena<Subscription>,
    clients: Arena<Client>,
    ready: VecDeque<Key>,
    /// Channels in which something has come since the last flush, and when.
    dirty: Vec<u32>,
    dirty_since: Option<Instant>,
    ticks: Ticks,
    meters: Meters,
    /// How many groups have which interval.
    intervals: BTreeMap<Duration, usize>,
    totals: Totals,
}

impl<B: Clone> Hub<B> {
    /// Creates a hub without clients.
    pub fn new(options: HubOptions<B>) -> Self {
        Self {
            freezer: Freezer::new(options.encodings.clone(), options.blocks.clone()),
            ticks: Ticks::new(options.seed),
            options,
            names: HashMap::default(),
            streams: Arena::new(),
            groups: Arena::new(),
            subscriptions: Arena::new(),
            clients: Arena::new(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            dirty_since: None,
            meters: Meters::default(),
            intervals: BTreeMap::new(),
            totals: Totals::default(),
        }
    }

    /// Adds a client without subscriptions.
    pub fn connect(&mut self) -> ClientId {
        ClientId(self.clients.insert(Client::default()))
    }

    /// Publishes in a channel, if anybody subscribes to it here.
    ///
    /// Finds out itself what its position says: what was there before is left out, and a hole or another epoch
    /// is a gap.
    ///
    /// Returns whether the ring of the channel would soon lose what nobody could take yet: then transmit
    /// before more is published.
    pub fn publish(
        &mut self,
        now: Instant,
        channel: &ChannelName,
        publication: Publication,
    ) -> bool {
        self.publish_evaluated(now, now, channel, publication, &Evaluated::default())
    }

    /// Returns how many bytes of a publication's payload the filters of its channel would search, the same byte again for
    /// each search. What is many takes long, and is better evaluated in slices ([`evaluate`](Self::evaluate)).
    pub fn searched_bytes(&self, channel: &ChannelName, publication: &Publication) -> usize {
        let index = self.names.get(channel.as_str());
        index.map_or(0, |index| {
            self.streams[*index].matcher.searched_bytes(publication)
        })
    }

    /// Evaluates filters of a channel for what is to be published there, at least one of those of which nothing is known
    /// yet, until `is_over`. Returns whether no filter is left.
    ///
    /// In between the hub may do anything else: what changes is taken into account.
    pub fn evaluate(
        &self,
        channel: &ChannelName,
        publication: &Publication,
        known: &mut Evaluated,
        is_over: impl FnMut() -> bool,
    ) -> bool {
        let index = self.names.get(channel.as_str());
        index.is_none_or(|index| {
            self.streams[*index]
                .matcher
                .evaluate(publication, known, is_over)
        })
    }

    /// Publishes like [`publish`](Self::publish) what has been waiting since `since` to come here: that time is part
    /// of how long it waited in all. What [`evaluate`](Self::evaluate) has found out is not evaluated again.
    pub fn publish_evaluated(
        &mut self,
        now: Instant,
        since: Instant,
        channel: &ChannelName,
        publication: Publication,
        known: &Evaluated,
    ) -> bool {
        let Some(index) = self.names.get(channel.as_str()).copied() else {
            return false;
        };
        let stream = &mut self.streams[index];
        match stream.follow(&publication) {
            Continuity::Broken(gap) => stream.mark(gap),
            Continuity::Duplicate => {
                self.totals.dropped_duplicate += 1;
                return false;
            }
            Continuity::Next => {}
        }
        self.totals.published_messages += 1;
        self.totals.published_bytes += publication.payload().len() as u64;
        stream.push(since, publication, known);
        let is_pressing = stream.ring.is_half_full(stream.flushed);
        self.evict(index);
        self.touch(now, index);
        is_pressing
    }

    /// Takes notice that publications may be missing before the next one, in one channel or in all.
    pub fn handle_gap(&mut self, now: Instant, channel: Option<&ChannelName>, cause: GapCause) {
        let gap = Gap {
            missed: None,
            cause,
        };
        let indices: Vec<u32> = match channel {
            Some(channel) => self
                .names
                .get(channel.as_str())
                .copied()
                .into_iter()
                .collect(),
            None => self.names.values().copied().collect(),
        };
        for index in indices {
            self.streams[index].mark(gap);
            self.touch(now, index);
        }
    }

    /// Takes notice that a client can take more, after it could not.
    pub fn handle_writable(&mut self, client: ClientId) {
        let Some(index) = self.clients.find(client.0) else {
            return;
        };
        let client = &mut self.clients[index];
        if client.readiness == Readiness::Told {
            client.readiness = Readiness::Idle;
            if client.front().is_some() {
                self.wake(index);
            }
        }
    }

    /// Lets the batches that are over be given out.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, group)) = self.ticks.pop(now) {
            self.tick(at, group);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    ///
    /// To be asked again after [`poll_ready`](Self::poll_ready) has returned `None`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.dirty_since.or_else(|| self.ticks.next())
    }

    /// Returns a client for which there is something, each once until it has taken all, or
    /// [is writable](Self::handle_writable) again.
    pub fn poll_ready(&mut self) -> Option<ClientId> {
        self.flush();
        while let Some(key) = self.ready.pop_front() {
            let Some(index) = self.clients.find(key) else {
                continue;
            };
            let client = &mut self.clients[index];
            if client.readiness == Readiness::Queued {
                client.readiness = Readiness::Told;
                return Some(ClientId(key));
            }
        }
        None
    }

    /// Returns the next that is to be sent to a client; `None` if it has everything.
    ///
    /// A caller that stops earlier, because the client can't take more, calls
    /// [`handle_writable`](Self::handle_writable) when it can.
    pub fn poll_transmit(&mut self, now: Instant, client: ClientId) -> Option<Transmit<B>> {
        let index = self.clients.find(client.0)?;
        self.serve(now, index)
    }
}
