//! Cuts a log into chunks at line feeds.

use std::mem;

use linerate_simd::newline;

/// The length of a chunk, unless lines may be longer: enough to amortize the work per chunk, little
/// enough for the caches of a core.
const CHUNK_BYTES: usize = 1 << 20;

/// Whole lines of a log, each with its line feed.
#[derive(Debug, Default)]
pub struct Chunk {
    pub(super) text: Vec<u8>,
    /// How many bytes of the log the chunk covers: more than its own length if a line is too long.
    pub(super) bytes_read: u64,
}

/// Cuts a log that arrives in parts of any size into chunks of whole lines.
///
/// Of a line that is too long, only enough bytes are kept to show that it is.
///
/// ```
/// use linerate_logview::parallel::Cutter;
///
/// let mut cutter = Cutter::new(64 << 10);
/// let mut chunks = Vec::new();
/// cutter.handle_input(b"one\ntw", |chunk| chunks.push(chunk));
/// assert!(chunks.is_empty());
/// cutter.handle_eof(|chunk| chunks.push(chunk));
/// assert_eq!(chunks.len(), 1);
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
    chunk_bytes: usize,
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
            chunk_bytes: CHUNK_BYTES.max(line_bytes_max.saturating_mul(2).saturating_add(2)),
            line_bytes_max,
        }
    }

    /// Processes the next bytes of the log and passes on each full chunk.
    pub fn handle_input(&mut self, input: &[u8], mut each: impl FnMut(Chunk)) {
        let mut rest = input;
        while !rest.is_empty() {
            rest = self.take(rest);
            if self.text.len() >= self.chunk_bytes {
                self.cut(&mut each);
            }
        }
    }

    /// Passes on the whole lines that do not fill a chunk yet.
    pub fn flush(&mut self, mut each: impl FnMut(Chunk)) {
        if newline::rfind(&self.text).is_some() {
            self.cut(&mut each);
        }
    }

    /// Ends the log and passes on what is left, adding a line feed if it is missing.
    pub fn handle_eof(&mut self, mut each: impl FnMut(Chunk)) {
        if self.text.last().is_some_and(|&byte| byte != b'\n') {
            self.text.push(b'\n');
        }
        self.skipping = false;
        let chunk = Chunk {
            text: mem::take(&mut self.text),
            bytes_read: mem::take(&mut self.bytes_read),
        };
        if chunk.bytes_read > 0 {
            each(chunk);
        }
    }

    /// Passes on the whole lines and forgets an unfinished one.
    pub fn discard_line(&mut self, mut each: impl FnMut(Chunk)) {
        self.flush(&mut each);
        self.text.clear();
        self.skipping = false;
    }

    /// Takes back the buffer of a chunk that is no longer needed.
    pub(super) fn recycle(&mut self, mut text: Vec<u8>) {
        text.clear();
        self.spare.push(text);
    }

    /// Copies as many bytes as fit into the chunk, and returns the others.
    fn take<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let skipped = match self.skipping {
            true => newline::find(input).unwrap_or(input.len()),
            false => 0,
        };
        self.skipping &= skipped == input.len();
        let kept = &input[skipped..];
        let (kept, rest) = kept.split_at(kept.len().min(self.chunk_bytes - self.text.len()));
        if self.text.capacity() == 0 {
            self.text = self.spare.pop().unwrap_or_default();
        }
        self.text.extend_from_slice(kept);
        self.bytes_read += (skipped + kept.len()) as u64;
        rest
    }

    /// Passes on the whole lines and keeps the unfinished one.
    fn cut(&mut self, each: &mut impl FnMut(Chunk)) {
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
        each(Chunk {
            text: mem::replace(&mut self.text, next),
            bytes_read: mem::replace(&mut self.bytes_read, left) - left,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Cutter;

    /// Cuts parts into chunks of at least 20 bytes, and returns them as text with the bytes they
    /// cover.
    fn cut(parts: &[&[u8]]) -> Vec<(String, u64)> {
        let mut cutter = Cutter::new(9);
        cutter.chunk_bytes = 20;
        let mut chunks = Vec::new();
        let mut note = |chunk: super::Chunk| {
            let text = String::from_utf8_lossy(&chunk.text).into_owned();
            chunks.push((text, chunk.bytes_read));
        };
        for part in parts {
            cutter.handle_input(part, &mut note);
        }
        cutter.handle_eof(&mut note);
        chunks
    }

    fn owned(chunks: &[(&str, u64)]) -> Vec<(String, u64)> {
        let chunks = chunks.iter();
        chunks
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
        let chunks = cut(&[b"a\n", &long, b"\nb\n"]);
        assert_eq!(chunks.iter().map(|(_, bytes)| bytes).sum::<u64>(), whole);
        let text: String = chunks.iter().map(|(text, _)| &**text).collect();
        assert_eq!(text, expected[0].0);
        assert_eq!(cut(&[&long]), owned(&[(&format!("{x10}\n"), 100)]));
    }

    #[test]
    fn flushing_yields_whole_lines() {
        let mut cutter = Cutter::new(9);
        let mut chunks = Vec::new();
        cutter.handle_input(b"ab\ncd", |chunk| chunks.push(chunk.text));
        cutter.flush(|chunk| chunks.push(chunk.text));
        cutter.flush(|chunk| chunks.push(chunk.text));
        cutter.handle_input(b"\n", |chunk| chunks.push(chunk.text));
        cutter.flush(|chunk| chunks.push(chunk.text));
        assert_eq!(chunks, [b"ab\n", b"cd\n"]);
    }

    #[test]
    fn discarding_a_line_yields_the_whole_lines_before_it() {
        let mut cutter = Cutter::new(9);
        let mut chunks = Vec::new();
        cutter.handle_input(b"ab\ncd", |chunk| chunks.push(chunk.text));
        cutter.discard_line(|chunk| chunks.push(chunk.text));
        cutter.handle_input(b"ef\n", |chunk| chunks.push(chunk.text));
        cutter.handle_eof(|chunk| chunks.push(chunk.text));
        assert_eq!(chunks, [b"ab\n", b"ef\n"]);
    }
}
