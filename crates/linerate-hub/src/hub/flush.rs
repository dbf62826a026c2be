//! Finds the clients that have something to take after publications have arrived.

use std::time::Instant;

use crate::{
    SlowPolicy,
    hub::{Hub, Readiness, subscription::State},
};

impl<B: Clone> Hub<B> {
    /// Marks a channel as changed since the last flush.
    pub(super) fn touch(&mut self, now: Instant, index: u32) {
        let stream = &mut self.streams[index];
        if !std::mem::replace(&mut stream.is_dirty, true) {
            self.dirty.push(index);
            self.dirty_since.get_or_insert(now);
        }
    }

    /// Releases new publications, or schedules a tick for them.
    pub(super) fn flush(&mut self) {
        let Some(now) = self.dirty_since.take() else {
            return;
        };
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.flush_stream(now, index);
        }
        dirty.shrink_to(4_096);
        self.dirty = dirty;
    }

    /// Ends the batch of a group if its tick is still scheduled for `at`.
    pub(super) fn tick(&mut self, at: Instant, index: u32) {
        let Some(group) = self.groups.get_mut(index) else {
            return;
        };
        if group.tick.take_if(|tick| *tick == at).is_some() {
            self.release(index);
            self.end_slow(index);
        }
    }

    /// Queues a client for [`Hub::poll_ready`] unless it is already queued or reported.
    pub(super) fn wake(&mut self, index: u32) {
        let client = &mut self.clients[index];
        if client.readiness == Readiness::Idle && !client.is_over {
            client.readiness = Readiness::Queued;
            self.ready.push_back(self.clients.key(index));
        }
    }

    /// Removes publications from the ring of a channel until it is within its limits.
    pub(super) fn evict(&mut self, index: u32) {
        let stream = &mut self.streams[index];
        while let Some((ring_number, publication)) = stream.ring.evict() {
            stream.evict(ring_number, |class, number| {
                for group in &class.groups {
                    self.groups[*group].keep(number, &publication);
                }
            });
        }
    }

    fn flush_stream(&mut self, now: Instant, index: u32) {
        let Some(stream) = self.streams.get_mut(index) else {
            return;
        };
        if !std::mem::take(&mut stream.is_dirty) {
            return;
        }
        stream.flushed = stream.ring.head();
        let mut touched = std::mem::take(&mut stream.touched);
        for place in touched.drain(..) {
            self.flush_class(now, index, place);
        }
        self.streams[index].touched = touched;
        if self.streams[index].busy == 0 {
            self.trim(index);
        }
    }

    fn flush_class(&mut self, now: Instant, index: u32, place: usize) {
        let Some(class) = self.streams[index].classes.get_mut(place) else {
            return;
        };
        class.is_touched = false;
        for at in 0..class.groups.len() {
            let group = self.streams[index].classes[place].groups[at];
            self.flush_group(now, group);
        }
    }

    fn flush_group(&mut self, now: Instant, index: u32) {
        let group = &mut self.groups[index];
        let stream = &self.streams[group.channel];
        let class = &stream.classes[group.class];
        if group.kind.conflate.is_none() {
            group.blocks.forget_before(class.base());
        }
        if group.is_urgent(class, &stream.ring) {
            self.release(index);
        } else if group.has_unreleased(class) && group.tick.is_none() {
            let interval = group.kind.batch_interval;
            group.tick = Some(self.ticks.arm(now, stream.phase, interval, index));
        }
        self.end_slow(index);
    }

    fn release(&mut self, index: u32) {
        let group = &mut self.groups[index];
        let stream = &mut self.streams[group.channel];
        let woken = group.release(&stream.classes[group.class]);
        stream.busy += woken.len();
        for subscription in woken {
            let client_index = self.subscriptions[*subscription].client;
            let client = &mut self.clients[client_index];
            client.enqueue(*subscription, &mut self.subscriptions);
            if client.readiness == Readiness::Idle && !client.is_over {
                client.readiness = Readiness::Queued;
                self.ready.push_back(self.clients.key(client_index));
            }
        }
    }

    /// Marks clients that have fallen behind the ring for disconnection, if that is the policy.
    fn end_slow(&mut self, index: u32) {
        let group = &mut self.groups[index];
        let late_before = group.late_before(&self.streams[group.channel].classes[group.class]);
        let is_late = group.busy() > 0 && group.slowest < late_before;
        if group.kind.slow != SlowPolicy::Disconnect || !is_late {
            return;
        }
        let mut slowest = u64::MAX;
        for member in group.busy_members() {
            let subscription = &self.subscriptions[*member];
            if subscription.cursor >= late_before {
                slowest = slowest.min(subscription.cursor);
                continue;
            }
            let client = &mut self.clients[subscription.client];
            let is_new = client.slow.is_none() && !client.is_over;
            if is_new && subscription.state == State::Live {
                client.slow = Some(*member);
                if std::mem::replace(&mut client.readiness, Readiness::Queued) != Readiness::Queued
                {
                    self.ready.push_back(self.clients.key(subscription.client));
                }
            }
        }
        group.slowest = slowest;
    }
}
