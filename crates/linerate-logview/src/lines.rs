//! Splitting a byte stream into lines, whatever pieces it arrives in.

use linerate_simd::newline;

/// A line as [`LineSplitter`] hands it out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Line<'a> {
    /// The whole line without its line end (LF or CRLF).
    Whole(&'a [u8]),
    /// The first `line_bytes_max` bytes of a line that is longer; the rest is skipped.
    TooLong(&'a [u8]),
}

/// Splits a byte stream into lines.
///
/// Lines that lie whole within one piece of input are lent from it; only the unfinished tail of a
/// piece is copied. A line of exactly `line_bytes_max` bytes (a CR counts, the LF does not) is
/// whole, a longer one is reported once, as soon as it is known to be too long, and then skipped
/// up to its line feed without being kept.
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
    /// The bytes so far of a line whose end has not arrived; empty while `skipping`.
    tail: Vec<u8>,
    /// Whether the current line was reported as too long and its rest is to be dropped.
    skipping: bool,
    line_bytes_max: usize,
}

impl LineSplitter {
    /// Creates a splitter that stands at the start of a line.
    pub fn new(line_bytes_max: usize) -> Self {
        Self {
            tail: Vec::new(),
            skipping: false,
            line_bytes_max,
        }
    }

    /// Takes the next piece of the stream and hands each line that it ends to `each`, in order.
    #[inline]
    pub fn handle_input(&mut self, input: &[u8], mut each: impl FnMut(Line<'_>)) {
        let mut start = 0;
        for end in newline::positions(input) {
            let line = &input[start..end];
            start = end + 1;
            if self.stands_inside_line() {
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

    /// Ends the stream: a last line without a line feed counts like any other.
    ///
    /// The splitter then stands at the start of a line again.
    pub fn handle_eof(&mut self, mut each: impl FnMut(Line<'_>)) {
        self.end_line(&mut each);
    }

    /// Returns how many bytes the unfinished line takes up in memory.
    pub fn memory_bytes(&self) -> usize {
        self.tail.capacity()
    }

    /// Appends to the unfinished line, or reports it when that makes it too long.
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

    /// Hands out the unfinished line, unless that was done, and stands at the start of the next.
    fn end_line(&mut self, each: &mut impl FnMut(Line<'_>)) {
        if !self.tail.is_empty() {
            each(Line::Whole(without_cr(&self.tail)));
        }
        self.tail.clear();
        self.skipping = false;
    }

    fn stands_inside_line(&self) -> bool {
        self.skipping || !self.tail.is_empty()
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::{Line, LineSplitter};

    /// Splits `pieces` and renders each line as text, too long ones with a `!` in front.
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
    fn every_two_cuts_give_the_same_lines() {
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
