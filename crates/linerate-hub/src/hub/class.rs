//! Classes: the publications of a channel that subscribers with the same scope and filter see.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    Filter, Gap, Publication, Scope, SubscriptionOptions, fossil,
    hub::{
        marks::{Mark, Marks},
        ring::{Ring, weight},
        room,
    },
};

/// The publications that a scope admits and a filter matches.
///
/// They have their own numbers, which start at 0 and are consecutive, so that the number of
/// publications that a subscriber missed is the difference of two numbers.
#[derive(Debug)]
pub(crate) struct Class {
    scope: Option<Arc<dyn Scope>>,
    /// If there is neither a scope nor a filter, all publications belong to the class, and their
    /// numbers are those of the ring.
    filter: Option<Arc<dyn Filter>>,
    /// The numbers in the ring of the publications that match.
    matched: VecDeque<u64>,
    base: u64,
    head: u64,
    /// The size in bytes of all publications that ever belonged to the class.
    bytes: u64,
    pub(crate) marks: Marks,
    /// What groups with deltas need, if there are any.
    predecessor: Option<Box<Predecessor>>,
    /// The groups that see this class.
    pub(crate) groups: Vec<u32>,
    /// True if something has changed since the last flush.
    pub(crate) is_touched: bool,
}

/// The last publication of a class that is no longer in the ring.
#[derive(Debug, Default)]
struct Predecessor {
    /// The number of groups with deltas.
    groups: usize,
    /// `None` if it was lost before there were such groups, or is too long for a delta.
    publication: Option<Publication>,
}

impl Class {
    /// Creates the class of all publications.
    pub(crate) fn all() -> Self {
        Self::new(None, None)
    }

    /// Creates the class of the publications that subscriptions with these options see.
    pub(crate) fn of(options: &SubscriptionOptions) -> Self {
        Self::new(options.scope.clone(), options.filter.clone())
    }

    fn new(scope: Option<Arc<dyn Scope>>, filter: Option<Arc<dyn Filter>>) -> Self {
        Self {
            scope,
            filter,
            matched: VecDeque::new(),
            base: 0,
            head: 0,
            bytes: 0,
            marks: Marks::new(),
            predecessor: None,
            groups: Vec::new(),
            is_touched: false,
        }
    }

    /// Adds the newest publication of the ring, which the class sees.
    pub(crate) fn push(&mut self, number: u64, publication: &Publication) {
        if !self.is_all() {
            self.matched.push_back(number);
        }
        self.head += 1;
        self.bytes += weight(publication) as u64;
    }

    /// Records that the ring has lost its oldest publication; returns the publication's number in
    /// the class if it belonged to it.
    pub(crate) fn evict(&mut self, number: u64, publication: &Publication) -> Option<u64> {
        if !self.is_all() {
            self.matched.pop_front_if(|first| *first == number)?;
        }
        if let Some(predecessor) = &mut self.predecessor {
            let is_useful = publication.payload().len() <= fossil::BYTES_MAX;
            predecessor.publication = is_useful.then(|| publication.clone());
        }
        self.base += 1;
        Some(self.base - 1)
    }

    /// Marks a gap before the next publication.
    pub(crate) fn mark(&mut self, ring_at: u64, gap: Gap) {
        let at = self.head;
        self.marks.push(Mark { at, ring_at, gap });
    }

    /// Records that a group with deltas was added.
    pub(crate) fn add_deltas(&mut self) {
        self.predecessor.get_or_insert_default().groups += 1;
    }

    /// Records that a group with deltas was removed.
    pub(crate) fn remove_deltas(&mut self) {
        if let Some(predecessor) = &mut self.predecessor {
            predecessor.groups -= 1;
        }
        self.predecessor
            .take_if(|predecessor| predecessor.groups == 0);
    }

    /// Releases unneeded memory.
    pub(crate) fn shrink(&mut self) {
        let room = room::reduced(self.matched.capacity(), self.matched.len());
        if let Some(room) = room {
            self.matched.shrink_to(room);
        }
    }

    /// Returns whether this class is the one for subscriptions with these options.
    pub(crate) fn is_for(&self, options: &SubscriptionOptions) -> bool {
        let (scope, filter) = (options.scope.as_ref(), options.filter.as_ref());
        self.scope.as_ref().map(|own| own.name()) == scope.map(|scope| scope.name())
            && self.filter.as_ref().map(|own| own.expression())
                == filter.map(|filter| filter.expression())
    }

    /// Returns whether the class sees a publication, which need not be in the ring.
    pub(crate) fn sees(&self, publication: &Publication) -> bool {
        let filter = self.filter.as_ref();
        self.is_admitted(publication) && filter.is_none_or(|filter| filter.matches(publication))
    }

    /// Returns whether all publications belong to the class.
    pub(crate) fn is_all(&self) -> bool {
        self.scope.is_none() && self.filter.is_none()
    }

    /// Returns whether the class sees a publication, provided that its payload matches.
    pub(crate) fn admits(&self, publication: &Publication) -> bool {
        let filter = self.filter.as_ref();
        self.is_admitted(publication) && filter.is_none_or(|filter| filter.admits(publication))
    }

    fn is_admitted(&self, publication: &Publication) -> bool {
        let scope = self.scope.as_ref();
        scope.is_none_or(|scope| scope.admits(publication.source()))
    }

    pub(crate) fn scope(&self) -> Option<&Arc<dyn Scope>> {
        self.scope.as_ref()
    }

    pub(crate) fn filter(&self) -> Option<&Arc<dyn Filter>> {
        self.filter.as_ref()
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn head(&self) -> u64 {
        self.head
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the publication before the one with this number, if it is still there.
    pub(crate) fn before<'a>(&'a self, number: u64, ring: &'a Ring) -> Option<&'a Publication> {
        match number == self.base {
            true => self.kept(),
            false => {
                let before = number.checked_sub(1).filter(|before| *before >= self.base);
                ring.at(self.ring_number(before?, ring))
            }
        }
    }

    /// Returns the publication that is kept for deltas although the ring has lost it.
    pub(crate) fn kept(&self) -> Option<&Publication> {
        self.predecessor.as_ref()?.publication.as_ref()
    }

    /// Returns the number in the ring of a publication of the class. For the next publication of
    /// the class, it is the number of the next publication of the ring.
    pub(crate) fn ring_number(&self, number: u64, ring: &Ring) -> u64 {
        if self.is_all() {
            return number;
        }
        let place = number.saturating_sub(self.base) as usize;
        self.matched.get(place).copied().unwrap_or(ring.head())
    }

    /// Returns the number in the class of the first publication whose number in the ring is at
    /// least `ring_number`.
    pub(crate) fn number_from(&self, ring_number: u64) -> u64 {
        match self.is_all() {
            false => self.base + self.matched.partition_point(|n| *n < ring_number) as u64,
            true => ring_number.clamp(self.base, self.head),
        }
    }

    /// Returns the publications from `from` up to `to`, with their numbers.
    pub(crate) fn iter<'a>(
        &'a self,
        ring: &'a Ring,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (u64, &'a Publication)> {
        let of = |number| ring.at(self.ring_number(number, ring));
        (from.max(self.base)..to).filter_map(move |number| Some((number, of(number)?)))
    }

    /// Returns the number up to which the publications from `from` on have at most `bytes_max`
    /// bytes. The range always contains at least one publication.
    pub(crate) fn fit(&self, ring: &Ring, from: u64, to: u64, bytes_max: usize) -> u64 {
        if self.is_all() {
            return ring.fit(from, to, bytes_max);
        }
        let mut bytes = 0;
        for (number, publication) in self.iter(ring, from, to) {
            bytes += weight(publication);
            if bytes > bytes_max && number > from {
                return number;
            }
        }
        to
    }
}
