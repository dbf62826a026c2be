//! What a log format implements.

use super::{Reason, Record, timestamp};
use crate::lines::Marks;

/// A log format, or one of several variants of it. `known.rs` registers the formats.
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

    /// Returns the variant that describes these lines best, given that this one was detected.
    fn refined(self, _lines: &[&[u8]]) -> Self {
        self
    }

    /// Returns the most bytes of heap that the format holds.
    fn memory_bytes(&self) -> usize {
        0
    }
}
