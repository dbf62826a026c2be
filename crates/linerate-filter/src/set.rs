//! The filters of a channel, all of which one scan of a payload serves.

use std::sync::Arc;

use crate::{
    Evaluated, Filter,
    evaluated::{AtOnce, Search, Slice},
    guard::Index,
    scan::Found,
    wanted::Wanted,
};

/// Filters that see the same payloads.
///
/// A payload is scanned once, whatever the number of filters. Filters that are a comparison of a value with constants,
/// or a conjunction with one, are found by that value; only the others are evaluated one by one.
///
/// ```
/// use std::sync::Arc;
///
/// use linerate_filter::{Filter, FilterSet, Limits};
///
/// let mut set = FilterSet::default();
/// for (id, text) in ["user == 7", "user == 8", "bytes > 1000"].into_iter().enumerate() {
///     set.insert(id, Arc::new(Filter::new(text, &Limits::default())?));
/// }
/// let mut matched = Vec::new();
/// set.visit(br#"{"user":8,"bytes":2000}"#, |id| matched.push(id));
/// assert_eq!(matched, [1, 2]);
/// # Ok::<(), linerate_filter::ParseError>(())
/// ```
#[derive(Debug, Default)]
pub struct FilterSet {
    /// By their ids.
    entries: Vec<Option<Entry>>,
    wanted: Wanted,
    /// The indices with the places of the values that they are of.
    indices: Vec<(usize, Index)>,
    /// The filters that no index has.
    others: Vec<usize>,
    /// The sum of the filters' own.
    searches: usize,
    /// The number of the filter that was added last.
    newest: u64,
}

#[derive(Debug)]
struct Entry {
    filter: Arc<Filter>,
    /// No other filter that the set has ever had has the same.
    number: u64,
    /// The places of the filter's slots among what is wanted.
    slots: Vec<usize>,
    /// The place of the value by which an index finds it.
    guarded: Option<usize>,
}

impl FilterSet {
    /// Adds a filter. Memory grows with the largest id, so ids should be small. One that is in use is replaced.
    pub fn insert(&mut self, id: usize, filter: Arc<Filter>) {
        self.remove(id);
        let paths = filter.program().paths();
        let slots = paths.iter().map(|path| self.wanted.add(path)).collect();
        let guarded = filter.guard().map(|guard| self.wanted.add(&guard.path));
        match (filter.guard(), guarded) {
            (Some(guard), Some(place)) => {
                let index = self.index(place);
                guard
                    .constants
                    .iter()
                    .for_each(|constant| index.add(constant, id));
            }
            _ => self.others.push(id),
        }
        if self.entries.len() <= id {
            self.entries.resize_with(id + 1, || None);
        }
        self.searches += filter.searches();
        self.newest += 1;
        self.entries[id] = Some(Entry {
            filter,
            number: self.newest,
            slots,
            guarded,
        });
    }

    /// Removes a filter, if there is one of this id.
    pub fn remove(&mut self, id: usize) {
        let Some(entry) = self.entries.get_mut(id).and_then(Option::take) else {
            return;
        };
        self.searches -= entry.filter.searches();
        match (entry.filter.guard(), entry.guarded) {
            (Some(guard), Some(place)) => {
                let index = self.index(place);
                guard
                    .constants
                    .iter()
                    .for_each(|constant| index.remove(constant, id));
                self.indices.retain(|(_, index)| !index.is_empty());
            }
            _ => self.others.retain(|other| *other != id),
        }
        let places = entry.slots.into_iter().chain(entry.guarded);
        places.for_each(|place| self.wanted.remove(place));
        while let Some(None) = self.entries.last() {
            self.entries.pop();
        }
    }

    /// Returns whether there are no filters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how often all filters together go through values of a payload ([`Filter::searches`]).
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Calls `matched` with the id of each filter that matches `payload`.
    pub fn visit(&self, payload: &[u8], matched: impl FnMut(usize)) {
        self.visit_evaluated(payload, &Evaluated::default(), matched);
    }

    /// Calls `matched` like [`visit`](Self::visit), but evaluates only the filters of which nothing is known yet.
    pub fn visit_evaluated(
        &self,
        payload: &[u8],
        known: &Evaluated,
        mut matched: impl FnMut(usize),
    ) {
        self.for_candidates(payload, |id, entry, found| {
            let result = known.result(id, entry.number);
            let result = result.or_else(|| self.is_true(entry, found, &mut AtOnce));
            if result == Some(true) {
                matched(id);
            }
            true
        });
    }

    /// Evaluates filters of which nothing is known yet until `is_over`, which is asked before each search
    /// ([`Filter::searches`]) and each filter without any, but not before the first. Returns whether no filter is left.
    ///
    /// In between filters may be added and removed, and the payload must be the same.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use linerate_filter::{Evaluated, Filter, FilterSet, Limits};
    ///
    /// let mut set = FilterSet::default();
    /// for (id, text) in ["text.contains('a')", "text.contains('b')"].into_iter().enumerate() {
    ///     set.insert(id, Arc::new(Filter::new(text, &Limits::default())?));
    /// }
    /// let (payload, mut known) = (br#"{"text":"bcd"}"#, Evaluated::default());
    /// let mut slices = 1;
    /// while !set.evaluate(payload, &mut known, || true) {
    ///     slices += 1;
    /// }
    /// let mut matched = Vec::new();
    /// set.visit_evaluated(payload, &known, |id| matched.push(id));
    /// assert_eq!((slices, matched), (2, vec![1]));
    /// # Ok::<(), linerate_filter::ParseError>(())
    /// ```
    pub fn evaluate(
        &self,
        payload: &[u8],
        known: &mut Evaluated,
        mut is_over: impl FnMut() -> bool,
    ) -> bool {
        let mut has_begun = false;
        let mut is_over = || std::mem::replace(&mut has_begun, true) && is_over();
        self.for_candidates(payload, |id, entry, found| {
            if known.result(id, entry.number).is_some() {
                return true;
            }
            if entry.filter.searches() == 0 {
                if is_over() {
                    return false;
                }
                let is_match = self.is_true(entry, found, &mut AtOnce) == Some(true);
                known.learn((id, entry.number), is_match);
                return true;
            }
            let evaluate = |slice: &mut Slice<'_, _>| self.is_true(entry, found, slice);
            known.go_on((id, entry.number), &mut is_over, evaluate)
        })
    }

    /// Scans a payload and calls `visit` with each filter that may match, until that returns false; then returns false.
    fn for_candidates<'s>(
        &'s self,
        payload: &[u8],
        mut visit: impl FnMut(usize, &'s Entry, &Found<'_>) -> bool,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut found = Found::new(&self.wanted);
        if !found.scan(&self.wanted, payload) {
            return true;
        }
        let indexed = self.indices.iter();
        let indexed =
            indexed.flat_map(|(place, index)| index.find(found.value(&self.wanted, *place)));
        let mut candidates = indexed.chain(&self.others);
        candidates.all(|id| match self.entries.get(*id) {
            Some(Some(entry)) => visit(*id, entry, &found),
            _ => true,
        })
    }

    /// Evaluates a filter, unless that is to be gone on with later; one that an index has found may say nothing else.
    fn is_true(
        &self,
        entry: &Entry,
        found: &Found<'_>,
        searches: &mut impl Search,
    ) -> Option<bool> {
        let Entry { filter, slots, .. } = entry;
        if filter.guard().is_some_and(|guard| guard.is_sufficient) {
            return Some(true);
        }
        filter.is_true(found, &self.wanted, slots, searches)
    }

    fn index(&mut self, place: usize) -> &mut Index {
        let at = self.indices.iter().position(|(other, _)| *other == place);
        let at = at.unwrap_or_else(|| {
            self.indices.push((place, Index::default()));
            self.indices.len() - 1
        });
        &mut self.indices[at].1
    }
}
