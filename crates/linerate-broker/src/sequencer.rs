//! Positions and history rings of plain channels, stored by this node alone.
//!
//! The embedded broker uses nothing else. Brokers with a link use it for channels in which any
//! client of the broker may publish: publications are numbered in the order of their arrival, so
//! that a client that returns to this node misses nothing that is still in the ring. Each stream
//! has its own epoch. The epoch ends when the link is lost or the channel is no longer subscribed,
//! so that a recovery is never reported as complete when something may be missing.

use std::{collections::VecDeque, time::Duration};

use foldhash::HashMap;
use linerate_hub::{
    ChannelName, Epoch, Publication, StreamPosition, publication::PublicationBuilder,
};
use tokio::time::Instant;

use crate::request::{History, HistoryRequest, StreamOptions};

/// The number of channels that are examined to find one to remove.
const CANDIDATES_MAX: usize = 64;

/// Limits on what a [`Sequencer`] stores, regardless of the options of its channels.
#[derive(Clone, Copy, Debug)]
pub struct SequencerLimits {
    /// Maximum payload bytes of a channel. By default 4 MiB; the oldest publications are removed
    /// first.
    pub channel_bytes_max: usize,
    /// Maximum number of publications of a channel. By default 10,000.
    pub channel_messages_max: usize,
    /// Maximum number of channels. By default 100,000; a channel that has long been silent is
    /// removed to make room.
    pub channels_max: usize,
    /// How long a channel without publications is remembered if it is not [held](Sequencer::hold).
    /// By default one hour.
    pub idle_max: Duration,
    /// Maximum payload bytes of all channels together. By default 256 MiB.
    pub total_bytes_max: usize,
}

impl Default for SequencerLimits {
    fn default() -> Self {
        Self {
            channel_bytes_max: 4 << 20,
            channel_messages_max: 10_000,
            channels_max: 100_000,
            idle_max: Duration::from_secs(60 * 60),
            total_bytes_max: 256 << 20,
        }
    }
}

/// Numbers the publications of plain channels and stores the newest of them.
///
/// Each call also examines a few other channels, so that old publications are removed without a
/// timer.
#[derive(Debug)]
pub struct Sequencer {
    limits: SequencerLimits,
    incarnation: String,
    epochs: u64,
    streams: Vec<Stream>,
    indices: HashMap<ChannelName, usize>,
    bytes: usize,
    /// The index of the stream that is examined next for old publications.
    hand: usize,
}

#[derive(Debug)]
struct Stream {
    channel: ChannelName,
    epoch: Epoch,
    newest: u64,
    ring: VecDeque<StoredPublication>,
    bytes: usize,
    ttl: Duration,
    touched: Instant,
    is_held: bool,
}

#[derive(Debug)]
struct StoredPublication {
    at: Instant,
    publication: Publication,
}

impl Sequencer {
    /// Creates a sequencer without channels. `incarnation` must be unique to this run of the
    /// process.
    pub fn new(limits: SequencerLimits, incarnation: &str) -> Self {
        Self {
            limits,
            incarnation: incarnation.to_owned(),
            epochs: 0,
            streams: Vec::new(),
            indices: HashMap::default(),
            bytes: 0,
            hand: 0,
        }
    }

    /// Numbers a publication and stores it.
    ///
    /// The result has no position if the channel stores nothing, or if too many channels are held.
    pub fn publish(
        &mut self,
        now: Instant,
        channel: &ChannelName,
        options: StreamOptions,
        publication: PublicationBuilder,
    ) -> Publication {
        self.examine_some(now);
        if options.size_max == 0 {
            return publication.finish();
        }
        let Some(index) = self.open(now, channel) else {
            return publication.finish();
        };
        let stream = &mut self.streams[index];
        stream.newest += 1;
        let publication = publication.with_position(stream.position()).finish();
        let messages_max = options.size_max.min(self.limits.channel_messages_max);
        let before = stream.bytes;
        stream.store(now, options.ttl, publication.clone());
        stream.trim(now, messages_max, self.limits.channel_bytes_max);
        self.bytes = self.bytes - before + self.streams[index].bytes;
        self.make_room();
        publication
    }

    /// Starts a stream for the channel if it has none, so that it has a position before the first
    /// publication.
    pub fn touch(&mut self, now: Instant, channel: &ChannelName) {
        self.open(now, channel);
    }

    /// Starts a stream for the channel if it has none, and keeps it until [`close`](Self::close).
    pub fn hold(&mut self, now: Instant, channel: &ChannelName) {
        if let Some(index) = self.open(now, channel) {
            self.streams[index].is_held = true;
        }
    }

    /// Ends the stream of a channel, because this node no longer sees the channel's publications.
    pub fn close(&mut self, channel: &str) {
        if let Some(&index) = self.indices.get(channel) {
            self.remove(index);
        }
    }

    /// Begins a new epoch in all channels, because publications may have been missed.
    pub fn reset(&mut self) {
        for index in 0..self.streams.len() {
            self.reset_stream(index);
        }
    }

    /// Begins a new epoch in a channel, because publications may have been missed.
    pub fn reset_channel(&mut self, channel: &str) {
        if let Some(&index) = self.indices.get(channel) {
            self.reset_stream(index);
        }
    }

    /// Deletes the stored publications of a channel. Its offsets continue.
    pub fn remove_history(&mut self, channel: &str) {
        if let Some(&index) = self.indices.get(channel) {
            let stream = &mut self.streams[index];
            self.bytes -= stream.bytes;
            stream.bytes = 0;
            stream.ring.clear();
        }
    }

    /// Returns the stored publications of a channel.
    ///
    /// For a channel without a stream, the result has an epoch that no position will ever have.
    pub fn history(&mut self, now: Instant, channel: &str, request: &HistoryRequest) -> History {
        self.examine_some(now);
        let Some(&index) = self.indices.get(channel) else {
            return self.empty_history(request);
        };
        self.expire(now, index);
        self.streams[index].history(request)
    }

    /// Returns the number of channels with a stream.
    pub fn channels(&self) -> usize {
        self.streams.len()
    }

    /// Returns the number of payload bytes that are stored.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn open(&mut self, now: Instant, channel: &ChannelName) -> Option<usize> {
        if let Some(&index) = self.indices.get(channel.as_str()) {
            return Some(index);
        }
        if self.streams.len() >= self.limits.channels_max {
            let index = self.longest_silent()?;
            self.remove(index);
        }
        let epoch = self.next_epoch();
        self.indices.insert(channel.clone(), self.streams.len());
        self.streams.push(Stream {
            channel: channel.clone(),
            epoch,
            newest: 0,
            ring: VecDeque::new(),
            bytes: 0,
            ttl: Duration::ZERO,
            touched: now,
            is_held: false,
        });
        Some(self.streams.len() - 1)
    }

    fn remove(&mut self, index: usize) {
        let stream = self.streams.swap_remove(index);
        self.bytes -= stream.bytes;
        self.indices.remove(&stream.channel);
        if let Some(moved) = self.streams.get(index) {
            self.indices.insert(moved.channel.clone(), index);
        }
    }

    fn reset_stream(&mut self, index: usize) {
        let epoch = self.next_epoch();
        let stream = &mut self.streams[index];
        self.bytes -= stream.bytes;
        stream.bytes = 0;
        stream.ring.clear();
        stream.newest = 0;
        stream.epoch = epoch;
    }

    fn next_epoch(&mut self) -> Epoch {
        self.epochs += 1;
        Epoch::new(&format!("{}.{}", self.incarnation, self.epochs))
    }

    /// Examines two channels and removes what is too old.
    fn examine_some(&mut self, now: Instant) {
        for _ in 0..self.streams.len().min(2) {
            let index = self.next_hand();
            self.expire(now, index);
            let stream = &self.streams[index];
            let idle_max = self.limits.idle_max.max(stream.ttl);
            if !stream.is_held && now.duration_since(stream.touched) > idle_max {
                self.remove(index);
            }
            if self.streams.is_empty() {
                return;
            }
        }
    }

    /// Halves one ring after another until the limit for all channels is met.
    fn make_room(&mut self) {
        while self.bytes > self.limits.total_bytes_max {
            let index = self.next_hand();
            let stream = &mut self.streams[index];
            let before = stream.bytes;
            for _ in 0..stream.ring.len().div_ceil(2) {
                stream.drop_oldest();
            }
            self.bytes = self.bytes - before + stream.bytes;
        }
    }

    /// Finds the channel that has been silent the longest, among a bounded number of channels that
    /// are not held.
    fn longest_silent(&mut self) -> Option<usize> {
        let looked_at = (0..self.streams.len().min(CANDIDATES_MAX)).map(|_| self.next_hand());
        let looked_at: Vec<usize> = looked_at.collect();
        let free = looked_at
            .into_iter()
            .filter(|&index| !self.streams[index].is_held);
        free.min_by_key(|&index| self.streams[index].touched)
    }

    fn expire(&mut self, now: Instant, index: usize) {
        let stream = &mut self.streams[index];
        let before = stream.bytes;
        stream.trim(now, usize::MAX, usize::MAX);
        self.bytes = self.bytes - before + stream.bytes;
    }

    fn next_hand(&mut self) -> usize {
        self.hand = (self.hand + 1) % self.streams.len();
        self.hand
    }

    fn empty_history(&self, request: &HistoryRequest) -> History {
        History {
            publications: Vec::new(),
            newest: StreamPosition {
                epoch: Epoch::new(&self.incarnation),
                offset: 0,
            },
            is_contiguous: request.since.is_none(),
        }
    }
}

impl Stream {
    fn store(&mut self, now: Instant, ttl: Duration, publication: Publication) {
        self.ttl = ttl;
        self.touched = now;
        self.bytes += publication.payload().len();
        self.ring.push_back(StoredPublication {
            at: now,
            publication,
        });
    }

    fn trim(&mut self, now: Instant, messages_max: usize, bytes_max: usize) {
        while let Some(oldest) = self.ring.front() {
            let is_old = now.duration_since(oldest.at) > self.ttl;
            if !is_old && self.ring.len() <= messages_max && self.bytes <= bytes_max {
                return;
            }
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.ring.pop_front() {
            self.bytes -= oldest.publication.payload().len();
        }
    }

    fn position(&self) -> StreamPosition {
        StreamPosition {
            epoch: self.epoch.clone(),
            offset: self.newest,
        }
    }

    fn history(&self, request: &HistoryRequest) -> History {
        let first = self.newest + 1 - self.ring.len() as u64;
        let (after, is_contiguous) = match &request.since {
            None => (first - 1, true),
            Some(since) if since.epoch != self.epoch => (self.newest, false),
            Some(since) if since.offset > self.newest => (self.newest, false),
            Some(since) => (since.offset.max(first - 1), since.offset + 1 >= first),
        };
        let wanted = (self.newest - after) as usize;
        let publications = self.ring.range(self.ring.len() - wanted..);
        let publications = publications.map(|kept| kept.publication.clone());
        let limit = request.limit.unwrap_or(usize::MAX);
        History {
            publications: match request.is_reverse {
                false => publications.take(limit).collect(),
                true => publications.rev().take(limit).collect(),
            },
            newest: self.position(),
            is_contiguous,
        }
    }
}

#[cfg(test)]
mod tests;
