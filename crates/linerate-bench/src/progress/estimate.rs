//! Estimates how long a run will still take.
//!
//! Cells differ: an upload takes longer than a ping. So do contenders, in cells that end with the
//! work and not with the time. The estimate of a turn is therefore the mean of the turns in its
//! cell so far, times the mean ratio of its contender's turns to those of the others.

use std::time::Duration;

/// The turns that are still ahead, and how long the past ones took.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    /// Estimate in seconds of a turn in a cell that has had none yet.
    nominal: f64,
    /// Number of turns ahead, by cell and contender.
    ahead: Vec<Vec<u32>>,
    /// Mean duration in seconds of the turns in each cell.
    cells: Vec<Mean>,
    /// Mean duration of each contender's turns, as a multiple of its cell's mean.
    contenders: Vec<Mean>,
}

/// A running mean.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    sum: f64,
    count: u32,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    fn value(self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / f64::from(self.count))
    }
}

impl Estimate {
    pub(super) fn new(turns: &[Vec<u32>], nominal: Duration) -> Self {
        let contenders = turns.first().map_or(0, Vec::len);
        Self {
            nominal: nominal.as_secs_f64(),
            ahead: turns.to_vec(),
            cells: vec![Mean::default(); turns.len()],
            contenders: vec![Mean::default(); contenders],
        }
    }

    /// Records how long a turn took.
    pub(super) fn took(&mut self, cell: usize, contender: usize, took: Duration) {
        self.skip(cell, contender);
        let seconds = took.as_secs_f64();
        self.cells[cell].add(seconds);
        let usual = self.cells[cell].value().unwrap_or(seconds);
        // A contender that is so far the only one in its cell cannot be compared.
        if self.cells[cell].count > 1 && usual > 0.0 {
            self.contenders[contender].add(seconds / usual);
        }
    }

    /// Records that a turn is skipped.
    pub(super) fn skip(&mut self, cell: usize, contender: usize) {
        let ahead = &mut self.ahead[cell][contender];
        *ahead = ahead.saturating_sub(1);
    }

    pub(super) fn turns_left(&self) -> u64 {
        self.ahead.iter().flatten().copied().map(u64::from).sum()
    }

    pub(super) fn left(&self) -> Duration {
        let cells = self.ahead.iter().zip(&self.cells);
        let seconds = cells.map(|(ahead, mean)| {
            let usual = mean.value().unwrap_or(self.nominal);
            let turns = ahead.iter().zip(&self.contenders);
            let turns =
                turns.map(|(&turns, factor)| f64::from(turns) * factor.value().unwrap_or(1.0));
            usual * turns.sum::<f64>()
        });
        Duration::from_secs_f64(seconds.sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn at_first_every_turn_takes_what_was_planned() {
        let estimate = Estimate::new(&[vec![3, 3], vec![3, 0]], 2 * SECOND);
        assert_eq!(estimate.left(), 18 * SECOND);
        assert_eq!(estimate.turns_left(), 9);
    }

    #[test]
    fn a_slow_contender_is_expected_to_stay_slow_in_other_cells() {
        // The last turn of this contender is ahead, along with all turns of both in the other cell.
        let mut slow_is_left = Estimate::new(&[vec![2, 2], vec![0, 4]], SECOND);
        let mut fast_is_left = Estimate::new(&[vec![2, 2], vec![4, 0]], SECOND);
        for estimate in [&mut slow_is_left, &mut fast_is_left] {
            for _ in 0..2 {
                estimate.took(0, 0, SECOND);
                estimate.took(0, 1, 9 * SECOND);
            }
        }
        assert!(slow_is_left.left() > 2 * fast_is_left.left());
    }

    #[test]
    fn turns_that_are_left_out_take_no_time() {
        let mut estimate = Estimate::new(&[vec![2]], SECOND);
        estimate.skip(0, 0);
        assert_eq!(estimate.left(), SECOND);
        estimate.skip(0, 0);
        estimate.skip(0, 0);
        assert_eq!(estimate.left(), Duration::ZERO);
    }
}
