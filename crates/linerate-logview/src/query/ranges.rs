//! Sets of integers, stored as sorted ranges.

use std::cmp::Ordering;

use linerate_filter::{Number, tree::Comparison};

/// A set of 64-bit numbers, stored as ranges that neither touch nor overlap.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Returns the numbers from `lowest` to `highest`, both included, or the empty set if `highest`
    /// is lower.
    pub(crate) fn between(lowest: u64, highest: u64) -> Self {
        let range = (lowest <= highest).then_some((lowest, highest));
        Self(range.into_iter().collect())
    }

    /// Returns the values between `lowest` and `highest` that compare to `than` as required, each
    /// mapped by `to`, which must preserve their order.
    pub(super) fn of(
        comparison: Comparison,
        than: Number,
        (lowest, highest): (i128, i128),
        to: impl Fn(i128) -> u64,
    ) -> Self {
        let equal = first(lowest, highest, |it| it != Ordering::Less, than);
        let above = first(lowest, highest, |it| it == Ordering::Greater, than);
        let between = |from: i128, last: i128| match from <= last {
            true => Self::between(to(from), to(last)),
            false => Self::default(),
        };
        match comparison {
            Comparison::Equal => between(equal, above - 1),
            Comparison::Greater => between(above, highest),
            Comparison::GreaterOrEqual => between(equal, highest),
            Comparison::Less => between(lowest, equal - 1),
            Comparison::LessOrEqual => between(lowest, above - 1),
            Comparison::NotEqual => between(lowest, equal - 1).united(&between(above, highest)),
        }
    }

    #[inline]
    pub(crate) fn has(&self, number: u64) -> bool {
        match &*self.0 {
            [(lowest, highest)] => (*lowest..=*highest).contains(&number),
            ranges => {
                let after = ranges.partition_point(|(lowest, _)| *lowest <= number);
                after > 0 && number <= ranges[after - 1].1
            }
        }
    }

    /// Returns whether the set contains any number from `lowest` to `highest`.
    pub(crate) fn has_any(&self, lowest: u64, highest: u64) -> bool {
        let from = self.0.partition_point(|range| range.1 < lowest);
        self.0.get(from).is_some_and(|range| range.0 <= highest)
    }

    /// Returns the range if there is exactly one.
    pub(crate) fn only(&self) -> Option<(u64, u64)> {
        match *self.0 {
            [range] => Some(range),
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn united(&self, other: &Self) -> Self {
        Self::of_all([self.clone(), other.clone()])
    }

    /// Returns the union of all sets.
    pub(super) fn of_all(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut ranges: Vec<_> = sets.into_iter().flat_map(|set| set.0).collect();
        ranges.sort_unstable();
        let mut united: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
        for (lowest, highest) in ranges {
            match united.last_mut() {
                Some(last) if lowest <= last.1.saturating_add(1) => last.1 = last.1.max(highest),
                _ => united.push((lowest, highest)),
            }
        }
        Self(united)
    }

    /// Returns the numbers that are not in the set.
    pub(super) fn inverted(&self) -> Self {
        let mut others = Vec::with_capacity(self.0.len() + 1);
        let mut from = Some(0);
        for &(lowest, highest) in &self.0 {
            if let Some(from) = from.filter(|&from| from < lowest) {
                others.push((from, lowest - 1));
            }
            from = highest.checked_add(1);
        }
        others.extend(from.map(|from| (from, u64::MAX)));
        Self(others)
    }

    pub(crate) fn intersected(&self, other: &Self) -> Self {
        let (mut own, mut others) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut common = Vec::new();
        while let (Some(one), Some(two)) = (own.peek(), others.peek()) {
            let (lowest, highest) = (one.0.max(two.0), one.1.min(two.1));
            if lowest <= highest {
                common.push((lowest, highest));
            }
            match one.1 < two.1 {
                true => own.next(),
                false => others.next(),
            };
        }
        Self(common)
    }
}

/// Returns the first number of a range whose ordering relative to `than` satisfies `is`, or one
/// more than `highest` if there is none.
fn first(lowest: i128, highest: i128, is: impl Fn(Ordering) -> bool, than: Number) -> i128 {
    let (mut from, mut until) = (lowest, highest + 1);
    while from < until {
        let middle = from + (until - from) / 2;
        // Every number in a filter can be compared: none is NaN.
        match number(middle).partial_cmp(&than).is_some_and(&is) {
            true => until = middle,
            false => from = middle + 1,
        }
    }
    from
}

fn number(integer: i128) -> Number {
    match i64::try_from(integer) {
        Ok(signed) => Number::Int(signed),
        Err(_) => Number::Uint(u64::try_from(integer).unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use linerate_filter::{Number, tree::Comparison};
    use proptest::prelude::*;

    use super::Ranges;

    fn any_ranges() -> impl Strategy<Value = Ranges> {
        prop::collection::vec((0u64..40, 0u64..8), 0..5).prop_map(|ranges| {
            let ranges = ranges.into_iter();
            ranges.fold(Ranges::default(), |all, (from, length)| {
                all.united(&Ranges::between(from, from + length))
            })
        })
    }

    proptest! {
        #[test]
        fn ranges_agree_with_sets(one in any_ranges(), two in any_ranges(), from in 0u64..60, length in 0u64..9) {
            let (united, common) = (one.united(&two), one.intersected(&two));
            for number in 0..60 {
                prop_assert_eq!(united.has(number), one.has(number) || two.has(number));
                prop_assert_eq!(common.has(number), one.has(number) && two.has(number));
                prop_assert_eq!(one.inverted().has(number), !one.has(number));
            }
            let any = (from..=from + length).any(|number| one.has(number));
            prop_assert_eq!(one.has_any(from, from + length), any);
        }

        #[test]
        fn comparisons_agree_with_arithmetic(value in -20i64..20, than in -20i64..20, halves: bool) {
            let number = match halves {
                true => Number::Double(than as f64 / 2.0),
                false => Number::Int(than),
            };
            let order = Number::Int(value).partial_cmp(&number).unwrap();
            for (comparison, expected) in [
                (Comparison::Equal, order.is_eq()),
                (Comparison::Greater, order.is_gt()),
                (Comparison::GreaterOrEqual, order.is_ge()),
                (Comparison::Less, order.is_lt()),
                (Comparison::LessOrEqual, order.is_le()),
                (Comparison::NotEqual, order.is_ne()),
            ] {
                let ranges = Ranges::of(comparison, number, (-9, 9), |it| (it + 9) as u64);
                let is_in = (-9..=9).contains(&value) && ranges.has((value + 9) as u64);
                prop_assert_eq!(is_in, expected && (-9..=9).contains(&value));
            }
        }
    }

    #[test]
    fn the_ends_of_64_bits_are_compared_exactly() {
        let all = (0, i128::from(u64::MAX));
        let of = |comparison, than| Ranges::of(comparison, than, all, |it| it as u64);
        let top = Number::Uint(u64::MAX);
        assert_eq!(
            of(Comparison::Equal, top).only(),
            Some((u64::MAX, u64::MAX))
        );
        assert!(of(Comparison::Greater, top).is_empty());
        assert!(of(Comparison::Less, Number::Int(0)).is_empty());
        let huge = Number::Double(1e300);
        assert_eq!(of(Comparison::Less, huge).only(), Some((0, u64::MAX)));
        assert!(of(Comparison::GreaterOrEqual, huge).is_empty());
        assert_eq!(
            of(Comparison::Equal, top).inverted().only(),
            Some((0, u64::MAX - 1))
        );
        assert!(of(Comparison::Less, huge).inverted().is_empty());
        let both = of(Comparison::NotEqual, Number::Int(7));
        assert!(both.only().is_none() && both.has(u64::MAX) && !both.has(7));
    }
}
