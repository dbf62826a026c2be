//! The channels of a hub, their groups, and the ticks of these groups.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::{Duration, Instant},
};

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::{
    ChannelName, ChannelOptions,
    hub::{
        arena::Arena,
        group::{Group, Kind},
        memory_use::MemoryUse,
        meter::Meters,
        restored::Restored,
        ring::{OVERHEAD_BYTES, weight},
        room,
        stream::{ALL, Stream},
        tick::Ticks,
    },
};

/// The channels that have subscriptions.
#[derive(Debug)]
pub(crate) struct Channels<B> {
    names: HashMap<ChannelName, u32, RandomState>,
    pub(crate) streams: Arena<Stream>,
    pub(crate) groups: Arena<Group<B>>,
    pub(crate) ticks: Ticks,
    /// The number of groups for each batch interval.
    intervals: BTreeMap<Duration, usize>,
    pub(crate) restored: Restored,
}

impl<B> Channels<B> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            names: HashMap::default(),
            streams: Arena::new(),
            groups: Arena::new(),
            ticks: Ticks::new(seed),
            intervals: BTreeMap::new(),
            restored: Restored::default(),
        }
    }

    pub(crate) fn find_or_add(
        &mut self,
        now: Instant,
        channel: ChannelName,
        options: ChannelOptions,
    ) -> u32 {
        if let Some(index) = self.find(channel.as_str()) {
            return index;
        }
        let phase = self.ticks.new_phase(now);
        let mut stream = Stream::new(channel.clone(), options, phase);
        let state = self.restored.take(&channel);
        stream.position = state.as_ref().and_then(|state| state.position.clone());
        let index = self.streams.insert(stream).index;
        let id = state.map_or(self.restored.first_id() + index, |state| state.id);
        self.streams[index].id = id;
        self.names.insert(channel, index);
        index
    }

    pub(crate) fn find_or_add_group(
        &mut self,
        stream_index: u32,
        class_index: usize,
        kind: Kind,
        meters: &mut Meters,
    ) -> u32 {
        let stream = &mut self.streams[stream_index];
        let groups = &stream.classes[class_index].groups;
        let is_same = |index: &&u32| self.groups[**index].kind == kind;
        if let Some(index) = groups.iter().find(is_same) {
            return *index;
        }
        *self.intervals.entry(kind.batch_interval).or_default() += 1;
        let meter = meters.find_or_add(kind.label, kind.encoding);
        let group = Group::new(stream_index, stream, class_index, (kind, meter));
        stream.ticking += usize::from(group.is_ticking());
        let class = &mut stream.classes[class_index];
        if group.kind.with_deltas {
            class.add_deltas();
        }
        let index = self.groups.insert(group).index;
        class.groups.push(index);
        index
    }

    /// Removes a group without members, and its class if that was the last group of it.
    pub(crate) fn end_group(&mut self, index: u32) {
        let group = self.groups.remove(index);
        if let Entry::Occupied(mut count) = self.intervals.entry(group.kind.batch_interval) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        let stream = &mut self.streams[group.channel];
        stream.ticking -= usize::from(group.is_ticking());
        stream.sequences -= usize::from(group.sequence.is_some());
        let class = &mut stream.classes[group.class];
        class.groups.retain(|other| *other != index);
        if group.kind.with_deltas {
            class.remove_deltas();
        }
        if class.groups.is_empty() && group.class != ALL {
            stream.remove_class(group.class);
        }
        let groups = &self.groups;
        let is_valid = |at, index| groups.contains(index) && groups[index].tick == Some(at);
        self.ticks.tidy(groups.len(), is_valid);
    }

    /// Removes a channel and returns its name.
    pub(crate) fn remove(&mut self, index: u32) -> ChannelName {
        let stream = self.streams.remove(index);
        self.names.remove(stream.name.as_str());
        let room = room::reduced(self.names.capacity(), self.names.len());
        if let Some(room) = room {
            self.names.shrink_to(room);
        }
        stream.name
    }

    /// Removes publications from the ring of a channel until it is within its limits.
    pub(crate) fn evict(&mut self, index: u32) {
        let stream = &mut self.streams[index];
        while let Some((ring_number, publication)) = stream.ring.evict() {
            stream.evict(ring_number, &publication, |class, number| {
                for group in &class.groups {
                    self.groups[*group].keep(number, &publication);
                }
            });
        }
    }

    /// Drops what all subscribers of a channel have taken, when none of them is busy. Publications
    /// that were not released yet are kept.
    pub(crate) fn trim(&mut self, index: u32) {
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

    #[inline]
    pub(crate) fn find(&self, channel: &str) -> Option<u32> {
        self.names.get(channel).copied()
    }

    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        self.names.values().copied()
    }

    pub(crate) fn batch_interval_min(&self) -> Option<Duration> {
        self.intervals.keys().next().copied()
    }

    pub(crate) fn memory_use(&self) -> MemoryUse {
        let mut held = MemoryUse::default();
        for (_, stream) in self.streams.iter() {
            held.messages += stream.ring.len() as u64;
            held.message_bytes += stream.ring.held_bytes();
            let classes = stream.classes.iter();
            for kept in classes.filter_map(|(_, class)| class.kept()) {
                held.messages += 1;
                held.message_bytes += (weight(kept) + OVERHEAD_BYTES) as u64;
            }
        }
        for (_, group) in self.groups.iter() {
            held.block_bytes += group.blocks.bytes() as u64;
            if let Some(overflow) = &group.overflow {
                held.messages += overflow.len() as u64;
                held.message_bytes += overflow.bytes() as u64;
            }
        }
        held
    }
}
