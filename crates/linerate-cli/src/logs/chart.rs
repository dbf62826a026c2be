//! Bars and sparklines drawn with block characters.

use linerate_logview::summary::Timeline;

/// Eighths of a block, filled from the left and from the bottom.
const LEFT: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
const BOTTOM: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a bar of `width * value / max` characters. Any value except zero is visible.
pub(super) fn bar(value: u64, max: u64, width: usize) -> String {
    let eighths = share(value, max, width * 8);
    let mut bar = "█".repeat(eighths / 8);
    if let Some(rest) = (eighths % 8).checked_sub(1) {
        bar.push(LEFT[rest]);
    }
    bar
}

/// Returns one character for each value, whose height is relative to the highest value; a space for
/// zero.
pub(super) fn sparkline(values: &[u64]) -> String {
    let max = values.iter().copied().max().unwrap_or(0);
    let column = |&value| match share(value, max, 8) {
        0 => ' ',
        eighths => BOTTOM[eighths - 1],
    };
    values.iter().map(column).collect()
}

/// Returns the lines of a chart of `height` lines, from the top. Each has one character for each
/// value, whose height is relative to the highest value.
pub(super) fn columns(values: &[u64], height: usize) -> Vec<String> {
    let max = values.iter().copied().max().unwrap_or(0);
    let eighths: Vec<_> = values
        .iter()
        .map(|&value| share(value, max, height * 8))
        .collect();
    let line = |below: usize| {
        let char = |&eighths: &usize| match eighths.saturating_sub(below * 8).min(8) {
            0 => ' ',
            filled => BOTTOM[filled - 1],
        };
        eighths.iter().map(char).collect()
    };
    (0..height).rev().map(line).collect()
}

/// Returns the requests in each bucket of a timeline whose class of status is wanted.
pub(super) fn requests(timeline: &Timeline, is_wanted: impl Fn(&str) -> bool) -> Vec<u64> {
    let buckets = timeline.classes.values().map(Vec::len).max().unwrap_or(0);
    let classes = timeline.classes.iter().filter(|(name, _)| is_wanted(name));
    let classes: Vec<_> = classes.map(|(_, counts)| counts).collect();
    let sum = |bucket| classes.iter().filter_map(|counts| counts.get(bucket)).sum();
    (0..buckets).map(sum).collect()
}

/// Sums neighbouring values so that at most `columns` remain. Each sum covers the same number of
/// values, except perhaps the last. Returns the sums and that number.
pub(super) fn condense(values: &[u64], columns: usize) -> (Vec<u64>, usize) {
    let each = values.len().div_ceil(columns.max(1)).max(1);
    (
        values
            .chunks(each)
            .map(|chunk| chunk.iter().sum())
            .collect(),
        each,
    )
}

/// Returns `parts * value / max`, rounded, and at least 1 unless `value` or `parts` is 0.
fn share(value: u64, max: u64, parts: usize) -> usize {
    if value == 0 || max == 0 || parts == 0 {
        return 0;
    }
    let share = (u128::from(value) * parts as u128 + u128::from(max) / 2) / u128::from(max);
    usize::try_from(share).map_or(parts, |share| share.clamp(1, parts))
}

#[cfg(test)]
mod tests {
    use super::{bar, columns, condense, sparkline};

    #[test]
    fn bars_are_in_proportion_and_never_vanish() {
        assert_eq!(bar(8, 8, 4), "████");
        assert_eq!(bar(4, 8, 4), "██");
        assert_eq!(bar(5, 8, 4), "██▌");
        assert_eq!(bar(1, u64::MAX, 4), "▏");
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
        assert_eq!(bar(8, 8, 0), "");
        assert_eq!(bar(0, 8, 4), "");
        assert_eq!(bar(0, 0, 4), "");
    }

    #[test]
    fn a_sparkline_has_the_highest_value_at_its_top() {
        assert_eq!(sparkline(&[0, 1, 4, 8, 800]), " ▁▁▁█");
        assert_eq!(sparkline(&[1, 2, 3, 4, 5, 6, 7, 8]), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn a_chart_has_the_highest_value_at_its_top() {
        assert_eq!(columns(&[0, 1, 8, 12, 16], 2), ["   ▄█", " ▁███"]);
        assert_eq!(columns(&[0, 0], 2), ["  ", "  "]);
        assert_eq!(columns(&[], 1), [""]);
        assert_eq!(columns(&[1], 0), [""; 0]);
    }

    #[test]
    fn many_values_are_summed_up_to_few() {
        assert_eq!(condense(&[1, 2, 3, 4, 5], 2), (vec![6, 9], 3));
        assert_eq!(condense(&[1, 2, 3], 3), (vec![1, 2, 3], 1));
        assert_eq!(condense(&[], 3), (vec![], 1));
    }
}
