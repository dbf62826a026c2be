//! The lines of requests as they appear in the log, compressed.

use std::io;

use crate::query::LogLine;
use crate::summary::RowsKept;

use super::line_search::LineSearch;

/// How much text is compressed at once: enough to find repetitions, little enough to decompress for
/// a single line.
const BLOCK_BYTES: usize = 128 << 10;
/// The fastest compression level that pays: a log gets six to ten times smaller.
#[cfg(not(target_family = "wasm"))]
const COMPRESSION_LEVEL: i32 = 1;

/// Stores the lines of requests in a bounded number of bytes: the first ones that fit.
#[derive(Debug)]
pub(crate) struct LineStore {
    blocks: Vec<LineBlock>,
    /// The concatenated text of the lines that do not fill a block yet.
    text: Vec<u8>,
    /// The end and the line number of each of them.
    lines: Vec<LineEnd>,
    /// The bytes of all blocks.
    bytes: usize,
    kept: u64,
    /// True once a line did not fit.
    is_full: bool,
    bytes_max: usize,
}

#[derive(Debug)]
struct LineBlock {
    /// How many lines are in the previous blocks.
    before: u64,
    lines: Box<[LineEnd]>,
    compressed: Box<[u8]>,
    text_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct LineEnd {
    line: u64,
    end: u32,
}

impl LineStore {
    /// Creates a store of up to `bytes_max` bytes; 0 stores nothing.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            text: Vec::new(),
            lines: Vec::new(),
            bytes: 0,
            kept: 0,
            is_full: false,
            bytes_max,
        }
    }

    /// Returns whether lines are stored at all.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.bytes_max > 0
    }

    /// Stores the line of the next request, which has the number `line` in the log.
    #[inline]
    pub(crate) fn push(&mut self, line: u64, text: &[u8]) {
        if !self.is_on() || self.is_full {
            return;
        }
        if self.memory_bytes() + text.len() + self.grown_bytes() > self.bytes_max {
            self.is_full = true;
            return;
        }
        self.text.extend_from_slice(text);
        let end = self.text.len() as u32;
        self.lines.push(LineEnd { line, end });
        self.kept += 1;
        if self.text.len() >= BLOCK_BYTES {
            self.seal();
        }
    }

    /// Returns how many lines are stored.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Returns the lines of requests, which are numbered from 0 and must be in order. Lines that
    /// are not stored are left out.
    pub(crate) fn rows(&self, requests: &[u64], show: impl Fn(&[u8]) -> String) -> Vec<LogLine> {
        let mut rows = Vec::with_capacity(requests.len());
        let mut open: Option<(usize, Vec<u8>)> = None;
        for &request in requests.iter().take_while(|&&it| it < self.kept) {
            let after = self.blocks.partition_point(|it| it.before <= request);
            let block = after.checked_sub(1).map(|at| (at, &self.blocks[at]));
            let in_block = block.filter(|(_, it)| request - it.before < it.lines.len() as u64);
            let (places, text, at) = match in_block {
                Some((at, block)) => {
                    if open.as_ref().is_none_or(|(opened, _)| *opened != at) {
                        open = Some((at, block.text()));
                    }
                    let text = open.as_ref().map_or(&[][..], |(_, text)| text);
                    (&*block.lines, text, request - block.before)
                }
                None => (&*self.lines, &*self.text, request - self.before_pending()),
            };
            rows.extend(row(places, text, at as usize, &show));
        }
        rows
    }

    /// Returns which of these requests, which must be in order, have lines with the searched text;
    /// `None` if the line of one of them is not stored.
    pub(crate) fn containing(
        &self,
        requests: &[u64],
        search: &mut LineSearch,
    ) -> Option<Vec<bool>> {
        let mut pending = None;
        let found = requests.iter().map(|&request| {
            if request >= self.kept {
                return None;
            }
            if request >= self.before_pending() {
                let ends = self.lines.iter().map(|it| it.end as usize);
                let lines = pending.get_or_insert_with(|| search.of_lines(&self.text, ends));
                return lines
                    .get((request - self.before_pending()) as usize)
                    .copied();
            }
            let at = self.blocks.partition_point(|it| it.before <= request) - 1;
            let block = &self.blocks[at];
            if search.open.as_ref().is_none_or(|(opened, _)| *opened != at) {
                let ends = block.lines.iter().map(|it| it.end as usize);
                search.open = Some((at, search.of_lines(&block.text(), ends)));
            }
            let (_, lines) = search.open.as_ref()?;
            lines.get((request - block.before) as usize).copied()
        });
        found.collect()
    }

    /// Returns what is kept of a log with `requests` requests.
    pub(crate) fn summary(&self, requests: u64) -> RowsKept {
        RowsKept {
            lines: self.kept,
            bytes: self.memory_bytes() as u64,
            bytes_max: self.bytes_max as u64,
            complete: self.is_on() && self.kept == requests,
        }
    }

    /// Returns how many bytes of heap the store holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
            + self.blocks.capacity() * size_of::<LineBlock>()
            + self.text.capacity()
            + self.lines.capacity() * size_of::<LineEnd>()
    }

    /// Returns how many more bytes it takes to compress a block and to grow the list of blocks.
    pub(crate) fn growth_bytes_max(&self) -> usize {
        /// The compressor, which exists only while a block is made.
        const COMPRESSOR_BYTES: usize = 2 << 20;
        match self.is_on() {
            true => COMPRESSOR_BYTES + 2 * self.blocks.capacity() * size_of::<LineBlock>(),
            false => 0,
        }
    }

    /// Returns how many more bytes the list of blocks will occupy after the next block.
    fn grown_bytes(&self) -> usize {
        match self.blocks.len() == self.blocks.capacity() {
            true => self.blocks.len().max(4) * size_of::<LineBlock>(),
            false => 0,
        }
    }

    fn before_pending(&self) -> u64 {
        self.kept - self.lines.len() as u64
    }

    #[cold]
    fn seal(&mut self) {
        let Ok(compressed) = compress(&self.text) else {
            // Fails only if memory is exhausted. The lines stored so far remain.
            self.is_full = true;
            return;
        };
        let block = LineBlock {
            before: self.before_pending(),
            lines: self.lines.as_slice().into(),
            // Copied, because when shrunk, some allocators keep all of the memory, which is enough
            // for incompressible data.
            compressed: compressed.as_slice().into(),
            text_bytes: self.text.len(),
        };
        self.bytes += block.compressed.len() + size_of_val(&*block.lines);
        self.blocks.push(block);
        self.text.clear();
        self.lines.clear();
    }
}

impl LineBlock {
    fn text(&self) -> Vec<u8> {
        // The same library compressed it, so this does not fail.
        decompress(&self.compressed, self.text_bytes).unwrap_or_default()
    }
}

#[cfg(not(target_family = "wasm"))]
fn compress(text: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(text, COMPRESSION_LEVEL)
}

#[cfg(not(target_family = "wasm"))]
fn decompress(compressed: &[u8], text_bytes: usize) -> io::Result<Vec<u8>> {
    zstd::bulk::decompress(compressed, text_bytes)
}

/// Fails: reports have no lines, so WebAssembly has no compressor.
#[cfg(target_family = "wasm")]
fn compress(_: &[u8]) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_family = "wasm")]
fn decompress(_: &[u8], _: usize) -> io::Result<Vec<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

fn row(
    places: &[LineEnd],
    text: &[u8],
    at: usize,
    show: impl Fn(&[u8]) -> String,
) -> Option<LogLine> {
    let place = places.get(at)?;
    let before = at.checked_sub(1).and_then(|before| places.get(before));
    let start = before.map_or(0, |before| before.end);
    let text = text.get(start as usize..place.end as usize)?;
    Some(LogLine {
        line: place.line,
        text: show(text),
    })
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, LineSearch, LineStore};

    fn show(text: &[u8]) -> String {
        String::from_utf8_lossy(text).into_owned()
    }

    fn text(n: u64) -> String {
        format!(
            "{n} is the {} line, {}",
            n * 7_919,
            "x".repeat(n as usize % 50)
        )
    }

    fn store(lines: u64, bytes_max: usize) -> LineStore {
        let mut store = LineStore::new(bytes_max);
        for n in 0..lines {
            store.push(n * 2 + 1, text(n).as_bytes());
        }
        store
    }

    #[test]
    fn lines_are_returned_from_full_and_partial_blocks() {
        let store = store(10_000, 8 << 20);
        assert!(store.blocks.len() >= 2 && !store.lines.is_empty());
        let wanted = [0, 1, 2, 3_999, 4_000, 7_777, 9_998, 9_999, 10_000];
        let rows = store.rows(&wanted, show);
        assert_eq!(rows.len(), wanted.len() - 1);
        for (row, request) in rows.iter().zip(wanted) {
            assert_eq!((row.line, &*row.text), (request * 2 + 1, &*text(request)));
        }
        let summary = store.summary(10_000);
        assert!(summary.complete && !store.summary(10_001).complete);
        assert!(summary.bytes < 10_000 * 40 + 3 * BLOCK_BYTES as u64);
    }

    #[test]
    fn lines_with_a_text_are_found_in_full_and_partial_blocks() {
        let store = store(10_000, 8 << 20);
        let mut search = LineSearch::new("7 IS THE 5");
        let all: Vec<u64> = (0..10_000).collect();
        let found = store.containing(&all, &mut search).unwrap();
        for (n, found) in (0..).zip(found) {
            assert_eq!(found, text(n).contains("7 is the 5"), "{n}");
        }
        let some = [3, 9_997, 9_999];
        let each = some.map(|n| text(n).contains("7 is the 5"));
        assert_eq!(store.containing(&some, &mut search).unwrap(), each);
        assert_eq!(store.containing(&[9_999, 10_000], &mut search), None);
    }

    #[test]
    fn lines_up_to_the_limit_are_kept_and_no_more() {
        let store = store(100_000, 1 << 20);
        assert!(store.memory_bytes() <= (1 << 20) + 3 * BLOCK_BYTES);
        assert!((10_000..100_000).contains(&store.kept()));
        let last = store.rows(&[store.kept() - 1, store.kept()], show);
        assert_eq!(last.len(), 1);
        assert_eq!(last[0].text, text(store.kept() - 1));
        assert!(!store.summary(100_000).complete);
    }

    #[test]
    fn nothing_is_kept_by_default() {
        let store = store(100, 0);
        assert_eq!((store.kept(), store.memory_bytes()), (0, 0));
        assert!(store.rows(&[0], show).is_empty());
        assert!(!store.summary(0).complete);
    }
}
