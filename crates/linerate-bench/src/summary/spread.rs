//! The median and the range of a figure over the rounds.

use serde::Serialize;

/// Median, minimum and maximum of a figure. All three are finite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median. For an even number of figures, it is the mean of the two in the middle.
    pub median: f64,
    /// The minimum.
    pub min: f64,
    /// The maximum.
    pub max: f64,
}

impl Spread {
    /// Summarises figures, leaving out those that are not finite. Returns `None` if no figure is
    /// left.
    pub fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().filter(|it| it.is_finite()).collect();
        figures.sort_by(f64::total_cmp);
        Some(Self {
            median: middle(&figures)?,
            min: *figures.first()?,
            max: *figures.last()?,
        })
    }

    /// Returns half of the range as a share of the median: 0.05 is ±5 %. Returns 0 for a median of
    /// 0.
    pub fn relative(&self) -> f64 {
        if self.median == 0.0 {
            return 0.0;
        }
        (self.max - self.min) / 2.0 / self.median.abs()
    }

    /// Returns whether the two ranges do not overlap.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        self.max < other.min || other.max < self.min
    }
}

/// Returns the median of figures in ascending order.
fn middle(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(sorted[sorted.len() / 2 - 1], upper))
}

/// Returns the geometric mean of figures above 0, or `None` if there are no figures.
pub(crate) fn geometric_mean(figures: &[f64]) -> Option<f64> {
    if figures.is_empty() {
        return None;
    }
    let logarithms: f64 = figures.iter().map(|figure| figure.ln()).sum();
    Some((logarithms / figures.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::{Spread, geometric_mean};

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        let spread = Spread::of([9.0, 1.0, 4.0]).unwrap();
        assert_eq!((spread.median, spread.min, spread.max), (4.0, 1.0, 9.0));
        assert_eq!(Spread::of([1.0, 9.0, 4.0, 2.0]).unwrap().median, 3.0);
        assert_eq!(Spread::of([7.0]).unwrap().median, 7.0);
    }

    #[test]
    fn figures_that_are_none_are_left_out() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN, f64::INFINITY]), None);
        assert_eq!(Spread::of([f64::NAN, 2.0]).unwrap().max, 2.0);
    }

    #[test]
    fn the_relative_spread_is_half_of_the_range() {
        assert_eq!(Spread::of([90.0, 100.0, 110.0]).unwrap().relative(), 0.1);
        assert_eq!(Spread::of([0.0, 0.0]).unwrap().relative(), 0.0);
    }

    #[test]
    fn ranges_that_touch_are_not_apart() {
        let low = Spread::of([1.0, 2.0]).unwrap();
        assert!(!low.is_apart_from(&Spread::of([2.0, 3.0]).unwrap()));
        assert!(low.is_apart_from(&Spread::of([2.1, 3.0]).unwrap()));
        assert!(Spread::of([2.1, 3.0]).unwrap().is_apart_from(&low));
    }

    #[test]
    fn half_and_double_are_one_in_the_geometric_mean() {
        assert!((geometric_mean(&[0.5, 2.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[]), None);
    }
}
