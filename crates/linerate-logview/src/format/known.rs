//! The known log formats, which are registered at the end of this file, and how they are detected.

use linerate_simd::newline;

use super::{Reason, Record, timestamp};
use crate::lines::Marks;

/// The most lines that are examined.
const LINES_MAX: usize = 256;

/// A log format, or one of several variants of it.
pub(super) trait Layout: Clone + 'static {
    /// The variants that have a name and can be detected.
    const NAMED: &'static [Self];

    /// Returns the name under which the format is chosen and displayed.
    fn name(&self) -> &str;

    /// Parses one line, which does not include its line ending.
    ///
    /// `clock` remembers the last timestamp, and decoded text is stored in `scratch`.
    ///
    /// # Errors
    ///
    /// Returns the reason why the line is not in the format.
    fn parse<'a>(
        &self,
        clock: &mut timestamp::Reader,
        scratch: &'a mut Vec<u8>,
        line: &'a [u8],
    ) -> Result<Record<'a>, Reason>;

    /// Returns whether marks make parsing faster.
    fn wants_marks(&self) -> bool {
        false
    }

    /// Parses one line with the help of marks, if it is one of the many lines for which this is
    /// faster. The result is then the same as that of [`parse`](Self::parse).
    fn parse_usual<'a>(
        &self,
        _clock: &mut timestamp::Reader,
        _line: &'a [u8],
        _marks: Marks<'_>,
    ) -> Option<Record<'a>> {
        None
    }

    /// Returns the variant that describes these lines best, if they have this format at all.
    fn refined(self, _lines: &[&[u8]]) -> Self {
        self
    }

    /// Returns the most bytes of heap that the format holds.
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// Returns the layout in which most of the lines are requests.
///
/// A last line without a line feed may be incomplete, so it counts only if it is the only line.
pub(super) fn detect(head: &[u8]) -> Option<KnownFormat> {
    let lines = first_lines(head);
    let (_, layout) = best(refined(&lines), &lines)?;
    Some(layout)
}

/// Returns how many of `lines`, which are some of the first lines of `head`, are requests in the
/// layout that was chosen, and the best other layout with its number of requests.
pub(super) fn compare(
    chosen: &KnownFormat,
    head: &[u8],
    lines: &[&[u8]],
) -> (usize, Option<(usize, KnownFormat)>) {
    let all = first_lines(head);
    // Variants that differ only in what their first lines have are the same.
    let same = chosen.clone().refined(&all);
    let others = refined(&all).filter(|layout| *layout != same);
    (requests(chosen, lines), best(others, lines))
}

/// Returns the first lines of a log, without a last line that may be incomplete.
pub(super) fn first_lines(head: &[u8]) -> Vec<&[u8]> {
    let whole = newline::rfind(head).map_or(head, |end| &head[..end]);
    let lines = whole.split(|&byte| byte == b'\n').take(LINES_MAX);
    lines
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect()
}

/// Returns the named layouts in the variants that describe these lines best.
fn refined(lines: &[&[u8]]) -> impl DoubleEndedIterator<Item = KnownFormat> {
    let named = KnownFormat::named().into_iter();
    named.map(|layout| layout.refined(lines))
}

/// Returns the layout in which most of the lines are requests, if any are, and their number.
fn best(
    layouts: impl DoubleEndedIterator<Item = KnownFormat>,
    lines: &[&[u8]],
) -> Option<(usize, KnownFormat)> {
    let counted = layouts.map(|layout| (requests(&layout, lines), layout));
    // `max_by_key` returns the last maximum, so reversing makes the first layout win ties.
    let best = counted.rev().max_by_key(|(count, _)| *count);
    best.filter(|(count, _)| *count > 0)
}

/// Returns how many of the lines are requests in this layout.
fn requests(layout: &KnownFormat, lines: &[&[u8]]) -> usize {
    let (mut clock, mut scratch) = (timestamp::Reader::default(), Vec::new());
    let is_request = |line: &&&[u8]| layout.parse(&mut clock, &mut scratch, line).is_ok();
    lines.iter().filter(is_request).count()
}

/// Defines [`KnownFormat`], whose methods call those of the types that implement [`Layout`].
macro_rules! formats {
    ($($(#[$attribute:meta])* $module:ident::$name:ident,)*) => {
        /// The layout of the lines of a log, in one of the known formats.
        #[derive(Clone, Debug, Eq, PartialEq)]
        pub(super) enum KnownFormat {
            $($(#[$attribute])* $name(super::$module::$name),)*
        }

        impl KnownFormat {
            /// Returns the layouts that have a name and can be detected.
            pub(super) fn named() -> Vec<Self> {
                let mut named = Vec::new();
                $(
                    $(#[$attribute])*
                    named.extend(super::$module::$name::NAMED.iter().cloned().map(Self::$name));
                )*
                named
            }

            pub(super) fn refined(self, lines: &[&[u8]]) -> Self {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => Self::$name(layout.refined(lines)),)*
                }
            }

            pub(super) fn name(&self) -> &str {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.name(),)*
                }
            }

            #[inline]
            pub(super) fn parse<'a>(
                &self,
                clock: &mut timestamp::Reader,
                scratch: &'a mut Vec<u8>,
                line: &'a [u8],
            ) -> Result<Record<'a>, Reason> {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.parse(clock, scratch, line),)*
                }
            }

            pub(super) fn wants_marks(&self) -> bool {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.wants_marks(),)*
                }
            }

            #[inline(always)]
            pub(super) fn parse_usual<'a>(
                &self,
                clock: &mut timestamp::Reader,
                line: &'a [u8],
                marks: Marks<'_>,
            ) -> Option<Record<'a>> {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.parse_usual(clock, line, marks),)*
                }
            }

            pub(super) fn memory_bytes(&self) -> usize {
                match self {
                    $($(#[$attribute])* Self::$name(layout) => layout.memory_bytes(),)*
                }
            }
        }
    };
}

// If several formats fit equally many lines of a log, the first one is detected.
formats! {
    combined::Combined,
    json::Json,
    columns::Columns,
    haproxy::Haproxy,
    w3c::W3c,
    template::Template,
    #[cfg(test)]
    tabbed::Tabbed,
}
