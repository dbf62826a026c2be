//! Sets of codes.

/// A set of numbers below `length`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CodeSet {
    words: Vec<u64>,
    length: usize,
}

impl CodeSet {
    /// Returns the set of the numbers below `length` for which `has` is true.
    pub(super) fn of(length: usize, has: impl Fn(usize) -> bool) -> Self {
        let mut set = Self::empty(length);
        (0..length)
            .filter(|&number| has(number))
            .for_each(|number| set.insert(number));
        set
    }

    pub(crate) fn empty(length: usize) -> Self {
        Self {
            words: vec![0; length.div_ceil(64)],
            length,
        }
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.words[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// Keeps only the numbers that are in both sets, which must have the same length.
    pub(crate) fn intersect(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word &= other;
        }
    }

    /// Adds the numbers of another set of the same length.
    pub(crate) fn unite(&mut self, other: &Self) {
        for (word, other) in self.words.iter_mut().zip(&other.words) {
            *word |= other;
        }
    }

    /// Replaces the set by its complement.
    pub(crate) fn invert(&mut self) {
        self.words.iter_mut().for_each(|word| *word = !*word);
        let beyond = self.words.len() * 64 - self.length;
        if let Some(last) = self.words.last_mut() {
            *last &= u64::MAX >> beyond;
        }
    }

    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Returns whether the set contains any number from `lowest` to `highest`.
    pub(crate) fn has_any(&self, lowest: u64, highest: u64) -> bool {
        let mut words = (0..).zip(&self.words).skip((lowest / 64) as usize);
        let mut words = words.by_ref().take_while(|(at, _)| *at <= highest / 64);
        words.any(|(at, word)| {
            let from = lowest.saturating_sub(at * 64);
            let beyond = (highest - at * 64).min(63);
            word & (u64::MAX << from) & (u64::MAX >> (63 - beyond)) != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::CodeSet;

    #[test]
    fn sets_report_whether_they_intersect_a_range() {
        assert!(!CodeSet::empty(0).has_any(0, u64::MAX));
        let set = CodeSet::of(100, |number| number == 70);
        assert!(set.has(70) && !set.has(69) && !set.has(u32::MAX));
        assert!(set.has_any(0, u64::MAX) && set.has_any(70, 70));
        assert!(!set.has_any(0, 69) && !set.has_any(71, 1 << 40));
    }

    #[test]
    fn sets_are_combined_and_inverted_within_their_length() {
        for length in [0, 1, 63, 64, 65, 200] {
            let even = CodeSet::of(length, |number| number % 2 == 0);
            let third = CodeSet::of(length, |number| number % 3 == 0);
            let mut both = even.clone();
            both.intersect(&third);
            assert_eq!(both, CodeSet::of(length, |number| number % 6 == 0));
            let mut any = even.clone();
            any.unite(&third);
            assert_eq!(any, CodeSet::of(length, |it| it % 2 == 0 || it % 3 == 0));
            let mut odd = even;
            odd.invert();
            assert_eq!(odd, CodeSet::of(length, |number| number % 2 == 1));
        }
    }
}
