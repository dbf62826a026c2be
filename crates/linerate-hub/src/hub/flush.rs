//! Finds the clients that have something to take after publications have arrived.

use std::time::Instant;

use crate::{
    SlowPolicy,
    hub::{channels::Channels, members::Members, stream::Stream, subscription::State},
};

/// The channels with something new since the last flush, and the time of the first change.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    dirty: Vec<u32>,
    since: Option<Instant>,
}

impl Changes {
    /// Marks a channel as changed since the last flush.
    #[inline]
    pub(crate) fn touch(&mut self, now: Instant, index: u32, stream: &mut Stream) {
        if !std::mem::replace(&mut stream.is_dirty, true) {
            self.dirty.push(index);
            self.note(now);
        }
    }

    /// Records that a client has something to take although no channel has changed.
    #[inline]
    pub(crate) fn note(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Returns when the first change since the last flush happened.
    #[inline]
    pub(crate) fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Releases new publications, or schedules a tick for them.
    pub(crate) fn flush<B>(&mut self, channels: &mut Channels<B>, members: &mut Members) {
        let Some(now) = self.since.take() else {
            return;
        };
        let mut release = Release { channels, members };
        for index in self.dirty.drain(..) {
            release.stream(now, index);
        }
        self.dirty.shrink_to(4_096);
    }
}

/// Releases publications to subscriptions.
pub(crate) struct Release<'h, B> {
    pub(crate) channels: &'h mut Channels<B>,
    pub(crate) members: &'h mut Members,
}

impl<B> Release<'_, B> {
    /// Ends the batch of a group if its tick is still scheduled for `at`.
    pub(crate) fn tick(&mut self, at: Instant, index: u32) {
        let Some(group) = self.channels.groups.get_mut(index) else {
            return;
        };
        if group.tick.is_some_and(|tick| tick == at) {
            self.now(index);
        }
    }

    /// Ends the batch of a group before its tick.
    pub(crate) fn now(&mut self, index: u32) {
        self.channels.groups[index].tick = None;
        self.release(index);
        self.end_slow(index);
    }

    fn stream(&mut self, now: Instant, index: u32) {
        let Some(stream) = self.channels.streams.get_mut(index) else {
            return;
        };
        if !std::mem::take(&mut stream.is_dirty) {
            return;
        }
        stream.flushed = stream.ring.head();
        let mut touched = std::mem::take(&mut stream.touched);
        for place in touched.drain(..) {
            self.class(now, index, place);
        }
        self.channels.streams[index].touched = touched;
        if self.channels.streams[index].busy == 0 {
            self.channels.trim(index);
        }
    }

    fn class(&mut self, now: Instant, index: u32, place: usize) {
        let Some(class) = self.channels.streams[index].classes.get_mut(place) else {
            return;
        };
        class.is_touched = false;
        for at in 0..class.groups.len() {
            let group = self.channels.streams[index].classes[place].groups[at];
            self.group(now, group);
        }
    }

    fn group(&mut self, now: Instant, index: u32) {
        let Channels {
            streams,
            groups,
            ticks,
            ..
        } = &mut *self.channels;
        let group = &mut groups[index];
        let stream = &streams[group.channel];
        let class = &stream.classes[group.class];
        if group.kind.conflate.is_none() {
            group.blocks.forget_before(class.base());
        }
        if group.is_urgent(class, &stream.ring) {
            self.release(index);
        } else if group.has_unreleased(class) && group.tick.is_none() {
            let interval = group.kind.batch_interval;
            group.tick = Some(ticks.arm(now, stream.phase, interval, index));
        }
        self.end_slow(index);
    }

    fn release(&mut self, index: u32) {
        let group = &mut self.channels.groups[index];
        let stream = &mut self.channels.streams[group.channel];
        let woken = group.release(&stream.classes[group.class]);
        stream.busy += woken.len();
        for subscription in woken {
            self.members.enqueue(*subscription);
        }
    }

    /// Marks clients that have fallen behind the ring for disconnection, if that is the policy.
    fn end_slow(&mut self, index: u32) {
        let Channels {
            streams, groups, ..
        } = &mut *self.channels;
        let group = &mut groups[index];
        let late_before = group.late_before(&streams[group.channel].classes[group.class]);
        let is_late = group.busy() > 0 && group.slowest < late_before;
        if group.kind.slow != SlowPolicy::Disconnect || !is_late {
            return;
        }
        let mut slowest = u64::MAX;
        for member in group.busy_members() {
            let subscription = &self.members.subscriptions[*member];
            if subscription.cursor >= late_before {
                slowest = slowest.min(subscription.cursor);
            } else if subscription.state == State::Live {
                self.members.end_slow(*member);
            }
        }
        group.slowest = slowest;
    }
}
