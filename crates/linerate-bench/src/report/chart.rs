//! Bars of a cell's headline figure, and its percentiles of latency.
//!
//! A chart is a list: a name, a track, a figure. Only the track is drawn, and it is hidden from
//! screen readers. Its parts are placed in per cent, so that a chart uses the available width.

use maud::{Markup, html};

use crate::report::number::duration_us;
use crate::report::words::{Names, figure};
use crate::summary::{CellSummary, REFERENCE, Spread, Standing};

/// A reference bar is cut off if it is longer than the longest other bar times this number.
/// Otherwise it would leave no room to tell the others apart.
const REFERENCE_REACH: f64 = 1.6;

/// Draws the headline figure of each contender that has one, with its lowest and highest round.
pub(super) fn bars(cell: &CellSummary, names: &Names<'_>) -> Markup {
    let scale = Scale::of(cell);
    let line = cell
        .standing(REFERENCE)
        .and_then(|it| it.headline)
        .filter(|it| it.median <= scale.max)
        .map(|it| scale.percent(it.median));
    html! {
        ol.bars style=[line.map(|at| format!("--ref:{at:.1}%"))] data-ref[line.is_some()] {
            @for standing in cell.counted() {
                @if let Some(spread) = standing.headline {
                    (bar(cell, standing, spread, scale, names))
                }
            }
        }
    }
}

fn bar(
    cell: &CellSummary,
    standing: &Standing,
    spread: Spread,
    scale: Scale,
    names: &Names<'_>,
) -> Markup {
    let from = scale.percent(spread.min);
    let to = scale.percent(spread.max);
    let is_cut = spread.median > scale.max;
    let class = names.class(&standing.contender);
    html! {
        li class=(class) {
            span.n { (names.title(&standing.contender)) }
            span.t aria-hidden="true" {
                i.cut[is_cut] style=(format!("width:{:.1}%", scale.percent(spread.median))) {}
                @if to - from >= 0.1 {
                    b style=(format!("left:{from:.1}%;width:{:.1}%", to - from)) {}
                }
            }
            span.v { (figure(cell.metric, spread.median)) }
        }
    }
}

/// The figure that the whole width of a track represents.
#[derive(Clone, Copy, Debug)]
struct Scale {
    max: f64,
}

impl Scale {
    fn of(cell: &CellSummary) -> Self {
        let longest = |is_reference: bool| {
            cell.counted()
                .filter(|it| (it.contender == REFERENCE) == is_reference)
                .filter_map(|it| Some(it.headline?.max))
                .fold(0.0, f64::max)
        };
        let (reference, others) = (longest(true), longest(false));
        let fits = others == 0.0 || reference <= others * REFERENCE_REACH;
        Self {
            max: if fits { others.max(reference) } else { others },
        }
    }

    /// Returns the position of a figure on the track, 0 to 100.
    fn percent(self, figure: f64) -> f64 {
        if self.max <= 0.0 {
            return 0.0;
        }
        (figure / self.max * 100.0).clamp(0.0, 100.0)
    }
}

/// Draws percentiles of latency on a logarithmic axis. Returns `None` if no contender has them.
pub(super) fn latency(cell: &CellSummary, names: &Names<'_>) -> Option<Markup> {
    let rows: Vec<(&Standing, [f64; 4])> = cell
        .standings
        .iter()
        .filter_map(|standing| Some((standing, percentiles(standing)?)))
        .collect();
    let all = rows.iter().flat_map(|(_, percentiles)| *percentiles);
    let axis = LogAxis::of(Spread::of(all.filter(|us| *us > 0.0))?);
    Some(html! {
        ol.dots {
            li.axis aria-hidden="true" {
                span.n {}
                span.t {
                    @for tick in axis.ticks() {
                        small style=(format!("left:{:.1}%", axis.percent(tick))) {
                            (tick_label(tick))
                        }
                    }
                }
                span.v {}
            }
            @for (standing, percentiles) in &rows {
                li class=(names.class(&standing.contender)) {
                    span.n { (names.title(&standing.contender)) }
                    (dots(axis, *percentiles))
                    span.v { (duration_us(percentiles[2])) }
                }
            }
        }
    })
}

/// Draws p50, p90, p99 and p99.9 of a contender.
fn dots(axis: LogAxis, percentiles: [f64; 4]) -> Markup {
    let at = percentiles.map(|us| axis.percent(us));
    html! {
        span.t aria-hidden="true" {
            @for tick in axis.ticks() {
                s style=(format!("left:{:.1}%", axis.percent(tick))) {}
            }
            b style=(format!("left:{:.1}%;width:{:.1}%", at[0], at[3] - at[0])) {}
            @for (place, class) in at.iter().zip(["p50", "p90", "p99", "p999"]) {
                i class=(class) style=(format!("left:{place:.1}%")) {}
            }
        }
    }
}

/// Returns the medians of p50, p90, p99 and p99.9, in microseconds.
fn percentiles(standing: &Standing) -> Option<[f64; 4]> {
    let medians = standing.medians.as_ref()?;
    Some([
        medians.p50_us?.median,
        medians.p90_us?.median,
        medians.p99_us?.median,
        medians.p999_us?.median,
    ])
}

/// A logarithmic axis from one power of ten to another.
#[derive(Clone, Copy, Debug)]
struct LogAxis {
    /// Exponent of the power of ten, in microseconds, at which the axis begins.
    from: i32,
    /// Exponent of the power of ten at which the axis ends. It is greater than `from`.
    to: i32,
}

impl LogAxis {
    /// Creates the axis that covers `figures`, which must be above 0.
    fn of(figures: Spread) -> Self {
        let from = figures.min.log10().floor() as i32;
        let to = figures.max.log10().ceil() as i32;
        Self {
            from,
            to: to.max(from + 1),
        }
    }

    fn ticks(self) -> impl Iterator<Item = f64> {
        (self.from..=self.to).map(|power| 10_f64.powi(power))
    }

    /// Returns the position of a figure on the axis, 0 to 100.
    fn percent(self, figure: f64) -> f64 {
        let decades = f64::from(self.to - self.from);
        ((figure.log10() - f64::from(self.from)) / decades * 100.0).clamp(0.0, 100.0)
    }
}

/// Formats a power of ten of microseconds: `10 µs`.
fn tick_label(us: f64) -> String {
    let (figure, unit) = match us {
        it if it >= 1e6 => (it / 1e6, "s"),
        it if it >= 1e3 => (it / 1e3, "ms"),
        it if it >= 1.0 => (it, "µs"),
        it => (it * 1e3, "ns"),
    };
    format!("{figure:.0}\u{202f}{unit}")
}

#[cfg(test)]
mod tests {
    use super::{LogAxis, Scale, tick_label};
    use crate::summary::Spread;
    use crate::summary::Summary;
    use crate::summary::tests::sample::{Sample, echo};

    fn scale(raw: f64) -> Scale {
        let sample = Sample::new()
            .cell(echo("s", "c"))
            .measured("s/c", "linerate", &[90.0, 100.0])
            .measured("s/c", "raw-tcp", &[raw]);
        Scale::of(Summary::of(&sample.0).cells().next().unwrap())
    }

    #[test]
    fn a_reference_that_is_far_away_does_not_set_the_scale() {
        assert_eq!(scale(150.0).max, 150.0);
        assert_eq!(scale(200.0).max, 100.0);
        assert_eq!(scale(200.0).percent(200.0), 100.0);
    }

    #[test]
    fn a_logarithmic_axis_begins_and_ends_with_a_power_of_ten() {
        let axis = LogAxis::of(Spread::of([12.0, 900.0]).unwrap());
        assert_eq!(axis.ticks().collect::<Vec<_>>(), [10.0, 100.0, 1_000.0]);
        assert_eq!(axis.percent(100.0), 50.0);
        assert_eq!(axis.percent(0.0), 0.0);
        assert_eq!(LogAxis::of(Spread::of([10.0]).unwrap()).ticks().count(), 2);
    }

    #[test]
    fn ticks_have_units() {
        let labels = [0.1, 1.0, 1_000.0, 1e7].map(tick_label);
        assert_eq!(
            labels,
            ["100\u{202f}ns", "1\u{202f}µs", "1\u{202f}ms", "10\u{202f}s"]
        );
    }
}
