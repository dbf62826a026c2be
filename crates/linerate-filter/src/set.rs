//! The filters of a channel, evaluated together with one scan of each payload.

use std::sync::Arc;

use crate::{
    Evaluated, Filter,
    evaluated::{Immediate, Search, Slice},
    guard::Index,
    path_tree::PathTree,
    scan::FoundValues,
};

/// A set of filters that are matched with the same payloads.
///
/// A payload is scanned once, regardless of the number of filters. A filter that compares a value
/// with constants for equality, or a conjunction that contains such a comparison, is found in an
/// index by that value. Only the other filters are evaluated one by one.
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
    /// The filters by their ids.
    entries: Vec<Option<Entry>>,
    wanted: PathTree,
    /// The indices, each with the position in `wanted` of the value that it indexes.
    indices: Vec<(usize, Index)>,
    /// The ids of the filters that are in no index.
    others: Vec<usize>,
    /// The sum of the searches of all filters.
    searches: usize,
    /// The number of the filter that was added most recently.
    newest: u64,
}

#[derive(Debug)]
struct Entry {
    filter: Arc<Filter>,
    /// A number that no other filter of this set has or ever had.
    number: u64,
    /// The position in `wanted` of each slot of the filter.
    slots: Vec<usize>,
    /// The position in `wanted` of the value by which an index finds the filter.
    guarded: Option<usize>,
}

impl FilterSet {
    /// Adds a filter, replacing any filter with the same id. Ids should be small, because memory
    /// grows with the largest one.
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

    /// Removes the filter with this id, if there is one.
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

    /// Returns whether the set has no filters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns how often all filters together search through values of a payload
    /// ([`Filter::searches`]).
    pub fn searches(&self) -> usize {
        self.searches
    }

    /// Calls `matched` with the id of each filter that matches `payload`.
    pub fn visit(&self, payload: &[u8], matched: impl FnMut(usize)) {
        self.visit_evaluated(payload, &Evaluated::default(), matched);
    }

    /// Calls `matched` like [`visit`](Self::visit), but evaluates only the filters whose results
    /// are not in `known`.
    pub fn visit_evaluated(
        &self,
        payload: &[u8],
        known: &Evaluated,
        mut matched: impl FnMut(usize),
    ) {
        self.for_candidates(payload, |id, entry, found| {
            let result = known.result(id, entry.number);
            let result = result.or_else(|| self.is_true(entry, found, &mut Immediate));
            if result == Some(true) {
                matched(id);
            }
            true
        });
    }

    /// Evaluates filters whose results are not in `known`, until `is_over` returns true. Returns
    /// whether all filters are evaluated.
    ///
    /// `is_over` is called before each search ([`Filter::searches`]) and before each filter that
    /// has no searches, except before the first one of a call, so that every call makes progress.
    ///
    /// Filters may be added and removed between calls. The payload must stay the same.
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
                let is_match = self.is_true(entry, found, &mut Immediate) == Some(true);
                known.record((id, entry.number), is_match);
                return true;
            }
            let evaluate = |slice: &mut Slice<'_, _>| self.is_true(entry, found, slice);
            known.resume((id, entry.number), &mut is_over, evaluate)
        })
    }

    /// Scans a payload and calls `visit` with each filter that may match. Stops and returns false
    /// as soon as `visit` returns false.
    fn for_candidates<'s>(
        &'s self,
        payload: &[u8],
        mut visit: impl FnMut(usize, &'s Entry, &FoundValues<'_>) -> bool,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut found = FoundValues::new(&self.wanted);
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

    /// Evaluates a filter, or returns `None` if the evaluation is to continue later. If an index
    /// has found the filter and the filter has no other condition, it is true.
    fn is_true(
        &self,
        entry: &Entry,
        found: &FoundValues<'_>,
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
