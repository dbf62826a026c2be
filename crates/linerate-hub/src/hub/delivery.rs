//! Determines the next output for a client.

mod arrival;

use std::time::Instant;

use crate::{
    Conflate, Gap, GapCause, HubOptions, SlowPolicy, SubscriptionId, Transmit,
    hub::{
        block::Block,
        channels::Channels,
        client::Readiness,
        conflate::Span,
        freeze::{Freezer, Range},
        members::Members,
        meter::Meters,
        subscription::{Arrival, State},
        totals::Totals,
    },
};

/// The maximum number of sequences of a channel, because an encoding may keep much for each.
const SEQUENCES_MAX: usize = 8;

/// Turns publications into output, and counts it.
#[derive(Debug)]
pub(crate) struct Delivery<B> {
    pub(crate) freezer: Freezer<B>,
    pub(crate) meters: Meters,
    pub(crate) totals: Totals,
    block_cache_bytes_max: usize,
}

/// The channels and members that output is taken from.
pub(crate) struct Source<'h, B> {
    pub(crate) channels: &'h mut Channels<B>,
    pub(crate) members: &'h mut Members,
}

/// The next step of a subscription.
enum Next {
    Gap(Gap),
    /// Publications up to this number. They are conflated if the ring no longer holds the first
    /// one.
    Publications(u64),
    Slow,
}

impl<B: Clone> Delivery<B> {
    pub(crate) fn new(options: &HubOptions<B>) -> Self {
        Self {
            freezer: Freezer::new(options.encodings.clone(), options.blocks.clone()),
            meters: Meters::default(),
            totals: Totals::default(),
            block_cache_bytes_max: options.block_cache_bytes_max,
        }
    }

    /// Returns the next item for a client.
    pub(crate) fn serve(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
    ) -> Option<Transmit<B>> {
        let client = &mut source.members.clients[index];
        if client.is_over {
            return None;
        }
        if let Some(subscription) = client.slow {
            return Some(self.end_client(source, subscription));
        }
        while let Some(subscription) = source.members.clients[index].front() {
            if let Some(transmit) = self.step(source, now, subscription) {
                source.members.clients[index].rotate(&mut source.members.subscriptions);
                return Some(transmit);
            }
            source.members.clients[index].dequeue(&mut source.members.subscriptions);
            self.mark_idle(source, subscription);
        }
        source.members.clients[index].readiness = Readiness::Idle;
        None
    }

    /// Reports a gap to a subscription.
    fn tell(&mut self, source: &mut Source<'_, B>, index: u32, gap: Gap) -> Transmit<B> {
        self.totals.count_gap(gap);
        let subscription = &mut source.members.subscriptions[index];
        if subscription.is_positioned {
            subscription.state = State::Ended;
        }
        let channel = source.channels.groups[subscription.group].channel;
        let stream = &source.channels.streams[channel];
        Transmit::Gap {
            subscription: SubscriptionId(source.members.subscriptions.key(index)),
            channel: stream.name.clone(),
            channel_id: stream.id,
            gap,
        }
    }

    /// Delivers a block. If it could not be encoded, this ends the subscription.
    fn give(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
        block: Block<B>,
    ) -> Transmit<B> {
        let subscription = SubscriptionId(source.members.subscriptions.key(index));
        let Some(encoded) = block.encoded else {
            self.totals.unencodable += 1;
            let own = &mut source.members.subscriptions[index];
            own.state = State::Ended;
            let channel = source.channels.groups[own.group].channel;
            let channel = source.channels.streams[channel].name.clone();
            return Transmit::Unencodable {
                subscription,
                channel,
            };
        };
        let delay = now.saturating_duration_since(block.published);
        let meter = source.channels.groups[source.members.subscriptions[index].group].meter;
        self.meters
            .count(meter, delay, block.messages, encoded.bytes);
        Transmit::Block {
            subscription,
            block: encoded.block,
            messages: block.messages,
        }
    }

    fn step(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
    ) -> Option<Transmit<B>> {
        if source.members.subscriptions[index].arrival.is_some()
            && let Some(transmit) = self.step_arrival(source, now, index)
        {
            return Some(transmit);
        }
        if source.members.subscriptions[index].state != State::Live {
            return None;
        }
        Some(match self.next(source, index)? {
            Next::Gap(gap) => self.tell(source, index, gap),
            Next::Publications(end) => {
                let block = self.block(source, now, index, end);
                self.totals.conflated += block.conflated;
                let subscription = &mut source.members.subscriptions[index];
                (subscription.cursor, subscription.has_previous) = (block.to, block.has_last);
                self.give(source, now, index, block)
            }
            Next::Slow => self.end_client(source, index),
        })
    }

    fn next(&mut self, source: &mut Source<'_, B>, index: u32) -> Option<Next> {
        let subscription = &mut source.members.subscriptions[index];
        let group = &source.channels.groups[subscription.group];
        let class = &source.channels.streams[group.channel].classes[group.class];
        if subscription.cursor < group.late_before(class) {
            return Some(Next::Slow);
        }
        let lost_before = group.lost_before(class);
        if subscription.cursor < lost_before {
            // With conflation, the number is unknown: some of the publications would have been
            // replaced anyway.
            let missed = lost_before - subscription.cursor;
            subscription.skip_to(lost_before);
            return Some(Next::Gap(Gap {
                missed: group.kind.conflate.is_none().then_some(missed),
                cause: GapCause::RingEvicted,
            }));
        }
        let (dropped, cause) = class.marks.dropped();
        if subscription.marks_seen < dropped {
            subscription.marks_seen = dropped;
            let missed = None;
            return Some(Next::Gap(Gap { missed, cause }));
        }
        // A publication that is gone because newer ones replaced it is counted with those.
        let cursor = subscription.cursor;
        let mark = class.marks.at(subscription.marks_seen);
        if let Some(mark) = mark.filter(|mark| group.is_gone(class, cursor, mark.at)) {
            subscription.marks_seen += 1;
            return Some(Next::Gap(mark.gap));
        }
        let end = mark.map_or(group.limit, |mark| mark.at.min(group.limit));
        if !group.is_gone(class, cursor, end) {
            return Some(Next::Publications(end));
        }
        if group.kind.slow == SlowPolicy::Disconnect {
            subscription.skip_to(end);
        }
        None
    }

    /// Returns the block that begins at a subscription's cursor. Encodes it unless it is cached.
    fn block(
        &mut self,
        source: &mut Source<'_, B>,
        now: Instant,
        index: u32,
        end: u64,
    ) -> Block<B> {
        let subscription = &source.members.subscriptions[index];
        let from = subscription.cursor;
        self.start_sequence(source.channels, subscription.group);
        let group = &mut source.channels.groups[subscription.group];
        let is_shared = group.len() > 1;
        let stream = &source.channels.streams[group.channel];
        let class = &stream.classes[group.class];
        let is_behind = from < class.base();
        let fallback = is_behind.then_some(&Conflate::Latest);
        let conflate = group.kind.conflate.as_ref().or(fallback);
        let limit = match conflate {
            Some(_) => end,
            None => group
                .blocks
                .next_after(from)
                .map_or(end, |next| next.min(end)),
        };
        let before = group.before(from, class, &stream.ring);
        let previous = before.filter(|_| subscription.has_previous);
        if let Some(block) = group.blocks.find(from, previous.is_some()) {
            return block.clone();
        }
        // Most members can use a delta where one can be made, so others are not of the sequence.
        let is_usual = previous.is_some() || before.is_none();
        let range = Range {
            span: Span {
                from,
                limit,
                bytes_max: group.kind.batch_bytes_max,
            },
            conflate,
            overflow: group.overflow.as_deref(),
            sequence: group.sequence.as_ref().filter(|_| is_shared && is_usual),
            previous,
        };
        let block = self.freezer.freeze(now, stream, class, &group.kind, range);
        if let Some(encoded) = &block.encoded {
            self.totals.frozen_blocks += 1;
            self.totals.frozen_bytes += encoded.bytes as u64;
        }
        if is_shared {
            let bytes_max = self.block_cache_bytes_max;
            group.blocks.insert(block.clone(), bytes_max);
        }
        block
    }

    /// Starts the sequence of a group whose blocks are shared, if it is to have one.
    fn start_sequence(&self, channels: &mut Channels<B>, group: u32) {
        let group = &mut channels.groups[group];
        let is_missing = group.kind.is_sequenced && group.sequence.is_none();
        let stream = &mut channels.streams[group.channel];
        if is_missing && group.len() > 1 && stream.sequences < SEQUENCES_MAX {
            group.sequence = self.freezer.sequence(group.kind.encoding);
            stream.sequences += usize::from(group.sequence.is_some());
        }
    }

    fn end_client(&mut self, source: &mut Source<'_, B>, index: u32) -> Transmit<B> {
        self.totals.slow_disconnects += 1;
        let subscription = &source.members.subscriptions[index];
        let group = &source.channels.groups[subscription.group];
        let stream = &source.channels.streams[group.channel];
        let base = stream.classes[group.class].base();
        let client = &mut source.members.clients[subscription.client];
        client.slow = None;
        client.is_over = true;
        Transmit::Slow {
            subscription: SubscriptionId(source.members.subscriptions.key(index)),
            channel: stream.name.clone(),
            missed: base.saturating_sub(subscription.cursor),
        }
    }

    /// Records that a subscription has taken everything.
    fn mark_idle(&mut self, source: &mut Source<'_, B>, index: u32) {
        let subscription = &mut source.members.subscriptions[index];
        let is_settled = |arrival: &mut Box<Arrival>| arrival.is_over();
        subscription.arrival.take_if(is_settled);
        let group = &mut source.channels.groups[subscription.group];
        let channel = group.channel;
        if group.mark_idle(index, &mut source.members.subscriptions) {
            let stream = &mut source.channels.streams[channel];
            stream.busy -= 1;
            if stream.busy == 0 {
                source.channels.trim(channel);
            }
        }
    }
}
