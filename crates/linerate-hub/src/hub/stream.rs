//! The live stream of a channel.

use std::{collections::VecDeque, time::Instant};

use linerate_filter::Evaluated;
use slab::Slab;

use crate::{
    ChannelName, ChannelOptions, Gap, GapCause, Publication, StreamPosition, SubscriptionOptions,
    hub::{class::Class, matcher::Matcher, ring::Ring},
};

/// The place of the class without a scope or filter, which every channel has.
pub(crate) const ALL: usize = 0;

/// A channel with at least one subscription.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) name: ChannelName,
    /// Its number in [`Batch::channel_id`](crate::Batch::channel_id).
    pub(crate) id: u32,
    pub(crate) ring: Ring,
    /// Use only [`Stream::add_class`] and [`Stream::remove_class`] to add and remove classes.
    pub(crate) classes: Slab<Class>,
    pub(crate) matcher: Matcher,
    /// For each publication of the ring, the places of the classes with a scope or filter that it
    /// belongs to. A class that was removed may still be listed.
    matches: VecDeque<(u64, usize)>,
    /// Classes in which something has changed since the last flush.
    pub(crate) touched: Vec<usize>,
    /// The number of groups with a sequence.
    pub(crate) sequences: usize,
    /// The number of groups with a batch interval.
    pub(crate) ticking: usize,
    /// True if a class may have gaps.
    has_marks: bool,
    /// The number in the ring of the first publication after the newest gap.
    gap_at: Option<u64>,
    /// The newest position that was seen live, and the first one of its epoch.
    pub(crate) position: Option<StreamPosition>,
    pub(crate) first: Option<StreamPosition>,
    /// The phase of its ticks.
    pub(crate) phase: u64,
    pub(crate) subscriptions: usize,
    /// How many of the subscriptions have not taken everything that was released.
    pub(crate) busy: usize,
    /// True if something has changed since the last flush; `flushed` is the number that the ring
    /// had reached at that flush.
    pub(crate) is_dirty: bool,
    pub(crate) flushed: u64,
}

/// How a publication continues the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Continuity {
    Broken(Gap),
    Duplicate,
    Next,
}

impl Stream {
    pub(crate) fn new(name: ChannelName, options: ChannelOptions, phase: u64) -> Self {
        let mut classes = Slab::with_capacity(1);
        let all = classes.insert(Class::all());
        let mut matcher = Matcher::default();
        matcher.add(all, &classes[all]);
        Self {
            name,
            id: 0,
            matcher,
            ring: Ring::new(options),
            classes,
            matches: VecDeque::new(),
            touched: Vec::new(),
            sequences: 0,
            ticking: 0,
            has_marks: false,
            gap_at: None,
            position: None,
            first: None,
            phase,
            subscriptions: 0,
            busy: 0,
            is_dirty: false,
            flushed: 0,
        }
    }

    /// Compares a publication's position with the newest one, and makes it the newest unless the
    /// publication is a duplicate.
    pub(crate) fn follow(&mut self, publication: &Publication) -> Continuity {
        let Some(position) = publication.position() else {
            return Continuity::Next;
        };
        let continuity = match &self.position {
            None => Continuity::Next,
            Some(newest) => compare(newest, position),
        };
        if continuity != Continuity::Duplicate {
            let is_known = |first: &StreamPosition| first.epoch == position.epoch;
            if !self.first.as_ref().is_some_and(is_known) {
                self.first = Some(position.clone());
            }
            self.position = Some(position.clone());
        }
        match continuity {
            // A new epoch directly after a lost link or a stream reset is part of the same gap, not
            // a second one.
            Continuity::Broken(gap)
                if gap.cause == GapCause::EpochChanged && self.gap_at == Some(self.ring.head()) =>
            {
                Continuity::Next
            }
            continuity => continuity,
        }
    }

    /// Adds a publication that has been waiting since `since`. `known` holds the filter results
    /// that are already known.
    pub(crate) fn push(&mut self, since: Instant, publication: Publication, known: &Evaluated) {
        let number = self.ring.head();
        let (classes, matches, touched) = (&mut self.classes, &mut self.matches, &mut self.touched);
        let visit = |place: usize, class: &mut Class| {
            class.push(number, &publication);
            if place != ALL {
                matches.push_back((number, place));
            }
            if !std::mem::replace(&mut class.is_touched, true) {
                touched.push(place);
            }
        };
        self.matcher.visit(classes, &publication, known, visit);
        self.ring.push(since, publication);
    }

    /// Removes a publication that the ring no longer holds from its classes. Calls `lost` with each
    /// class and the publication's number there.
    pub(crate) fn evict(
        &mut self,
        ring_number: u64,
        publication: &Publication,
        mut lost: impl FnMut(&Class, u64),
    ) {
        let mut evict = |place: usize| {
            let class = self.classes.get_mut(place)?;
            let number = class.evict(ring_number, publication)?;
            if !std::mem::replace(&mut class.is_touched, true) {
                self.touched.push(place);
            }
            lost(class, number);
            Some(())
        };
        evict(ALL);
        while let Some((_, place)) = self
            .matches
            .pop_front_if(|(number, _)| *number == ring_number)
        {
            evict(place);
        }
    }

    /// Marks a gap before the next publication in all classes.
    pub(crate) fn mark(&mut self, gap: Gap) {
        let ring_at = self.ring.head();
        self.has_marks = true;
        self.gap_at = Some(ring_at);
        self.touched.clear();
        for (place, class) in &mut self.classes {
            class.mark(ring_at, gap);
            class.is_touched = true;
            self.touched.push(place);
        }
    }

    /// Removes all gaps and the publications before `ring_number`.
    pub(crate) fn forget_before(&mut self, ring_number: u64) {
        if std::mem::take(&mut self.has_marks) {
            for (_, class) in &mut self.classes {
                class.marks.forget_before(class.marks.head());
            }
        }
        while let Some((number, publication)) = self.ring.pop_before(ring_number) {
            self.classes[ALL].evict(number, &publication);
            while let Some((_, place)) = self.matches.pop_front_if(|(other, _)| *other == number) {
                if let Some(class) = self.classes.get_mut(place) {
                    class.evict(number, &publication);
                }
            }
        }
        if self.ring.shrink() {
            self.matches.shrink_to_fit();
            for (_, class) in &mut self.classes {
                class.shrink();
            }
        }
    }

    /// Returns whether there are neither publications nor gaps to remove.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.len() == 0 && !self.has_marks
    }

    /// Adds a class and returns its place.
    pub(crate) fn find_or_add_class(&mut self, options: &SubscriptionOptions) -> usize {
        let found = self.find_class(options);
        found.unwrap_or_else(|| self.add_class(options))
    }

    fn add_class(&mut self, options: &SubscriptionOptions) -> usize {
        let place = self.classes.insert(Class::of(options));
        self.matcher.add(place, &self.classes[place]);
        place
    }

    /// Removes a class.
    pub(crate) fn remove_class(&mut self, place: usize) {
        self.matcher.remove(place);
        self.classes.remove(place);
    }

    pub(crate) fn find_class(&self, options: &SubscriptionOptions) -> Option<usize> {
        let mut classes = self.classes.iter();
        classes
            .find(|(_, class)| class.is_for(options))
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use linerate_filter::Evaluated;

    use super::{ALL, Continuity, Stream};
    use crate::{ChannelName, ChannelOptions, Epoch, Gap, GapCause, Publication, StreamPosition};

    #[test]
    fn another_epoch_after_a_gap_is_not_another_gap() {
        let name = ChannelName::new("a").unwrap();
        let mut stream = Stream::new(name, ChannelOptions::default(), 0);
        let mut publish = |epoch: &str, offset, has_gap: bool| {
            if has_gap {
                stream.mark(Gap {
                    missed: None,
                    cause: GapCause::LinkLost,
                });
            }
            let epoch = Epoch::new(epoch);
            let at = StreamPosition { epoch, offset };
            let publication = Publication::build("1".into()).with_position(at).finish();
            let continuity = stream.follow(&publication);
            stream.push(Instant::now(), publication, &Evaluated::default());
            continuity
        };
        assert_eq!(publish("x", 1, false), Continuity::Next);
        assert_eq!(publish("y", 1, true), Continuity::Next);
        let is_broken = |continuity| matches!(continuity, Continuity::Broken(_));
        assert!(is_broken(publish("z", 1, false)), "no gap was reported yet");
        assert!(
            is_broken(publish("z", 3, true)),
            "an offset hole has a count"
        );
    }

    #[test]
    fn gaps_that_all_subscribers_have_passed_are_removed() {
        let name = ChannelName::new("a").unwrap();
        let mut stream = Stream::new(name, ChannelOptions::default(), 0);
        let publication = Publication::new("1".into());
        stream.push(Instant::now(), publication, &Evaluated::default());
        stream.mark(Gap {
            missed: None,
            cause: GapCause::LinkLost,
        });
        assert!(!stream.is_empty());
        assert!(stream.classes[ALL].marks.at(0).is_some());
        stream.forget_before(1);
        assert!(stream.is_empty());
        assert!(stream.classes[ALL].marks.at(0).is_none());
        assert_eq!(stream.classes[ALL].marks.head(), 1);
    }
}
