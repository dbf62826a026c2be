//! Detects the format of a log by its first lines.

use super::{Format, Layout, Parser};
use linerate_simd::newline;

/// The most lines that are examined.
const LINES_MAX: usize = 256;

/// Returns the format in which most of the lines are requests.
///
/// A last line without a line feed may be incomplete, so it counts only if it is the only line.
pub(super) fn detect(head: &[u8]) -> Option<Format> {
    let whole = newline::rfind(head).map_or(head, |end| &head[..end]);
    let lines = || {
        let lines = whole.split(|&byte| byte == b'\n');
        lines
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
            .take(LINES_MAX)
    };
    let layouts = [Layout::Combined, Layout::VhostCombined, Layout::Json];
    let requests = |layout: Layout| {
        let mut parser = Parser::new(Format { layout });
        lines().filter(|line| parser.parse(line).is_ok()).count()
    };
    let counted = layouts.map(|layout| (requests(layout.clone()), layout));
    // `max_by_key` returns the last maximum, so reversing makes `combined` win ties.
    let (most, layout) = counted.into_iter().rev().max_by_key(|(count, _)| *count)?;
    if most == 0 {
        return None;
    }
    let has_headers = lines().any(|line| line.ends_with(b"\"") || has_headers(&layout, line));
    Some(Format {
        layout: match layout {
            Layout::Combined if !has_headers => Layout::Common,
            Layout::VhostCombined if !has_headers => Layout::VhostCommon,
            layout => layout,
        },
    })
}

/// Returns whether a line of the layout has a referrer or an agent.
fn has_headers(layout: &Layout, line: &[u8]) -> bool {
    let mut parser = Parser::new(Format {
        layout: layout.clone(),
    });
    let record = parser.parse(line);
    record.is_ok_and(|record| !(record.referrer.is_empty() && record.agent.is_empty()))
}
