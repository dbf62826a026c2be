//! The filters of a channel, all of which one scan of a payload serves.

use std::sync::Arc;

use crate::{Filter, guard::Index, scan::Found, wanted::Wanted};

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
}

#[derive(Debug)]
struct Entry {
    filter: Arc<Filter>,
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
        self.entries[id] = Some(Entry {
            filter,
            slots,
            guarded,
        });
    }

    /// Removes a filter, if there is one of this id.
    pub fn remove(&mut self, id: usize) {
        let Some(entry) = self.entries.get_mut(id).and_then(Option::take) else {
            return;
        };
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

    /// Calls `matched` with the id of each filter that matches `payload`.
    pub fn visit(&self, payload: &[u8], mut matched: impl FnMut(usize)) {
        if self.is_empty() {
            return;
        }
        let mut found = Found::new(&self.wanted);
        if !found.scan(&self.wanted, payload) {
            return;
        }
        let indexed = self.indices.iter();
        let indexed =
            indexed.flat_map(|(place, index)| index.find(found.value(&self.wanted, *place)));
        for id in indexed.chain(&self.others) {
            if self.is_true(*id, &found) {
                matched(*id);
            }
        }
    }

    /// Evaluates a filter; one that an index has found may say nothing else.
    fn is_true(&self, id: usize, found: &Found<'_>) -> bool {
        let Some(Some(Entry { filter, slots, .. })) = self.entries.get(id) else {
            return false;
        };
        let is_found = filter.guard().is_some_and(|guard| guard.is_sufficient);
        is_found || filter.is_true(found, &self.wanted, slots)
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
