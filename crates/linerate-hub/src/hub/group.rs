//! Groups of subscriptions of a channel that share their blocks.

use std::time::{Duration, Instant};

use crate::{
    Batch, Conflate, EncodingId, Payloads, Publication, Sequence, SlowPolicy, SubscriptionOptions,
    hub::{
        arena::Arena, block::Blocks, class::Class, conflate::overflow::Overflow, ring::Ring, room,
        stream::Stream, subscription::Subscription,
    },
};

/// The subscriptions of a channel with the same options. Members at the same place receive the same
/// bytes.
#[derive(Debug)]
pub(crate) struct Group<B> {
    pub(crate) channel: u32,
    /// The place of its class in the channel.
    pub(crate) class: usize,
    pub(crate) kind: Kind,
    /// The place of the counters for its deliveries.
    pub(crate) meter: u32,
    /// The idle members, which have taken everything, followed by the busy ones.
    members: Vec<u32>,
    idle: usize,
    /// The number in the class up to which publications are released.
    pub(crate) limit: u64,
    /// The bytes and the gaps of the class up to the limit.
    bytes: u64,
    marks: u64,
    /// The time of the next tick, if one is scheduled.
    pub(crate) tick: Option<Instant>,
    pub(crate) blocks: Blocks<B>,
    /// What the encoding keeps for the blocks of the group.
    pub(crate) sequence: Option<Sequence>,
    /// Publications that the ring has lost, if only the newest of them are needed.
    pub(crate) overflow: Option<Box<Overflow>>,
    /// The limit before the last release. A member below it has not taken a batch that was due.
    previous_limit: u64,
    /// A lower bound of the cursors of all busy members.
    pub(crate) slowest: u64,
}

/// The options that all members of a group share, in addition to their class.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Kind {
    pub(crate) label: u16,
    pub(crate) encoding: EncodingId,
    pub(crate) batch_interval: Duration,
    pub(crate) batch_bytes_max: usize,
    pub(crate) conflate: Option<Conflate>,
    pub(crate) slow: SlowPolicy,
    pub(crate) is_sequenced: bool,
    pub(crate) with_deltas: bool,
    pub(crate) with_channel_id: bool,
    pub(crate) with_positions: bool,
}

impl Kind {
    pub(crate) fn new(options: &SubscriptionOptions) -> Self {
        Self {
            label: options.label,
            encoding: options.encoding,
            batch_interval: options.batch_interval,
            batch_bytes_max: options.batch_bytes_max,
            conflate: options.conflate.clone(),
            slow: options.slow,
            is_sequenced: options.is_sequenced,
            with_deltas: options.with_deltas,
            with_channel_id: options.with_channel_id,
            with_positions: options.with_positions,
        }
    }

    /// Returns publications as members receive them after `previous`.
    pub(crate) const fn batch<'a>(
        &self,
        stream: &'a Stream,
        publications: &'a [Publication],
        previous: Option<&'a Publication>,
    ) -> Batch<'a> {
        Batch {
            channel: &stream.name,
            channel_id: stream.id,
            publications,
            conflated: 0,
            payloads: match self.with_deltas {
                true => Payloads::Deltas { previous },
                false => Payloads::Full,
            },
            with_channel_id: self.with_channel_id,
            with_positions: self.with_positions,
        }
    }
}

impl<B> Group<B> {
    /// Creates a group without members, with everything in its class released so far.
    pub(crate) fn new(
        channel: u32,
        stream: &Stream,
        class_index: usize,
        (kind, meter): (Kind, u32),
    ) -> Self {
        let class = &stream.classes[class_index];
        let conflate = kind.conflate.clone();
        let conflate = conflate.or((kind.slow == SlowPolicy::Conflate).then_some(Conflate::Latest));
        let overflow = conflate.map(|conflate| Overflow::new(conflate, stream.ring.options()));
        Self {
            channel,
            class: class_index,
            kind,
            meter,
            members: Vec::new(),
            idle: 0,
            limit: class.head(),
            bytes: class.bytes(),
            marks: class.marks.head(),
            tick: None,
            blocks: Blocks::default(),
            sequence: None,
            overflow: overflow.map(Box::new),
            previous_limit: class.head(),
            slowest: class.head(),
        }
    }

    /// Returns all members.
    pub(crate) fn members(&self) -> &[u32] {
        &self.members
    }

    /// Adds a member, which is busy at first.
    pub(crate) fn join(&mut self, index: u32, subscriptions: &mut Arena<Subscription>) {
        let subscription = &mut subscriptions[index];
        subscription.place = self.members.len() as u32;
        self.slowest = match self.busy() {
            0 => subscription.cursor,
            _ => self.slowest.min(subscription.cursor),
        };
        self.members.push(index);
    }

    /// Removes a member; returns whether it was busy.
    pub(crate) fn leave(&mut self, index: u32, subscriptions: &mut Arena<Subscription>) -> bool {
        let mut place = subscriptions[index].place as usize;
        let was_busy = place >= self.idle;
        if !was_busy {
            self.idle -= 1;
            self.swap(place, self.idle, subscriptions);
            place = self.idle;
        }
        self.swap(place, self.members.len() - 1, subscriptions);
        self.members.pop();
        self.tidy();
        let room = room::reduced(self.members.capacity(), self.members.len());
        if let Some(room) = room {
            self.members.shrink_to(room);
        }
        was_busy
    }

    /// Marks a member idle because it has taken everything; returns whether it was busy.
    pub(crate) fn mark_idle(
        &mut self,
        index: u32,
        subscriptions: &mut Arena<Subscription>,
    ) -> bool {
        let place = subscriptions[index].place as usize;
        if place < self.idle {
            return false;
        }
        self.swap(place, self.idle, subscriptions);
        self.idle += 1;
        self.tidy();
        true
    }

    /// Releases everything in the class; returns the members that were idle and are busy now.
    pub(crate) fn release(&mut self, class: &Class) -> &[u32] {
        let is_news = class.head() > self.limit || class.marks.head() > self.marks;
        if !is_news {
            return &[];
        }
        self.slowest = match self.busy() {
            0 => self.limit,
            _ => self.slowest.min(self.limit),
        };
        if self.kind.conflate.is_some() {
            self.blocks.clear();
        }
        self.previous_limit = self.limit;
        self.limit = class.head();
        self.bytes = class.bytes();
        self.marks = class.marks.head();
        let woken = std::mem::take(&mut self.idle);
        &self.members[..woken]
    }

    /// Records that the ring has lost a publication, and keeps it if a member may still need it.
    pub(crate) fn keep(&mut self, number: u64, publication: &Publication) {
        let is_needed = self.busy() > 0 || number >= self.limit;
        if let Some(overflow) = self.overflow.as_mut().filter(|_| is_needed) {
            overflow.keep(number, publication);
        }
    }

    /// Returns whether unreleased publications must not wait for the tick. Publications that are
    /// conflated can always wait, because their size does not grow without limit.
    pub(crate) fn is_urgent(&self, class: &Class, ring: &Ring) -> bool {
        let is_much = || {
            class.bytes() - self.bytes >= self.kind.batch_bytes_max as u64
                || self.limit < class.base()
                || ring.is_half_full(class.ring_number(self.limit, ring))
        };
        !self.is_ticking()
            || class.marks.head() > self.marks
            || (self.kind.conflate.is_none() && is_much())
    }

    /// Returns the number below which the cursor of a member means that it is to be disconnected.
    pub(crate) fn late_before(&self, class: &Class) -> u64 {
        match (self.kind.slow, &self.kind.conflate) {
            (SlowPolicy::Disconnect, None) => class.base(),
            (SlowPolicy::Disconnect, Some(_)) => class.base().min(self.previous_limit),
            _ => 0,
        }
    }

    /// Returns the number before which some publications are lost and not only replaced.
    pub(crate) fn lost_before(&self, class: &Class) -> u64 {
        let overflow = self.overflow.as_ref();
        overflow.map_or(class.base(), |overflow| overflow.lost_before())
    }

    /// Returns the publication before the one with this number, if members receive deltas and it is
    /// still there.
    pub(crate) fn before<'a>(
        &self,
        number: u64,
        class: &'a Class,
        ring: &'a Ring,
    ) -> Option<&'a Publication> {
        match self.kind.with_deltas {
            true => class.before(number, ring),
            false => None,
        }
    }

    /// Returns whether every publication of a range of the class is replaced or lost.
    pub(crate) fn is_gone(&self, class: &Class, from: u64, to: u64) -> bool {
        let is_kept = |overflow: &Overflow| overflow.iter(from, to).next().is_some();
        to <= class.base().max(from) && !self.overflow.as_deref().is_some_and(is_kept)
    }

    /// Returns whether a member has taken everything that was released.
    pub(crate) fn is_idle(&self, subscription: &Subscription) -> bool {
        (subscription.place as usize) < self.idle
    }

    pub(crate) fn is_ticking(&self) -> bool {
        !self.kind.batch_interval.is_zero()
    }

    /// Returns whether publications wait for a tick.
    pub(crate) fn has_unreleased(&self, class: &Class) -> bool {
        class.head() > self.limit
    }

    pub(crate) fn busy(&self) -> usize {
        self.members.len() - self.idle
    }

    /// Returns the members that have not taken everything.
    pub(crate) fn busy_members(&self) -> &[u32] {
        &self.members[self.idle..]
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Releases what no member needs any more.
    fn tidy(&mut self) {
        if self.busy() > 0 {
            return;
        }
        self.blocks.clear();
        if let Some(overflow) = &mut self.overflow {
            overflow.forget_before(self.limit);
        }
    }

    fn swap(&mut self, a: usize, b: usize, subscriptions: &mut Arena<Subscription>) {
        self.members.swap(a, b);
        subscriptions[self.members[a]].place = a as u32;
        subscriptions[self.members[b]].place = b as u32;
    }
}
