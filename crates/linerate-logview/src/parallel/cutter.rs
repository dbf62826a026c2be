//! Cuts a log into pieces at line feeds.

use std::mem;

use linerate_simd::newline;

/// The length of a piece, unless lines may be longer: enough to amortize the work per piece, little
/// enough for the caches of a core.
const PIECE_BYTES: usize = 1 << 20;

/// Whole lines of a log, each with its line feed.
#[derive(Debug, Default)]
pub struct Piece {
    pub(super) text: Vec<u8>,
    /// How many bytes of the log the piece covers: more than its own length if a line is too long.
    pub(super) bytes_read: u64,
}

/// Cuts a log that arrives in parts of any size into pieces of whole lines.
///
/// Of a line that is too long, only enough bytes are kept to show that it is.
///
/// ```
/// use linerate_logview::parallel::Cutter;
///
/// let mut cutter = Cutter::new(64 << 10);
/// let mut pieces = Vec::new();
/// cutter.handle_input(b"one\ntw", |piece| pieces.push(piece));
/// assert!(pieces.is_empty());
/// cutter.handle_eof(|piece| pieces.push(piece));
/// assert_eq!(pieces.len(), 1);
/// ```
#[derive(Debug)]
pub struct Cutter {
    text: Vec<u8>,
    /// How many bytes arrived since the last cut.
    bytes_read: u64,
    /// True if the unfinished line is too long and its remainder must be dropped.
    skipping: bool,
    /// Buffers to be reused.
    spare: Vec<Vec<u8>>,
    piece_bytes: usize,
    line_bytes_max: usize,
}

impl Cutter {
    /// Creates a cutter for lines of up to `line_bytes_max` bytes.
    pub fn new(line_bytes_max: usize) -> Self {
        Self {
            text: Vec::new(),
            bytes_read: 0,
            skipping: false,
            spare: Vec::new(),
            piece_bytes: PIECE_BYTES.max(line_bytes_max.saturating_mul(2).saturating_add(2)),
            line_bytes_max,
        }
    }

    /// Processes the next bytes of the log and passes on each full piece.
    pub fn handle_input(&mut self, input: &[u8], mut each: impl FnMut(Piece)) {
        let mut rest = input;
        while !rest.is_empty() {
            rest = self.take(rest);
            if self.text.len() >= self.piece_bytes {
                self.cut(&mut each);
            }
        }
    }

    /// Passes on the whole lines that do not fill a piece yet.
    pub fn flush(&mut self, mut each: impl FnMut(Piece)) {
        if newline::rfind(&self.text).is_some() {
            self.cut(&mut each);
        }
    }

    /// Ends the log and passes on what is left, adding a line feed if it is missing.
    pub fn handle_eof(&mut self, mut each: impl FnMut(Piece)) {
        if self.text.last().is_some_and(|&byte| byte != b'\n') {
            self.text.push(b'\n');
        }
        self.skipping = false;
        let piece = Piece {
            text: mem::take(&mut self.text),
            bytes_read: mem::take(&mut self.bytes_read),
        };
        if piece.bytes_read > 0 {
            each(piece);
        }
    }

    /// Takes back the buffer of a piece that is no longer needed.
    pub(super) fn recycle(&mut self, mut text: Vec<u8>) {
        text.clear();
        self.spare.push(text);
    }

    /// Copies as many bytes as fit into the piece, and returns the others.
    fn take<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let skipped = match self.skipping {
            true => newline::find(input).unwrap_or(input.len()),
            false => 0,
        };
        self.skipping &= skipped == input.len();
        let kept = &input[skipped..];
        let (kept, rest) = kept.split_at(kept.len().min(self.piece_bytes - self.text.len()));
        if self.text.capacity() == 0 {
            self.text = self.spare.pop().unwrap_or_default();
        }
        self.text.extend_from_slice(kept);
        self.bytes_read += (skipped + kept.len()) as u64;
        rest
    }

    /// Passes on the whole lines and keeps the unfinished one.
    fn cut(&mut self, each: &mut impl FnMut(Piece)) {
        let Some(end) = newline::rfind(&self.text).map(|at| at + 1) else {
            // A single line that is too long. Keep enough bytes to show that it is.
            self.text.truncate(self.line_bytes_max + 1);
            self.skipping = true;
            return;
        };
        let mut next = self.spare.pop().unwrap_or_default();
        next.extend_from_slice(&self.text[end..]);
        self.text.truncate(end);
        let left = next.len() as u64;
        each(Piece {
            text: mem::replace(&mut self.text, next),
            bytes_read: mem::replace(&mut self.bytes_read, left) - left,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Cutter;

    /// Cuts parts into pieces of at least 20 bytes, and returns them as text with the bytes they
    /// cover.
    fn cut(parts: &[&[u8]]) -> Vec<(String, u64)> {
        let mut cutter = Cutter::new(9);
        cutter.piece_bytes = 20;
        let mut pieces = Vec::new();
        let mut note = |piece: super::Piece| {
            let text = String::from_utf8_lossy(&piece.text).into_owned();
            pieces.push((text, piece.bytes_read));
        };
        for part in parts {
            cutter.handle_input(part, &mut note);
        }
        cutter.handle_eof(&mut note);
        pieces
    }

    fn owned(pieces: &[(&str, u64)]) -> Vec<(String, u64)> {
        let pieces = pieces.iter();
        pieces
            .map(|&(text, bytes)| (text.to_string(), bytes))
            .collect()
    }

    #[test]
    fn pieces_end_with_lines_and_the_last_gets_a_line_feed() {
        let expected = owned(&[("123456\n123456\n", 14), ("1234567\nab\n", 10)]);
        assert_eq!(cut(&[b"123456\n123456\n1234567\nab"]), expected);
        assert_eq!(cut(&[b"12", b"3456\n123456\n1234567\na", b"b"]), expected);
        assert_eq!(cut(&[b""]), []);
        assert_eq!(cut(&[b"\n"]), owned(&[("\n", 1)]));
    }

    #[test]
    fn first_bytes_of_an_overlong_line_are_kept() {
        let long = [b'x'; 100];
        let x10 = "x".repeat(10);
        let expected = owned(&[(&format!("a\n{x10}\nb\n"), 105)]);
        assert_eq!(cut(&[b"a\n", &long, b"\nb\n"])[0], ("a\n".to_string(), 2));
        let whole: u64 = expected.iter().map(|(_, bytes)| bytes).sum();
        let pieces = cut(&[b"a\n", &long, b"\nb\n"]);
        assert_eq!(pieces.iter().map(|(_, bytes)| bytes).sum::<u64>(), whole);
        let text: String = pieces.iter().map(|(text, _)| &**text).collect();
        assert_eq!(text, expected[0].0);
        assert_eq!(cut(&[&long]), owned(&[(&format!("{x10}\n"), 100)]));
    }

    #[test]
    fn flushing_yields_whole_lines() {
        let mut cutter = Cutter::new(9);
        let mut pieces = Vec::new();
        cutter.handle_input(b"ab\ncd", |piece| pieces.push(piece.text));
        cutter.flush(|piece| pieces.push(piece.text));
        cutter.flush(|piece| pieces.push(piece.text));
        cutter.handle_input(b"\n", |piece| pieces.push(piece.text));
        cutter.flush(|piece| pieces.push(piece.text));
        assert_eq!(pieces, [b"ab\n", b"cd\n"]);
    }
}
