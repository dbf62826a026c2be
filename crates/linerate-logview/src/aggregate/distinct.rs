//! Estimates the number of distinct values without storing them: HyperLogLog (Flajolet et al., AofA
//! 2007) with the estimator of Ertl (arXiv 1702.01284, algorithm 6), which needs no tables.

/// The number of hash bits that select a register.
const INDEX_BITS: u32 = 14;
const REGISTERS: usize = 1 << INDEX_BITS;
/// The number of hash bits that remain for a rank.
const RANK_BITS: usize = 64 - INDEX_BITS as usize;

/// The standard error of an estimate: 1.04 / √16,384.
#[cfg(test)]
pub(crate) const STANDARD_ERROR: f64 = 0.008_125;

/// Estimates the number of distinct values in 16 KiB.
#[derive(Clone, Debug)]
pub(super) struct Distinct(Box<[u8; REGISTERS]>);

impl Distinct {
    pub(super) fn new() -> Self {
        Self(Box::new([0; REGISTERS]))
    }

    /// Adds the hash of a value. All of its bits must be as good as random.
    #[inline]
    pub(super) fn add(&mut self, hash: u64) {
        let register = (hash >> RANK_BITS) as usize;
        let rank = (hash << INDEX_BITS).leading_zeros().min(RANK_BITS as u32) as u8 + 1;
        self.0[register] = self.0[register].max(rank);
    }

    pub(super) fn estimate(&self) -> u64 {
        let mut ranks = [0u32; RANK_BITS + 2];
        for &rank in self.0.iter() {
            ranks[usize::from(rank)] += 1;
        }
        let registers = REGISTERS as f64;
        let mut sum = registers * tau(1.0 - f64::from(ranks[RANK_BITS + 1]) / registers);
        for &count in ranks[1..=RANK_BITS].iter().rev() {
            sum = 0.5 * (sum + f64::from(count));
        }
        sum += registers * sigma(f64::from(ranks[0]) / registers);
        let alpha = 0.5 / std::f64::consts::LN_2;
        (alpha * registers * registers / sum).round() as u64
    }
}

/// The correction for empty registers.
fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut sum, mut weight) = (x, 1.0);
    loop {
        x *= x;
        let before = sum;
        sum += x * weight;
        weight *= 2.0;
        if sum == before {
            return sum;
        }
    }
}

/// The correction for full registers.
fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut sum, mut weight) = (1.0 - x, 1.0);
    loop {
        x = x.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - x) * (1.0 - x) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Distinct, STANDARD_ERROR};
    use crate::aggregate::overflow::mix;

    #[test]
    fn estimates_are_within_three_standard_errors() {
        let mut distinct = Distinct::new();
        assert_eq!(distinct.estimate(), 0);
        let mut next = 1_000u64;
        for value in 1..=3_000_000u64 {
            for _ in 0..=value % 2 {
                distinct.add(mix(value));
            }
            if value == next {
                let error = distinct.estimate() as f64 / value as f64 - 1.0;
                assert!(error.abs() < 3.0 * STANDARD_ERROR, "{error} of {value}");
                next = next * 5 / 3;
            }
        }
    }

    #[test]
    fn few_values_are_counted_almost_exactly() {
        let mut distinct = Distinct::new();
        for value in 0..100 {
            distinct.add(mix(value));
        }
        assert!(distinct.estimate().abs_diff(100) <= 1);
    }

    #[test]
    fn hashes_of_all_zeros_and_ones_are_ranks_like_others() {
        let mut distinct = Distinct::new();
        distinct.add(0);
        distinct.add(u64::MAX);
        assert_eq!(distinct.estimate(), 2);
    }
}
