//! Splits a byte stream into lines, whatever pieces it arrives in.

use linerate_simd::marks::Finder;
use linerate_simd::newline;

/// A line from a [`LineSplitter`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Line<'a> {
    /// The whole line without its line ending (LF or CRLF).
    Whole(&'a [u8]),
    /// The first `line_bytes_max` bytes of a line that is longer; the remainder is skipped.
    TooLong(&'a [u8]),
}

/// The positions of the double quotes and backslashes in a line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks<'a> {
    /// Their offsets in the searched text, in which the line begins at `start`.
    offsets: &'a [u32],
    start: u32,
}

impl Marks<'_> {
    /// Returns how many marks there are.
    #[inline]
    pub(crate) fn len(self) -> usize {
        self.offsets.len()
    }

    /// Returns the offsets of the first `N` marks in the line, or `None` if there are fewer.
    #[inline]
    pub(crate) fn first<const N: usize>(self) -> Option<[usize; N]> {
        let first: &[u32; N] = self.offsets.first_chunk()?;
        Some(first.map(|offset| (offset - self.start) as usize))
    }

    /// Returns the marks after the first `len` bytes of the line, with offsets relative to that
    /// position.
    #[inline]
    pub(crate) fn behind(self, len: usize) -> Self {
        let start = self.start + len as u32;
        let before = self.offsets.iter().take_while(|&&offset| offset < start);
        Self {
            offsets: &self.offsets[before.count()..],
            start,
        }
    }
}

/// Splits a byte stream into lines.
///
/// Lines that lie entirely within one piece of input are borrowed from it; only the unfinished tail
/// of a piece is copied. A line of exactly `line_bytes_max` bytes (including a CR but not the LF)
/// is whole. A longer line is reported once, as soon as it is known to be too long; the remainder
/// up to its line feed is skipped and not stored.
///
/// ```
/// use linerate_logview::lines::{Line, LineSplitter};
///
/// let mut splitter = LineSplitter::new(8);
/// let mut seen = Vec::new();
/// for piece in [&b"one\r\ntw"[..], b"o\nmuch too long\n", b"end"] {
///     splitter.handle_input(piece, |line| seen.push(format!("{line:?}").len()));
/// }
/// splitter.handle_eof(|line| assert_eq!(line, Line::Whole(b"end")));
/// assert_eq!(seen.len(), 3);
/// ```
#[derive(Debug)]
pub struct LineSplitter {
    /// The bytes received so far of an unfinished line; empty while `skipping`.
    tail: Vec<u8>,
    /// True if the current line was reported as too long and its remainder must be skipped.
    skipping: bool,
    line_bytes_max: usize,
    /// Finds the marks. Created when they are first needed.
    finder: Option<Finder>,
}

impl LineSplitter {
    /// Creates a splitter at the start of a line.
    pub fn new(line_bytes_max: usize) -> Self {
        Self {
            tail: Vec::new(),
            skipping: false,
            line_bytes_max,
            finder: None,
        }
    }

    /// Processes the next piece of the stream and passes each line that it completes to `each`, in
    /// order.
    #[inline]
    pub fn handle_input(&mut self, input: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut start = 0;
        for end in newline::positions(input) {
            let line = &input[start..end];
            start = end + 1;
            if self.is_inside_line() {
                self.keep(line, &mut each);
                self.end_line(&mut each);
            } else if line.len() <= self.line_bytes_max {
                each(Line::Whole(without_cr(line)));
            } else {
                each(Line::TooLong(&line[..self.line_bytes_max]));
            }
        }
        self.keep(&input[start..], &mut each);
    }

    /// Like [`handle_input`](Self::handle_input), but also passes the marks of each line, or `None`
    /// if they are unknown.
    #[inline]
    pub fn handle_marked_input(
        &mut self,
        input: &[u8],
        mut each: impl FnMut(Line<'_>, Option<Marks<'_>>),
    ) {
        let mut rest = input;
        if self.is_inside_line() {
            let end = newline::find(rest).map_or(rest.len(), |end| end + 1);
            let (end_of_line, behind) = rest.split_at(end);
            self.handle_input(end_of_line, |line| each(line, None));
            rest = behind;
        }
        let mut finder = self.finder.take().unwrap_or_default();
        while !rest.is_empty() {
            let len = self.lend(rest, finder.find(rest), &mut each);
            rest = &rest[len..];
            if len == 0 {
                // The line is unfinished, or longer than the window that is searched at once.
                let end = newline::find(rest).map_or(rest.len(), |end| end + 1);
                self.handle_input(&rest[..end], |line| each(line, None));
                rest = &rest[end..];
            }
        }
        self.finder = Some(finder);
    }

    /// Ends the stream. A last line without a line feed counts like any other.
    ///
    /// The splitter is then at the start of a line again.
    pub fn handle_eof(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.end_line(&mut each);
    }

    /// Forgets an unfinished line. The splitter is then at the start of a line again.
    pub fn discard_line(&mut self) {
        self.tail.clear();
        self.skipping = false;
    }

    /// Returns how many bytes of heap the splitter holds.
    pub fn memory_bytes(&self) -> usize {
        self.tail.capacity() + self.finder.as_ref().map_or(0, Finder::memory_bytes)
    }

    /// Passes on the lines that end with one of the marks of `text`, and returns how many bytes
    /// they occupy.
    #[inline]
    fn lend(
        &self,
        text: &[u8],
        marks: &[u32],
        each: &mut impl FnMut(Line<'_>, Option<Marks<'_>>),
    ) -> usize {
        let mut start = 0;
        let mut first = 0;
        for (at, &mark) in marks.iter().enumerate() {
            let end = mark as usize;
            if text[end] != b'\n' {
                continue;
            }
            let line = &text[start..end];
            if line.len() <= self.line_bytes_max {
                let marks = Marks {
                    offsets: &marks[first..at],
                    start: start as u32,
                };
                each(Line::Whole(without_cr(line)), Some(marks));
            } else {
                each(Line::TooLong(&line[..self.line_bytes_max]), None);
            }
            start = end + 1;
            first = at + 1;
        }
        start
    }

    /// Appends to the unfinished line, or reports it if that makes it too long.
    fn keep(&mut self, piece: &[u8], each: &mut impl FnMut(Line<'_>)) {
        if self.skipping {
            return;
        }
        let room = self.line_bytes_max - self.tail.len();
        self.tail.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            each(Line::TooLong(&self.tail));
            self.tail.clear();
            self.skipping = true;
        }
    }

    /// Passes on the unfinished line, unless it was reported already, and moves to the start of the
    /// next.
    fn end_line(&mut self, each: &mut impl FnMut(Line<'_>)) {
        if !self.tail.is_empty() {
            each(Line::Whole(without_cr(&self.tail)));
        }
        self.tail.clear();
        self.skipping = false;
    }

    fn is_inside_line(&self) -> bool {
        self.skipping || !self.tail.is_empty()
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use linerate_simd::marks::WINDOW_LEN;

    use super::{Line, LineSplitter, Marks};

    /// Splits `pieces` and returns each line as text. Lines that are too long begin with a `!`.
    fn split(line_bytes_max: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::new(line_bytes_max);
        let mut seen = Vec::new();
        let mut note = |line: Line<'_>| match line {
            Line::Whole(text) => seen.push(String::from_utf8_lossy(text).into_owned()),
            Line::TooLong(text) => seen.push(format!("!{}", String::from_utf8_lossy(text))),
        };
        for piece in pieces {
            splitter.handle_input(piece, &mut note);
            assert!(splitter.tail.len() <= line_bytes_max);
        }
        splitter.handle_eof(&mut note);
        assert_eq!(split_marked(line_bytes_max, pieces), seen);
        seen
    }

    /// Does the same as [`split`] using marks, and checks the marks against the lines.
    fn split_marked(line_bytes_max: usize, pieces: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::new(line_bytes_max);
        let mut seen = Vec::new();
        let mut note = |line: Line<'_>, marks: Option<Marks<'_>>| match line {
            Line::Whole(text) => {
                if let Some(marks) = marks {
                    let in_line = (0..text.len()).filter(|&at| b"\"\\".contains(&text[at]));
                    let known = marks.offsets.iter();
                    assert!(known.map(|it| (it - marks.start) as usize).eq(in_line));
                }
                seen.push(String::from_utf8_lossy(text).into_owned());
            }
            Line::TooLong(text) => seen.push(format!("!{}", String::from_utf8_lossy(text))),
        };
        for piece in pieces {
            splitter.handle_marked_input(piece, &mut note);
            assert!(splitter.tail.len() <= line_bytes_max);
        }
        splitter.handle_eof(|line| note(line, None));
        seen
    }

    #[test]
    fn line_ends_are_lf_or_crlf_and_the_last_may_be_missing() {
        assert_eq!(
            split(9, &[b"a\nb\r\n\n\r\nc\rd"]),
            ["a", "b", "", "", "c\rd"]
        );
        assert_eq!(split(9, &[b"a\n"]), ["a"]);
        assert_eq!(split(9, &[b""]), [""; 0]);
        assert_eq!(split(9, &[b"a", b"\r", b"\n", b"\r"]), ["a", ""]);
    }

    #[test]
    fn line_of_the_limit_is_whole_and_one_byte_more_is_too_long() {
        assert_eq!(split(4, &[b"1234\n12345\n1\n"]), ["1234", "!1234", "1"]);
        assert_eq!(split(4, &[b"123\r\n1234\r\n"]), ["123", "!1234"]);
        assert_eq!(split(4, &[b"1234"]), ["1234"]);
        assert_eq!(split(4, &[b"12345"]), ["!1234"]);
    }

    #[test]
    fn every_two_splits_give_the_same_lines() {
        let text = b"one\r\n\n12345678\n123456789\n\xFF\0\r\n1234567890123456\nend";
        let whole = split(8, &[text]);
        assert_eq!(whole.len(), 7);
        for a in 0..=text.len() {
            for b in a..=text.len() {
                let pieces = [&text[..a], &text[a..b], &text[b..]];
                assert_eq!(split(8, &pieces), whole, "cut at {a} and {b}");
            }
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(split(8, &bytes), whole);
    }

    #[test]
    fn marks_are_those_of_the_line_at_any_position() {
        let line = br#""a" \" b"#;
        for len in WINDOW_LEN - 40..WINDOW_LEN + 40 {
            let mut text = vec![b'"'; len];
            for _ in 0..9 {
                text.push(b'\n');
                text.extend_from_slice(line);
            }
            assert_eq!(split(1 << 20, &[&text]).len(), 10);
            assert_eq!(split(1 << 10, &[&text])[0].len(), 1 + (1 << 10));
        }
    }

    #[test]
    fn marks_after_a_field_are_counted_from_its_end() {
        let mut splitter = LineSplitter::new(99);
        splitter.handle_marked_input(b"x\na\"b \"c\"\n", |line, marks| {
            let marks = marks.unwrap();
            if line == Line::Whole(b"x") {
                return assert_eq!(marks.first::<1>(), None);
            }
            assert_eq!(marks.first(), Some([1, 4, 6]));
            assert_eq!(marks.first::<4>(), None);
            assert_eq!(marks.behind(4).first(), Some([0, 2]));
            assert_eq!(marks.behind(7).len(), 0);
        });
    }

    #[test]
    fn endless_line_is_reported_once_and_not_kept() {
        let mut splitter = LineSplitter::new(1024);
        let mut reports = 0;
        for _ in 0..1_000 {
            splitter.handle_input(&[b'x'; 4096], |_| reports += 1);
        }
        splitter.handle_eof(|_| reports += 1);
        assert_eq!(reports, 1);
        assert!(splitter.memory_bytes() <= 2048);
    }
}
