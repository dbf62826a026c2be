//! The fan-out of one worker.

mod admission;
mod arena;
mod block;
mod channels;
mod class;
mod client;
mod conflate;
mod delivery;
mod flush;
mod freeze;
mod group;
mod lag;
mod marks;
mod matcher;
mod members;
mod membership;
mod memory_use;
mod meter;
mod portable;
mod restored;
mod ring;
pub(crate) mod room;
mod stream;
mod subscription;
mod tick;
mod totals;

use std::time::Instant;

use bytes::Bytes;
use linerate_filter::Evaluated;

pub use self::{
    admission::SubscribeError,
    lag::Lag,
    membership::IsChannelEmpty,
    memory_use::MemoryUse,
    meter::{DELAY_BOUNDS_S, Deliveries, MESSAGES_BOUNDS},
    restored::{ChannelIdTooLarge, ChannelState},
    subscription::Start,
    totals::Totals,
};
use self::{
    channels::Channels,
    delivery::{Delivery, Source},
    flush::{Changes, Release},
    members::Members,
    stream::Continuity,
};
use crate::{ChannelName, ClientId, Gap, GapCause, HubOptions, Publication, Transmit};

/// The channels, subscriptions and clients of one worker.
///
/// Pass publications to [`publish`](Self::publish). After a burst of them,
/// [`poll_ready`](Self::poll_ready) returns the clients that have output, and
/// [`poll_transmit`](Self::poll_transmit) returns that output for as long as the client can take
/// it. A client that cannot take more is left alone until
/// [`handle_writable`](Self::handle_writable) is called for it. Meanwhile its publications are held
/// only in the rings of its channels.
///
/// The caller supplies the time, which must not go backwards. `B` is the type of an encoded block;
/// each client receives a clone.
#[derive(Debug)]
pub struct Hub<B = Bytes> {
    options: HubOptions<B>,
    channels: Channels<B>,
    members: Members,
    changes: Changes,
    delivery: Delivery<B>,
}

impl<B: Clone> Hub<B> {
    /// Creates a hub without clients.
    pub fn new(options: HubOptions<B>) -> Self {
        Self {
            channels: Channels::new(options.seed),
            members: Members::new(),
            changes: Changes::default(),
            delivery: Delivery::new(&options),
            options,
        }
    }

    /// Adds a client without subscriptions.
    pub fn connect(&mut self) -> ClientId {
        self.members.connect()
    }

    /// Publishes in a channel. Does nothing if no client of this hub subscribes to it.
    ///
    /// The position of the publication is checked: a publication that was seen before is dropped,
    /// and missing offsets or a new epoch are reported as a gap.
    ///
    /// Returns whether the ring of the channel is about to lose publications that no client has had
    /// a chance to take. Transmit before publishing more if this is true.
    pub fn publish(
        &mut self,
        now: Instant,
        channel: &ChannelName,
        publication: Publication,
    ) -> bool {
        self.publish_evaluated(now, now, channel, publication, &Evaluated::default())
    }

    /// Returns how many bytes of a publication's payload the filters of its channel would search,
    /// where each search counts the whole payload again. If this is large, evaluate the filters in
    /// slices with [`evaluate`](Self::evaluate).
    pub fn searched_bytes(&self, channel: &ChannelName, publication: &Publication) -> usize {
        let index = self.channels.find(channel.as_str());
        index.map_or(0, |index| {
            let matcher = &self.channels.streams[index].matcher;
            matcher.searched_bytes(publication)
        })
    }

    /// Evaluates the filters of a channel for a publication that is about to be published there,
    /// until `is_over` returns true. At least one pending filter is evaluated per call. Returns
    /// whether all filters are evaluated.
    ///
    /// The hub may be used for anything else between two calls: changes to the filters are taken
    /// into account.
    pub fn evaluate(
        &self,
        channel: &ChannelName,
        publication: &Publication,
        known: &mut Evaluated,
        is_over: impl FnMut() -> bool,
    ) -> bool {
        let index = self.channels.find(channel.as_str());
        index.is_none_or(|index| {
            let matcher = &self.channels.streams[index].matcher;
            matcher.evaluate(publication, known, is_over)
        })
    }

    /// Publishes like [`publish`](Self::publish) a publication that has been waiting since `since`.
    /// That time counts towards its delivery delay. Filters that [`evaluate`](Self::evaluate) has
    /// already evaluated are not evaluated again.
    pub fn publish_evaluated(
        &mut self,
        now: Instant,
        since: Instant,
        channel: &ChannelName,
        publication: Publication,
        known: &Evaluated,
    ) -> bool {
        let Some(index) = self.channels.find(channel.as_str()) else {
            return false;
        };
        let stream = &mut self.channels.streams[index];
        match stream.follow(&publication) {
            Continuity::Broken(gap) => stream.mark(gap),
            Continuity::Duplicate => {
                self.delivery.totals.dropped_duplicate += 1;
                return false;
            }
            Continuity::Next => {}
        }
        self.delivery.totals.published_messages += 1;
        self.delivery.totals.published_bytes += publication.payload().len() as u64;
        stream.push(since, publication, known);
        let is_pressing = stream.ring.is_half_full(stream.flushed);
        self.channels.evict(index);
        self.changes
            .touch(now, index, &mut self.channels.streams[index]);
        is_pressing
    }

    /// Records that publications may be missing before the next one, in one channel or in all.
    pub fn handle_gap(&mut self, now: Instant, channel: Option<&ChannelName>, cause: GapCause) {
        let gap = Gap {
            missed: None,
            cause,
        };
        let indices: Vec<u32> = match channel {
            Some(channel) => self.channels.find(channel.as_str()).into_iter().collect(),
            None => self.channels.indices().collect(),
        };
        for index in indices {
            let stream = &mut self.channels.streams[index];
            stream.mark(gap);
            self.changes.touch(now, index, stream);
        }
    }

    /// Records that a client can take more output again.
    pub fn handle_writable(&mut self, client: ClientId) {
        self.members.handle_writable(client);
    }

    /// Releases the batches that are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, group)) = self.channels.ticks.pop(now) {
            let mut release = Release {
                channels: &mut self.channels,
                members: &mut self.members,
            };
            release.tick(at, group);
        }
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    ///
    /// Ask again whenever [`poll_ready`](Self::poll_ready) has returned `None`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.changes.since().or_else(|| self.channels.ticks.next())
    }

    /// Returns a client that has output. Each client is returned once until it has taken everything
    /// or [becomes writable](Self::handle_writable) again.
    pub fn poll_ready(&mut self) -> Option<ClientId> {
        self.changes.flush(&mut self.channels, &mut self.members);
        self.members.poll_ready()
    }

    /// Returns the next item to send to a client, or `None` if it has everything.
    ///
    /// A caller that stops earlier because the client cannot take more must call
    /// [`handle_writable`](Self::handle_writable) once it can.
    pub fn poll_transmit(&mut self, now: Instant, client: ClientId) -> Option<Transmit<B>> {
        let index = self.members.find(client)?;
        let mut source = Source {
            channels: &mut self.channels,
            members: &mut self.members,
        };
        self.delivery.serve(&mut source, now, index)
    }
}
