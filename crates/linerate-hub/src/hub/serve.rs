//! Determines the next output for a client.

use std::time::Instant;

use crate::{
    Conflate, Gap, GapCause, SlowPolicy, SubscriptionId, Transmit,
    hub::{Hub, Readiness, block::Block, conflate::Span, freeze::Range, subscription::State},
};

/// The next step of a subscription.
enum Next {
    Gap(Gap),
    /// Publications up to this number. They are conflated if the ring no longer holds the first
    /// one.
    Publications(u64),
    Slow,
}

impl<B: Clone> Hub<B> {
    pub(super) fn serve(&mut self, now: Instant, index: u32) -> Option<Transmit<B>> {
        let client = &mut self.clients[index];
        if client.is_over {
            return None;
        }
        if let Some(subscription) = client.slow {
            return Some(self.end_client(subscription));
        }
        while let Some(subscription) = self.clients[index].front() {
            if let Some(transmit) = self.step(now, subscription) {
                self.clients[index].rotate(&mut self.subscriptions);
                return Some(transmit);
            }
            self.clients[index].dequeue(&mut self.subscriptions);
            self.rest(subscription);
        }
        self.clients[index].readiness = Readiness::Idle;
        None
    }

    /// Reports a gap to a subscription.
    pub(super) fn tell(&mut self, index: u32, gap: Gap) -> Transmit<B> {
        self.totals.count_gap(gap);
        let subscription = &mut self.subscriptions[index];
        if subscription.is_positioned {
            subscription.state = State::Ended;
        }
        let channel = self.groups[subscription.group].channel;
        Transmit::Gap {
            subscription: SubscriptionId(self.subscriptions.key(index)),
            channel: self.streams[channel].name.clone(),
            gap,
        }
    }

    /// Delivers a block. If it could not be encoded, this ends the subscription.
    pub(super) fn give(&mut self, now: Instant, index: u32, block: Block<B>) -> Transmit<B> {
        let subscription = SubscriptionId(self.subscriptions.key(index));
        let Some(encoded) = block.encoded else {
            self.totals.unencodable += 1;
            let own = &mut self.subscriptions[index];
            own.state = State::Ended;
            let channel = self.groups[own.group].channel;
            let channel = self.streams[channel].name.clone();
            return Transmit::Unencodable {
                subscription,
                channel,
            };
        };
        let delay = now.saturating_duration_since(block.published);
        let meter = self.groups[self.subscriptions[index].group].meter;
        self.meters
            .count(meter, delay, block.messages, encoded.bytes);
        Transmit::Block {
            subscription,
            block: encoded.block,
            messages: block.messages,
        }
    }

    fn step(&mut self, now: Instant, index: u32) -> Option<Transmit<B>> {
        if self.subscriptions[index].arrival.is_some()
            && let Some(transmit) = self.step_arrival(now, index)
        {
            return Some(transmit);
        }
        if self.subscriptions[index].state != State::Live {
            return None;
        }
        Some(match self.next(index)? {
            Next::Gap(gap) => self.tell(index, gap),
            Next::Publications(end) => {
                let block = self.block(now, index, end);
                self.totals.conflated += block.conflated;
                self.subscriptions[index].cursor = block.to;
                self.give(now, index, block)
            }
            Next::Slow => self.end_client(index),
        })
    }

    fn next(&mut self, index: u32) -> Option<Next> {
        let subscription = &mut self.subscriptions[index];
        let group = &self.groups[subscription.group];
        let class = &self.streams[group.channel].classes[group.class];
        if subscription.cursor < group.late_before(class) {
            return Some(Next::Slow);
        }
        let lost_before = group.lost_before(class);
        if subscription.cursor < lost_before {
            // With conflation, the number is unknown: some of the publications would have been
            // replaced anyway.
            let missed = lost_before - subscription.cursor;
            subscription.cursor = lost_before;
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
            subscription.cursor = cursor.max(end);
        }
        None
    }

    /// Returns the block that begins at a subscription's cursor. Encodes it unless it is cached.
    fn block(&mut self, now: Instant, index: u32, end: u64) -> Block<B> {
        let subscription = &self.subscriptions[index];
        let from = subscription.cursor;
        let group = &mut self.groups[subscription.group];
        let stream = &self.streams[group.channel];
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
        if let Some(block) = group.blocks.find(from) {
            return block.clone();
        }
        let range = Range {
            span: Span {
                from,
                limit,
                bytes_max: group.kind.batch_bytes_max,
            },
            conflate,
            overflow: group.overflow.as_deref(),
        };
        let named = (group.channel, stream);
        let block = self
            .freezer
            .freeze(now, named, class, group.kind.encoding, range);
        if let Some(encoded) = &block.encoded {
            self.totals.frozen_blocks += 1;
            self.totals.frozen_bytes += encoded.bytes as u64;
        }
        if group.len() > 1 {
            let bytes_max = self.options.block_cache_bytes_max;
            group.blocks.insert(block.clone(), bytes_max);
        }
        block
    }

    fn end_client(&mut self, index: u32) -> Transmit<B> {
        self.totals.slow_disconnects += 1;
        let subscription = &self.subscriptions[index];
        let group = &self.groups[subscription.group];
        let stream = &self.streams[group.channel];
        let base = stream.classes[group.class].base();
        let client = &mut self.clients[subscription.client];
        client.slow = None;
        client.is_over = true;
        Transmit::Slow {
            subscription: SubscriptionId(self.subscriptions.key(index)),
            channel: stream.name.clone(),
            missed: base.saturating_sub(subscription.cursor),
        }
    }

    /// Records that a subscription has taken everything.
    fn rest(&mut self, index: u32) {
        let subscription = &mut self.subscriptions[index];
        let is_settled = |arrival: &mut Box<_>| crate::hub::subscription::Arrival::is_over(arrival);
        subscription.arrival.take_if(is_settled);
        let group = &mut self.groups[subscription.group];
        let channel = group.channel;
        if group.rest(index, &mut self.subscriptions) {
            let stream = &mut self.streams[channel];
            stream.busy -= 1;
            if stream.busy == 0 {
                self.trim(channel);
            }
        }
    }

    /// Drops what all subscribers of a channel have taken, when none of them is busy. Publications
    /// that were not released yet are kept.
    pub(super) fn trim(&mut self, index: u32) {
        let stream = &mut self.streams[index];
        if stream.is_dirty || stream.is_empty() {
            return;
        }
        let mut needed = stream.ring.head();
        if stream.ticking > 0 {
            for (_, class) in &stream.classes {
                for group in &class.groups {
                    let limit = self.groups[*group].limit;
                    needed = needed.min(class.ring_number(limit, &stream.ring));
                }
            }
        }
        stream.forget_before(needed);
    }
}
