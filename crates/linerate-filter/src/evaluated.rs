//! Evaluation in slices: stops when a slice is over, and keeps the results for the next one.

use crate::value::Value;

/// The results so far of the filters of a [`FilterSet`](crate::FilterSet) on one payload.
#[derive(Debug, Default)]
pub struct Evaluated {
    /// The number and the progress of each filter, by the filters' ids.
    filters: Vec<Option<(u64, Progress)>>,
}

#[derive(Debug)]
enum Progress {
    /// The filter has been evaluated; true if it matches.
    Match(bool),
    /// The results of the searches so far, in order.
    Searches(Vec<Value<'static>>),
}

/// Runs searches: the operations that go through a value of the payload.
pub(crate) trait Search {
    /// Returns the result of a search, or `None` if it is to run later.
    fn search(&mut self, search: impl FnOnce() -> Value<'static>) -> Option<Value<'static>>;
}

/// Runs every search immediately.
#[derive(Debug)]
pub(crate) struct Immediate;

impl Search for Immediate {
    #[inline]
    fn search(&mut self, search: impl FnOnce() -> Value<'static>) -> Option<Value<'static>> {
        Some(search())
    }
}

/// Runs the next searches of a filter until a slice is over.
#[derive(Debug)]
pub(crate) struct Slice<'s, F> {
    is_over: F,
    /// The results of the searches of this slice and earlier ones.
    known: &'s mut Vec<Value<'static>>,
    /// The number of searches that this evaluation has asked for.
    asked: usize,
}

impl<F: FnMut() -> bool> Search for Slice<'_, F> {
    fn search(&mut self, search: impl FnOnce() -> Value<'static>) -> Option<Value<'static>> {
        if self.asked == self.known.len() {
            if (self.is_over)() {
                return None;
            }
            self.known.push(search());
        }
        self.asked += 1;
        Some(self.known[self.asked - 1])
    }
}

impl Evaluated {
    /// Returns whether the filter with this id and number matches, if that is known.
    #[inline]
    pub(crate) fn result(&self, id: usize, number: u64) -> Option<bool> {
        match self.filters.get(id)? {
            Some((known, Progress::Match(is_match))) if *known == number => Some(*is_match),
            _ => None,
        }
    }

    /// Stores whether a filter matches.
    pub(crate) fn record(&mut self, (id, number): (usize, u64), is_match: bool) {
        *self.filter(id) = Some((number, Progress::Match(is_match)));
    }

    /// Continues a filter by calling `evaluate`, which returns whether the filter matches, or
    /// `None` if the slice is over. Returns whether the filter is done.
    pub(crate) fn resume<F: FnMut() -> bool>(
        &mut self,
        (id, number): (usize, u64),
        is_over: F,
        evaluate: impl FnOnce(&mut Slice<'_, F>) -> Option<bool>,
    ) -> bool {
        let filter = self.filter(id);
        let mut known = match filter.take() {
            Some((known, Progress::Searches(searches))) if known == number => searches,
            _ => Vec::new(),
        };
        let is_match = evaluate(&mut Slice {
            is_over,
            known: &mut known,
            asked: 0,
        });
        let progress = is_match.map_or(Progress::Searches(known), Progress::Match);
        *filter = Some((number, progress));
        is_match.is_some()
    }

    fn filter(&mut self, id: usize) -> &mut Option<(u64, Progress)> {
        if self.filters.len() <= id {
            self.filters.resize_with(id + 1, || None);
        }
        &mut self.filters[id]
    }
}
