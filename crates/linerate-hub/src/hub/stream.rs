//! What is live in a channel.

use std::time::Instant;

use slab::Slab;

use crate::{
    ChannelName, ChannelOptions, Filter, Gap, GapCause, Publication, StreamPosition,
    hub::{class::Class, guards::Guards, ring::Ring},
};
use std::sync::Arc;

/// The place of the class without a filter; each channel has it.
pub(crate) const ALL: usize = 0;

/// A channel with at least one subscription.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) name: ChannelName,
    pub(crate) ring: Ring,
    /// Added and removed by [`Stream::add_class`] and [`Stream::remove_class`] only.
    pub(crate) classes: Slab<Class>,
    guards: Guards,
    pub(crate) groups: Vec<u32>,
    /// How many of them keep what the ring loses.
    pub(crate) keepers: usize,
    /// The newest position that was seen live.
    pub(crate) position: Option<StreamPosition>,
    /// Where its ticks start.
    pub(crate) phase: u64,
    pub(crate) subscriptions: usize,
    /// How many of them have not taken everything that was given out.
    pub(crate) busy: usize,
    /// Whether something has come since the last flush, and where the ring was then.
    pub(crate) is_dirty: bool,
    pub(crate) flushed: u64,
}

/// How a publication goes with those before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Continuity {
    Broken(Gap),
    Duplicate,
    Next,
}

impl Stream {
    pub(crate) fn new(name: ChannelName, options: ChannelOptions, phase: u64) -> Self {
        let mut classes = Slab::with_capacity(1);
        let all = classes.insert(Class::new(None));
        let mut guards = Guards::default();
        guards.add(all, None);
        Self {
            name,
            guards,
            ring: Ring::new(options),
            classes,
            groups: Vec::new(),
            keepers: 0,
            position: None,
            phase,
            subscriptions: 0,
            busy: 0,
            is_dirty: false,
            flushed: 0,
        }
    }

    /// Compares a publication's position with the newest one, which it becomes.
    pub(crate) fn follow(&mut self, publication: &Publication) -> Continuity {
        let Some(position) = publication.position() else {
            return Continuity::Next;
        };
        let continuity = match &self.position {
            None => Continuity::Next,
            Some(newest) => compare(newest, position),
        };
        if continuity != Continuity::Duplicate {
            self.position = Some(position.clone());
        }
        continuity
    }

    /// Adds a publication.
    pub(crate) fn push(&mut self, now: Instant, publication: Publication) {
        let number = self.ring.head();
        let classes = &mut self.classes;
        self.guards.visit(&publication, |place| {
            classes[place].push(number, &publication)
        });
        self.ring.push(now, publication);
    }

    /// Tells all classes of a gap before the next publication.
    pub(crate) fn mark(&mut self, gap: Gap) {
        let ring_at = self.ring.head();
        for (_, class) in &mut self.classes {
            class.mark(ring_at, gap);
        }
    }

    /// Forgets what comes before a publication.
    pub(crate) fn forget_before(&mut self, ring_number: u64) {
        while let Some((number, _)) = self.ring.pop_before(ring_number) {
            for (_, class) in &mut self.classes {
                class.evict(number);
            }
        }
        self.ring.shrink();
        for (_, class) in &mut self.classes {
            class.shrink();
        }
    }

    /// Adds a class and returns its place.
    pub(crate) fn add_class(&mut self, filter: Option<Arc<dyn Filter>>) -> usize {
        let place = self.classes.insert(Class::new(filter));
        self.guards.add(place, self.classes[place].guard());
        place
    }

    /// Removes a class.
    pub(crate) fn remove_class(&mut self, place: usize) {
        self.guards.remove(place, self.classes[place].guard());
        self.classes.remove(place);
    }

    pub(crate) fn find_class(&self, filter: Option<&Arc<dyn Filter>>) -> Option<usize> {
        let mut classes = self.classes.iter();
        classes
            .find(|(_, class)| class.is_for(filter))
            .map(|(place, _)| place)
    }
}

fn compare(newest: &StreamPosition, next: &StreamPosition) -> Continuity {
    if newest.epoch != next.epoch {
        return Continuity::Broken(Gap {
            missed: None,
            cause: GapCause::EpochChanged,
        });
    }
    match next.offset.checked_sub(newest.offset) {
        None | Some(0) => Continuity::Duplicate,
        Some(1) => Continuity::Next,
        Some(distance) => Continuity::Broken(Gap {
            missed: Some(distance - 1),
            cause: GapCause::OffsetHole,
        }),
    }
}
