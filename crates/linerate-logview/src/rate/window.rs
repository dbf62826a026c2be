//! The sliding window of one key.

use std::collections::VecDeque;

use super::curve::Curve;
use crate::query::RateLimit;

/// Counts the requests of a key in windows. Requests must be added in the order of time; memory is
/// bounded by the length of the window in seconds.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    seconds: i64,
    allowed: u64,
    /// The requests of each second in the window.
    recent: VecDeque<(i64, u64)>,
    inside: u64,
    was_over: bool,
    excess: Excess,
}

/// How a key exceeded the limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Excess {
    pub(crate) over: u64,
    pub(crate) times: u64,
    /// When it was exceeded first and last, if it was.
    pub(crate) span: Option<(i64, i64)>,
    pub(crate) peak: u64,
    pub(crate) peak_at: i64,
}

impl Window {
    pub(crate) fn new(limit: RateLimit) -> Self {
        Self {
            seconds: limit.seconds().into(),
            allowed: limit.requests(),
            recent: VecDeque::new(),
            inside: 0,
            was_over: false,
            excess: Excess::default(),
        }
    }

    /// Counts all requests of a second, which is later than those before. Returns how many requests
    /// of the same window came before them.
    #[inline]
    pub(crate) fn count(&mut self, time: i64, requests: u64) -> u64 {
        while let Some(&(oldest, count)) = self.recent.front()
            && oldest <= time.saturating_sub(self.seconds)
        {
            self.inside -= count;
            self.recent.pop_front();
        }
        let before = self.inside;
        self.inside += requests;
        self.recent.push_back((time, requests));
        let rank = self.inside;
        let excess = &mut self.excess;
        if rank > excess.peak {
            (excess.peak, excess.peak_at) = (rank, time);
        }
        if rank > self.allowed {
            excess.over += rank - self.allowed.max(before);
            if !self.was_over || before < self.allowed {
                excess.times += 1;
            }
            let first = excess.span.map_or(time, |(first, _)| first);
            excess.span = Some((first, time));
        }
        self.was_over = rank > self.allowed;
        before
    }

    /// Counts requests at the given times, which are sorted, and the effect on a curve.
    pub(crate) fn count_all(&mut self, times: &[i64], looks_like_people: bool, curve: &mut Curve) {
        for same in times.chunk_by(|a, b| a == b) {
            let before = self.count(same[0], same.len() as u64);
            curve.count(looks_like_people, before, before + same.len() as u64);
        }
    }

    /// Forgets everything, to count another key with the same memory.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.inside = 0;
        self.was_over = false;
        self.excess = Excess::default();
    }

    pub(crate) fn excess(&self) -> Excess {
        self.excess
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.recent.capacity() * size_of::<(i64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Excess, Window};
    use crate::query::RateLimit;

    fn excess(limit: (u64, u32), counts: &[(i64, u64)]) -> Excess {
        let mut window = Window::new(RateLimit::new(limit.0, limit.1).unwrap());
        for &(time, requests) in counts {
            window.count(time, requests);
        }
        window.excess()
    }

    #[test]
    fn windows_slide_by_seconds() {
        // Two in ten seconds are allowed: the third one within ten is over, and not the one after.
        let found = excess((2, 10), &[(0, 1), (5, 1), (9, 1), (10, 1), (19, 1)]);
        assert_eq!((found.over, found.times), (2, 1));
        assert_eq!((found.span, found.peak), (Some((9, 10)), 3));
        let found = excess((2, 10), &[(0, 1), (5, 1), (10, 1)]);
        assert_eq!((found.over, found.span), (0, None));
        assert_eq!((found.peak, found.peak_at), (2, 5));
    }

    #[test]
    fn all_requests_of_one_second_are_one_time() {
        let found = excess((2, 1), &[(7, 1_000_000)]);
        assert_eq!((found.over, found.times), (999_998, 1));
        // The first requests of each second are within the limit, so each second is a new time.
        let found = excess((2, 1), &[(7, 4), (8, 5), (9, 1)]);
        assert_eq!((found.over, found.times), (5, 2));
        let found = excess((2, 2), &[(7, 4), (8, 5), (9, 1)]);
        assert_eq!((found.over, found.times), (8, 1));
    }

    #[test]
    fn extreme_times_do_not_overflow() {
        let found = excess((1, 86_400), &[(i64::MIN, 2), (0, 1), (i64::MAX, 2)]);
        assert_eq!((found.over, found.times), (2, 2));
    }
}
