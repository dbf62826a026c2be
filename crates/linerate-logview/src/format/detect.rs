//! Detects the format of a log by its first lines.

use linerate_simd::newline;

use super::known::KnownFormat;
use super::timestamp;

/// The most lines that are examined.
const LINES_MAX: usize = 256;

/// Returns the layout in which most of the lines are requests.
///
/// A last line without a line feed may be incomplete, so it counts only if it is the only line.
pub(super) fn detect(head: &[u8]) -> Option<KnownFormat> {
    let whole = newline::rfind(head).map_or(head, |end| &head[..end]);
    let lines = whole.split(|&byte| byte == b'\n').take(LINES_MAX);
    let lines: Vec<&[u8]> = lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    let layouts = KnownFormat::named().into_iter();
    let counted = layouts.map(|layout| (requests(&layout, &lines), layout));
    // `max_by_key` returns the last maximum, so reversing makes the first layout win ties.
    let (most, layout) = counted.rev().max_by_key(|(count, _)| *count)?;
    (most > 0).then(|| layout.refined(&lines))
}

/// Returns how many of the lines are requests in this layout.
fn requests(layout: &KnownFormat, lines: &[&[u8]]) -> usize {
    let (mut clock, mut scratch) = (timestamp::Reader::default(), Vec::new());
    let is_request = |line: &&&[u8]| layout.parse(&mut clock, &mut scratch, line).is_ok();
    lines.iter().filter(is_request).count()
}
